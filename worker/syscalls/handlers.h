// What the files of the system call families share.
#pragma once

#include <cerrno>
#include <cstdint>
#include <string>

#include "worker/process/program.h"
#include "worker/process/raw_syscall.h"
#include "worker/runtime/runtime.h"
#include "worker/translator/guest_state.h"

namespace phybin::syscalls {

using process::failed;
using process::raw_syscall;
using process::word;

// Arguments as the guest gave them; result or -errno.
using Handler = int64_t (*)(GuestState& state, const uint64_t* arguments);

#define PHYBIN_HANDLER_own(name) int64_t sys_##name(GuestState& state, const uint64_t* arguments);
#define PHYBIN_HANDLER_pass(name)
#define PHYBIN_HANDLER_none(name)
#define SYSCALL(number, name, arm64, arguments, handler) PHYBIN_HANDLER_##handler(name)
#include "worker/syscalls/abi/syscall_list.inc"
#undef SYSCALL

// int arguments arrive in 64-bit registers whose upper halves mean nothing.
inline int as_int(uint64_t argument) { return static_cast<int>(static_cast<uint32_t>(argument)); }
inline uint64_t extend(int value) { return static_cast<uint64_t>(static_cast<int64_t>(value)); }

inline constexpr uint64_t kHere = static_cast<uint64_t>(-100);  // AT_FDCWD

// A path argument made ready for the host. Most stay guest pointers, which the kernel checks itself; a path below
// /proc, or any absolute one while there is a rootfs, is replaced.
class Path {
 public:
  // `follow`: the call follows a symbolic link at the end, so that /proc/self/exe means the program.
  explicit Path(uint64_t guest, bool follow = true);
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;
  uint64_t host() const { return host_; }
  // The path as a string if it is one of our views of /proc, relative to the process's folder ("maps"); else empty.
  const std::string& view() const { return view_; }

 private:
  uint64_t host_;
  std::string view_;
  char buffer_[process::kPathBuffer];
};

}  // namespace phybin::syscalls
