// The guest program of this process: how it was started, what was loaded where, what it may ask about itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/config/options.h"

namespace phybin::process {

// How the program is started: what the kernel gets with execve.
struct StartRequest {
  std::string path;                     // as the user or the kernel gave it; AT_EXECFN
  int fd = -1;                          // the program, when it was handed over opened (binfmt_misc, fexecve)
  std::vector<const char*> arguments;   // argv[0] included; belong to the caller
  const char* const* environment = {};  // ends with null
  bool secure = false;                  // AT_SECURE
};

// The environment that the process was started with, which is the guest's; libc shows an empty one (start.S).
const char* const* environment();

struct Failure {
  int status = 0;  // 126 or 127; 0 when nothing failed
  std::string message;
};

// What is known of the running program; written before the first guest instruction and only read afterwards.
struct Program {
  config::Options options;
  std::vector<std::string> passed_on;      // command-line options for translated children
  std::string executable;                  // absolute path, what /proc/self/exe shows
  std::string arguments;                   // each ended by a NUL
  std::vector<uint64_t> auxiliary_vector;  // pairs, AT_NULL included
  uint64_t entry = 0, stack_pointer = 0;   // of the first instruction
  uint64_t stack_start = 0, stack_end = 0;
  uint64_t arguments_start = 0, arguments_end = 0;  // strings of argv on the stack
  uint64_t vdso = 0, vdso_end = 0;
  std::string worker_path;  // of the worker's own file, for children where no descriptor will do
};
const Program& program();
Program& program_for_start();

// Loads the program with its interpreter, builds the stack, fills program(). A script leads to its interpreter; a
// native program, or a script of one, replaces the worker and this does not return.
Failure load_program(const StartRequest& request);

// A line to stderr under --log.
void log_line(const char* format, ...) __attribute__((format(printf, 1, 2)));

// `path` as the host should see it for the guest: below the rootfs if it is absolute and exists there. `buffer` has
// room for kPathBuffer bytes; the result is `path` itself when nothing changes.
inline constexpr size_t kPathBuffer = 8192;
const char* host_path(const char* path, char* buffer);

}  // namespace phybin::process
