// See children.h.
#include "daemon/children.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "daemon/descriptor.h"

namespace phybin::daemon {
namespace {

// Descriptors are moved above this first, so that none of them is overwritten by another's new number.
constexpr int kAbove = 64;

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  for (const std::string& word : words) result.push_back(const_cast<char*>(word.c_str()));
  result.push_back(nullptr);
  return result;
}

}  // namespace

Children::Children(boost::asio::io_context& io) : signals_(io, SIGCHLD) { wait(); }

void Children::wait() {
  signals_.async_wait([this](const auto& error, int) {
    if (error) return;
    collect();
    wait();
  });
}

void Children::collect() {
  std::vector<std::pair<std::function<void(int)>, int>> calls;
  for (auto child = ended_.begin(); child != ended_.end();) {
    int status = 0;
    if (waitpid(child->first, &status, WNOHANG) != child->first) {
      ++child;
      continue;
    }
    calls.emplace_back(std::move(child->second), status);
    child = ended_.erase(child);
  }
  for (auto& [call, status] : calls) call(status);
}

pid_t Children::start(const char* program, const std::vector<std::string>& arguments,
                      const std::vector<std::string>& environment, const ChildFiles& files,
                      std::function<void(int)> ended) {
  std::vector<Descriptor> moved;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (int standard : {STDIN_FILENO, STDOUT_FILENO}) {
    if (std::none_of(files.begin(), files.end(), [&](const auto& file) { return file.second == standard; })) {
      posix_spawn_file_actions_addopen(&actions, standard, "/dev/null", O_RDWR, 0);
    }
  }
  int result = 0;
  for (const auto& [from, to] : files) {
    moved.emplace_back(fcntl(from, F_DUPFD_CLOEXEC, kAbove));
    if (!moved.back()) result = errno;
    posix_spawn_file_actions_adddup2(&actions, moved.back().get(), to);
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  pid_t pid = 0;
  if (result == 0) {
    result =
        posix_spawn(&pid, program, &actions, &attributes, pointers(arguments).data(), pointers(environment).data());
  }
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (result != 0) return -result;
  ended_.emplace(pid, std::move(ended));
  return pid;
}

void Children::on_end(pid_t child, std::function<void(int)> ended) {
  if (const auto found = ended_.find(child); found != ended_.end()) {
    found->second = std::move(ended);
  } else {
    ended(0);
  }
}

void Children::kill_all() {
  for (const auto& child : ended_) kill(-child.first, SIGKILL);
}

}  // namespace phybin::daemon
