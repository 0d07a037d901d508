// Runs a program and keeps what it writes.
#pragma once

#include <string>
#include <vector>

namespace phybin::client {

struct ProgramResult {
  bool started = false;
  bool timed_out = false;  // and was killed
  int error = 0;           // errno, when it did not start
  int status = -1;         // its exit status; -1: it did not exit
  int signal = 0;          // that killed it; 0: none
  std::string output;      // of stdout, at most its first 64 MiB
  std::string errors;      // of stderr, its first line
};

// `command[0]` is looked up in $PATH. Its stdin is empty. Ends after that many seconds.
ProgramResult run_program(const std::vector<std::string>& command, double seconds);

}  // namespace phybin::client
