// Batch files are mapped by the runner at a fixed address: header, case records, code. The runner appends one result
// at a time, so where it died is known from the length of its output.
#include "tests/differential/session.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>

namespace phybin::difftest {
namespace {

constexpr int kPollMicroseconds = 500;
constexpr double kStallSeconds = 6;

[[noreturn]] void fail(const char* what, const std::string& name) {
  std::fprintf(stderr, "difftest: %s %s: %s\n", what, name.c_str(), std::strerror(errno));
  std::exit(2);
}

void write_file(const std::string& path, const std::vector<uint8_t>& bytes) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (!file || std::fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size() || std::fclose(file) != 0) {
    fail("cannot write", path);
  }
}

std::vector<uint8_t> read_file(const std::string& path) {
  std::vector<uint8_t> bytes;
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (!file) return bytes;
  struct stat info;
  if (fstat(fileno(file), &info) == 0) bytes.resize(size_t(info.st_size));
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file));
  std::fclose(file);
  return bytes;
}

std::string last_line(const std::string& path) {
  const std::vector<uint8_t> bytes = read_file(path);
  std::string text(bytes.begin(), bytes.end());
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const size_t newline = text.rfind('\n');
  return newline == std::string::npos ? text : text.substr(newline + 1);
}

double now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

// Runs to the end, or until the result file has not grown for a while. `stalled` tells which.
int run_process(const Machine& machine, const std::string& batch, const std::string& results, bool& stalled) {
  std::vector<std::string> words = machine.prefix;
  words.push_back(machine.runner);
  words.push_back(batch);
  words.push_back(results);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  unlink(results.c_str());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const std::string messages = machine.directory + "/messages";
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, messages.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    errno = error;
    fail("cannot start", words[0]);
  }
  stalled = false;
  off_t size = 0;
  double last_progress = now();
  for (int polls = 0;; polls++) {
    int status = 0;
    if (waitpid(pid, &status, WNOHANG) == pid) return status;
    usleep(kPollMicroseconds);
    if (polls % 64) continue;
    struct stat info;
    if (stat(results.c_str(), &info) == 0 && info.st_size != size) {
      size = info.st_size;
      last_progress = now();
    }
    if (now() - last_progress > kStallSeconds) {
      stalled = true;
      kill(pid, SIGKILL);
      waitpid(pid, &status, 0);
      return status;
    }
  }
}

std::vector<uint8_t> batch_file(const std::vector<Case>& cases, const std::vector<size_t>& chosen,
                                const std::vector<uint64_t>& addresses, const std::vector<uint8_t>& code, bool dump,
                                bool faults) {
  // The code stays where it was: cases that are left out leave room before it.
  std::vector<uint8_t> bytes(HEADER_BYTES + cases.size() * CASE_BYTES);
  const uint64_t count = chosen.size(), dump_word = dump, faults_word = faults;
  std::memcpy(bytes.data() + HEADER_COUNT, &count, 8);
  std::memcpy(bytes.data() + HEADER_DUMP, &dump_word, 8);
  std::memcpy(bytes.data() + HEADER_FAULTS, &faults_word, 8);
  for (size_t i = 0; i < chosen.size(); i++) {
    CaseRecord record = cases[chosen[i]].state;
    record.code = addresses[chosen[i]];
    std::memcpy(bytes.data() + HEADER_BYTES + i * CASE_BYTES, &record, CASE_BYTES);
  }
  bytes.insert(bytes.end(), code.begin(), code.end());
  if (bytes.size() > BATCH_BYTES) {
    std::fprintf(stderr, "difftest: batch of %zu bytes is too large\n", bytes.size());
    std::exit(2);
  }
  return bytes;
}

const Form* form_of(const Case& item) {
  return item.snippet->main >= 0 && !item.snippet->code.empty() ? item.snippet->code[size_t(item.snippet->main)].form
                                                                : nullptr;
}

}  // namespace

std::vector<uint64_t> place_cases(const std::vector<Case>& cases, std::vector<uint8_t>& code) {
  std::vector<uint64_t> addresses;
  std::map<const Snippet*, uint64_t> placed;
  const uint64_t base = BATCH_ADDRESS + HEADER_BYTES + cases.size() * CASE_BYTES;
  for (const Case& item : cases) {
    if (item.address > base + code.size()) code.resize(item.address - base);
    auto [entry, fresh] = placed.try_emplace(item.snippet, base + code.size());
    if (fresh) {
      const std::vector<uint8_t> bytes = place(item.snippet->code, entry->second);
      code.insert(code.end(), bytes.begin(), bytes.end());
    }
    addresses.push_back(entry->second);
  }
  return addresses;
}

std::vector<Outcome> run_cases(const Machine& machine, const std::vector<Case>& cases, bool dump) {
  std::vector<uint8_t> code;
  const std::vector<uint64_t> addresses = place_cases(cases, code);
  const std::string batch = machine.directory + "/batch", results = machine.directory + "/results";
  const size_t record = RESULT_BYTES + (dump ? ARENA_BYTES : 0);
  std::vector<Outcome> outcomes(cases.size());
  std::map<const Form*, unsigned> deaths;
  std::vector<size_t> pending(cases.size());
  for (size_t i = 0; i < pending.size(); i++) pending[i] = i;
  while (!pending.empty()) {
    write_file(batch, batch_file(cases, pending, addresses, code, dump, machine.faults));
    bool stalled = false;
    const int status = run_process(machine, batch, results, stalled);
    const std::vector<uint8_t> bytes = read_file(results);
    const size_t done = std::min(pending.size(), bytes.size() / record);
    for (size_t i = 0; i < done; i++) {
      Outcome& outcome = outcomes[pending[i]];
      const uint8_t* at = bytes.data() + i * record;
      std::memcpy(&outcome.result, at, RESULT_BYTES);
      if (dump) outcome.arena.assign(at + RESULT_BYTES, at + record);
    }
    if (done == pending.size()) break;
    const Case& culprit = cases[pending[done]];
    outcomes[pending[done]].kind = stalled ? Outcome::kTimeout : Outcome::kDied;
    outcomes[pending[done]].status = status;
    outcomes[pending[done]].message = last_line(machine.directory + "/messages");
    const Form* form = form_of(culprit);
    const bool whole_form = form && ++deaths[form] >= kDeathsOfForm;
    std::vector<size_t> rest;
    for (size_t i = done + 1; i < pending.size(); i++) {
      const Case& item = cases[pending[i]];
      if (item.snippet == culprit.snippet || (whole_form && form_of(item) == form)) {
        outcomes[pending[i]].kind = Outcome::kSkipped;
      } else {
        rest.push_back(pending[i]);
      }
    }
    pending = std::move(rest);
  }
  return outcomes;
}

}  // namespace phybin::difftest
