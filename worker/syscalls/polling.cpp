// Waiting for descriptors: calls that ARM64 has only with a signal mask, and epoll_event, which x86_64 packs.
#include <sys/epoll.h>

#include <algorithm>
#include <ctime>

#include "worker/runtime/signals.h"
#include "worker/syscalls/abi/convert.h"
#include "worker/syscalls/handlers.h"

namespace phybin::syscalls {
namespace {

using runtime::interruptible_syscall;

constexpr uint64_t kSetSize = 8;
constexpr uint64_t kPollFd = 8;  // bytes of a struct pollfd

// A signal mask argument: the host gets the guest's without what the worker needs.
struct Mask {
  uint64_t value = 0;
  uint64_t host = 0;  // its address, 0 for none
  bool read(uint64_t address) {
    if (address == 0) return true;
    if (!runtime::read_guest(address, value)) return false;
    value = runtime::host_mask(value);
    host = word(&value);
    return true;
  }
};

timespec from_milliseconds(int milliseconds) { return {milliseconds / 1000, milliseconds % 1000 * 1000000L}; }

void before_set_writes(uint64_t count, const uint64_t* sets) {
  for (unsigned i = 0; i < 3; ++i) {
    if (sets[i]) runtime::before_kernel_writes(sets[i], (count + 63) / 64 * 8);
  }
}

int64_t wait_epoll(uint64_t fd, uint64_t to, int count, uint64_t number, uint64_t timeout, const Mask& mask) {
  constexpr int kAtOnce = 256;
  if (count <= 0) return -EINVAL;
  epoll_event events[kAtOnce];
  count = std::min(count, kAtOnce);
  int64_t result =
      interruptible_syscall(static_cast<long>(number), fd, word(events), extend(count), timeout, mask.host, kSetSize);
  if (result <= 0) return result;
  GuestEpollEvent converted[kAtOnce];
  for (int64_t i = 0; i < result; ++i) converted[i] = {events[i].events, events[i].data.u64};
  size_t size = static_cast<size_t>(result) * sizeof converted[0];
  return runtime::copy_to_guest(to, converted, size) ? result : -EFAULT;
}

}  // namespace

#define HANDLER(name) int64_t sys_##name([[maybe_unused]] GuestState& state, [[maybe_unused]] const uint64_t* a)

HANDLER(poll) {
  int timeout = as_int(a[2]);
  timespec wait = from_milliseconds(timeout);
  runtime::before_kernel_writes(a[0], static_cast<uint32_t>(a[1]) * kPollFd);
  return interruptible_syscall(SYS_ppoll, a[0], a[1], timeout < 0 ? 0 : word(&wait), 0, kSetSize);
}

HANDLER(ppoll) {
  Mask mask;
  if (!mask.read(a[3])) return -EFAULT;
  runtime::before_kernel_writes(a[0], static_cast<uint32_t>(a[1]) * kPollFd);
  if (a[2]) runtime::before_kernel_writes(a[2], sizeof(timespec));
  return interruptible_syscall(SYS_ppoll, a[0], a[1], a[2], mask.host, a[4]);
}

HANDLER(select) {
  int64_t guest[2];  // seconds, microseconds
  timespec wait;
  if (a[4]) {
    if (!runtime::read_guest(a[4], guest)) return -EFAULT;
    if (guest[0] < 0 || guest[1] < 0) return -EINVAL;
    wait = {guest[0] + guest[1] / 1000000, guest[1] % 1000000 * 1000};
  }
  before_set_writes(static_cast<uint32_t>(a[0]), a + 1);
  int64_t result = interruptible_syscall(SYS_pselect6, a[0], a[1], a[2], a[3], a[4] ? word(&wait) : 0, 0);
  if (a[4] && result != -runtime::kRestartCall) {
    // What is left of the time, as Linux reports it; not being able to is no error.
    const int64_t left[2] = {wait.tv_sec, wait.tv_nsec / 1000};
    runtime::write_guest(a[4], left);
  }
  return result;
}

HANDLER(pselect6) {
  uint64_t given[2] = {};  // address and size of the mask
  Mask mask;
  if (a[5] && (!runtime::read_guest(a[5], given) || !mask.read(given[0]))) return -EFAULT;
  const uint64_t host[2] = {mask.host, given[1]};
  before_set_writes(static_cast<uint32_t>(a[0]), a + 1);
  if (a[4]) runtime::before_kernel_writes(a[4], sizeof(timespec));
  return interruptible_syscall(SYS_pselect6, a[0], a[1], a[2], a[3], a[4], a[5] ? word(host) : 0);
}

HANDLER(epoll_create) {
  if (as_int(a[0]) <= 0) return -EINVAL;
  return raw_syscall(SYS_epoll_create1, 0);
}

HANDLER(epoll_ctl) {
  epoll_event event{};
  const bool has_event = as_int(a[1]) != EPOLL_CTL_DEL;
  if (has_event) {
    GuestEpollEvent guest;
    if (!runtime::read_guest(a[3], guest)) return -EFAULT;
    event.events = guest.events;
    event.data.u64 = guest.data;
  }
  return raw_syscall(SYS_epoll_ctl, a[0], a[1], a[2], has_event ? word(&event) : 0);
}

HANDLER(epoll_wait) { return wait_epoll(a[0], a[1], as_int(a[2]), SYS_epoll_pwait, extend(as_int(a[3])), {}); }

HANDLER(epoll_pwait) {
  Mask mask;
  if (a[4] && a[5] != kSetSize) return -EINVAL;
  if (!mask.read(a[4])) return -EFAULT;
  return wait_epoll(a[0], a[1], as_int(a[2]), SYS_epoll_pwait, extend(as_int(a[3])), mask);
}

HANDLER(epoll_pwait2) {
  Mask mask;
  if (a[4] && a[5] != kSetSize) return -EINVAL;
  if (!mask.read(a[4])) return -EFAULT;
  constexpr uint64_t kEpollPwait2 = 441;
  return wait_epoll(a[0], a[1], as_int(a[2]), kEpollPwait2, a[3], mask);
}

}  // namespace phybin::syscalls
