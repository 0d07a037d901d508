// phybind --internal-compile: puts itself into a cage and becomes the program that makes an image.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace phybin::daemon {

struct CompileLimits {
  uint64_t memory = 0;  // bytes of address space; 0: no limit
  uint64_t cpu_seconds = 0;
  uint64_t file_bytes = 0;  // of what it writes
};

// The command line of such a process, which runs `command`.
std::vector<std::string> caged_command(const CompileLimits& limits, const std::vector<std::string>& command);

// Does it; returns only if it fails, with an exit status.
int run_caged(int argc, char** argv);

}  // namespace phybin::daemon
