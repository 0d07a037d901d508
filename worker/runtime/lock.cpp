// See lock.h.
#include "worker/runtime/lock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace phybin::runtime {

void Lock::wait() {
  // Who has waited does not know whether others still do, so it holds the lock as waited for.
  while (word_.exchange(kWaitedFor, std::memory_order_acquire) != kFree)
    syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, kWaitedFor, nullptr);
}

void Lock::wake() { syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, 1); }

}  // namespace phybin::runtime
