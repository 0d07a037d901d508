// The checks that run a program: is an x86_64 program executed, by the kernel and by the worker started by hand? And
// what programs need beside: a loader for dynamic ones, a good configuration file.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "client/config_check.h"
#include "client/connection.h"
#include "client/doctor.h"
#include "client/run_program.h"
#include "client/self_test_program.h"
#include "proto/places.h"
#include "worker/config/options.h"

namespace phybin::client {
namespace {

constexpr double kPatienceSeconds = 60;
constexpr char kWorker[] = "/usr/bin/phybin";
// Of glibc and of musl.
constexpr const char* kLoaders[] = {"/lib64/ld-linux-x86-64.so.2", "/lib/ld-musl-x86_64.so.1"};

// Memory that holds the program, open in children too; a path names it there. Nothing is written to any disk, which
// might not allow to execute what is on it.
Descriptor program_file(std::string& path) {
  Descriptor file(memfd_create("x86_64-self-test", 0));
  const auto program = self_test_program();
  if (!file || write(file.get(), program.data(), program.size()) != static_cast<ssize_t>(program.size())) {
    return Descriptor();
  }
  path = "/proc/self/fd/" + std::to_string(file.get());
  return file;
}

// What went wrong; empty: nothing.
std::string problem_of(const ProgramResult& result) {
  if (!result.started) return strerror(result.error);
  if (result.timed_out) return "did not end within a minute";
  const std::string said = result.errors.empty() ? "" : " (" + result.errors + ")";
  if (result.signal != 0) return std::string("was killed by ") + strsignal(result.signal) + said;
  if (result.status != kSelfTestStatus) return "exit status " + std::to_string(result.status) + said;
  if (result.output != kSelfTestOutput) return "wrote something else than it should";
  return {};
}

std::string run_self_test(std::vector<std::string> command) {
  std::string path;
  const Descriptor file = program_file(path);
  if (!file) return std::string("the program cannot be made: ") + strerror(errno);
  command.push_back(path);
  return problem_of(run_program(command, kPatienceSeconds));
}

}  // namespace

void check_run_by_kernel(const Patient&, Findings& findings) {
  const std::string problem = run_self_test({});
  if (problem.empty()) return findings.ok("run-by-kernel", "an x86_64 program, executed as such, runs");
  findings.fail("run-by-kernel", "an x86_64 program, executed as such: " + problem, "see the checks of binfmt above");
}

void check_run_by_worker(const Patient& patient, Findings& findings) {
  const std::vector<std::string> command = split_words(patient.arguments.get("--worker", kWorker));
  if (command.empty()) return findings.fail("run-by-worker", "--worker is empty", "name the worker");
  const std::string problem = run_self_test(command);
  if (problem.empty()) return findings.ok("run-by-worker", "an x86_64 program runs under " + command[0]);
  findings.fail("run-by-worker", "an x86_64 program under " + command[0] + ": " + problem,
                "install the package again; phybin --log PROGRAM tells more");
}

void check_configuration(const Patient& patient, Findings& findings) {
  const std::string file = proto::kConfigFile;
  const std::optional<std::string> text = patient.host.read(file);
  if (!text && errno == ENOENT) return findings.ok("configuration", file + " is not there, all defaults hold");
  if (!text) {
    return findings.fail("configuration", file + ": " + strerror(errno),
                         "programs must be able to read it: chmod 644");
  }
  const std::vector<ConfigProblem> problems = config_problems(file, *text);
  if (problems.empty()) return findings.ok("configuration", file + " is good");
  findings.fail("configuration", file + " has " + std::to_string(problems.size()) + " mistakes",
                "phybinctl config check lists them");
}

void check_loader(const Patient& patient, Findings& findings) {
  config::Options options;
  config::Messages messages;
  if (const std::optional<std::string> text = patient.host.read(proto::kConfigFile)) {
    config::apply_file(*text, proto::kConfigFile, "", options, messages);
  }
  const std::string places[] = {options.rootfs, ""};
  for (const std::string& place : places) {
    for (const char* loader : kLoaders) {
      if (patient.host.exists(place + loader)) return findings.ok("loader", place + loader);
    }
  }
  const std::string where = options.rootfs.empty() ? "" : " nor below the rootfs " + options.rootfs;
  findings.warn("loader", std::string("no loader of dynamic x86_64 programs, neither ") + kLoaders[0] + where,
                "dpkg --add-architecture amd64 && apt install libc6:amd64, or set rootfs in /etc/phybin.conf");
}

}  // namespace phybin::client
