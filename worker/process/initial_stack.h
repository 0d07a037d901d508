// The stack that a program finds at its first instruction: argument and environment strings, auxiliary vector.
#pragma once

#include <cstdint>
#include <string>

#include "worker/process/program.h"

namespace phybin::process {

struct StackContents {
  const StartRequest* request = nullptr;
  uint64_t table_address = 0;  // AT_PHDR
  unsigned table_count = 0;
  uint64_t interpreter_base = 0;  // 0: none
  uint64_t program_entry = 0;
  bool executable = false;
};

// Maps the stack and writes it; fills the fields of `program` about it. Returns what went wrong, empty if nothing.
std::string build_initial_stack(const StackContents& contents, Program& program);

}  // namespace phybin::process
