// Clocks and timers. Reading a clock is common enough to be answered from the host's vDSO, through libc.
#include <sys/time.h>

#include <cerrno>
#include <ctime>

#include "worker/syscalls/handlers.h"

namespace phybin::syscalls {

#define HANDLER(name) int64_t sys_##name([[maybe_unused]] GuestState& state, [[maybe_unused]] const uint64_t* a)

HANDLER(clock_gettime) {
  timespec now;
  if (clock_gettime(as_int(a[0]), &now) != 0) return -errno;
  return runtime::write_guest(a[1], now) ? 0 : -EFAULT;
}

HANDLER(gettimeofday) {
  if (a[0]) {
    timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -errno;
    const int64_t value[2] = {now.tv_sec, now.tv_nsec / 1000};
    if (!runtime::write_guest(a[0], value)) return -EFAULT;
  }
  if (a[1] == 0) return 0;
  runtime::before_kernel_writes(a[1], sizeof(struct timezone));
  return raw_syscall(SYS_gettimeofday, 0, a[1]);
}

HANDLER(time) {
  timespec now;
  if (clock_gettime(CLOCK_REALTIME_COARSE, &now) != 0) return -errno;
  if (a[0] && !runtime::write_guest(a[0], now.tv_sec)) return -EFAULT;
  return now.tv_sec;
}

HANDLER(alarm) {
  const itimerval value = {{0, 0}, {static_cast<uint32_t>(a[0]), 0}};
  itimerval old;
  int64_t result = raw_syscall(SYS_setitimer, ITIMER_REAL, word(&value), word(&old));
  if (failed(result)) return result;
  // As the kernel rounds: an alarm that is still set is never reported as 0 seconds away.
  int64_t seconds = old.it_value.tv_sec;
  if (old.it_value.tv_usec >= 500000 || (seconds == 0 && old.it_value.tv_usec)) ++seconds;
  return seconds;
}

}  // namespace phybin::syscalls
