// ARM64's system call numbers as listed and as the kernel's header has them; see syscall_list_arm64.cpp.
#pragma once

namespace phybin::syscalls {

struct Arm64Number {
  const char* name;
  int listed, by_header;
};
const Arm64Number* arm64_numbers(unsigned& count);

}  // namespace phybin::syscalls
