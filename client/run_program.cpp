// See run_program.h.
#include "client/run_program.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>

#include "client/connection.h"

namespace phybin::client {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kMostBytes = 64 << 20;

bool make_pipe(Descriptor& read_end, Descriptor& write_end) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  read_end = Descriptor(ends[0]);
  write_end = Descriptor(ends[1]);
  return true;
}

// Reads both until they end. False: the time was up.
bool drain(int output, int errors, Clock::time_point deadline, ProgramResult& result) {
  pollfd files[2] = {{output, POLLIN, 0}, {errors, POLLIN, 0}};
  std::string* texts[2] = {&result.output, &result.errors};
  char buffer[16 << 10];
  while (files[0].fd >= 0 || files[1].fd >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    const int ready = poll(files, 2, static_cast<int>(left));
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    for (int i = 0; i < 2; ++i) {
      if (files[i].fd < 0 || files[i].revents == 0) continue;
      const ssize_t got = read(files[i].fd, buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        files[i].fd = -1;
      } else if (texts[i]->size() < kMostBytes) {
        texts[i]->append(buffer, static_cast<size_t>(got));
      }
    }
  }
  return true;
}

}  // namespace

ProgramResult run_program(const std::vector<std::string>& command, double seconds) {
  ProgramResult result;
  const auto deadline = Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
  Descriptor output, output_end, errors, errors_end;
  if (!make_pipe(output, output_end) || !make_pipe(errors, errors_end)) {
    result.error = errno;
    return result;
  }
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output_end.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors_end.get(), STDERR_FILENO);
  // A group of its own, so that what it starts ends with it when the time is up.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t child = 0;
  result.error = posix_spawnp(&child, words[0], &actions, &attributes, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (result.error != 0) return result;
  result.started = true;
  output_end = Descriptor();
  errors_end = Descriptor();
  if (!drain(output.get(), errors.get(), deadline, result)) {
    result.timed_out = true;
    kill(-child, SIGKILL);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) result.status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  result.errors.resize(std::min(result.errors.find('\n'), result.errors.size()));
  return result;
}

}  // namespace phybin::client
