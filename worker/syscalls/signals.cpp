// System calls about signals; the runtime keeps their state (runtime/signals.h).
#include "worker/runtime/signals.h"

#include <csignal>

#include "worker/syscalls/handlers.h"

namespace phybin::syscalls {
namespace {

constexpr uint64_t kSetSize = 8;

}  // namespace

#define HANDLER(name) int64_t sys_##name([[maybe_unused]] GuestState& state, [[maybe_unused]] const uint64_t* a)

HANDLER(rt_sigaction) { return runtime::sys_rt_sigaction(as_int(a[0]), a[1], a[2], a[3]); }
HANDLER(rt_sigprocmask) { return runtime::sys_rt_sigprocmask(as_int(a[0]), a[1], a[2], a[3]); }
HANDLER(sigaltstack) { return runtime::sys_sigaltstack(state, a[0], a[1]); }
HANDLER(rt_sigsuspend) { return runtime::sys_rt_sigsuspend(state, a[0], a[1]); }
HANDLER(rt_sigreturn) { return runtime::sys_rt_sigreturn(state); }

HANDLER(rt_sigtimedwait) {
  uint64_t set;
  if (a[3] != kSetSize) return -EINVAL;
  if (!runtime::read_guest(a[0], set)) return -EFAULT;
  set = runtime::host_mask(set);
  if (a[1]) runtime::before_kernel_writes(a[1], sizeof(siginfo_t));
  return runtime::interruptible_syscall(SYS_rt_sigtimedwait, word(&set), a[1], a[2], kSetSize);
}

HANDLER(signalfd4) {
  uint64_t set;
  if (a[2] != kSetSize) return -EINVAL;
  if (!runtime::read_guest(a[1], set)) return -EFAULT;
  set = runtime::host_mask(set);
  return raw_syscall(SYS_signalfd4, a[0], word(&set), kSetSize, a[3]);
}
HANDLER(signalfd) {
  const uint64_t arguments[6] = {a[0], a[1], a[2], 0};
  return sys_signalfd4(state, arguments);
}

HANDLER(pause) { return runtime::interruptible_syscall(SYS_ppoll, 0, 0, 0, 0, kSetSize); }

}  // namespace phybin::syscalls
