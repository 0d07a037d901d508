// Calls that describe or configure the process and the machine, and the small ones that belong to no other family.
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/utsname.h>

#include <csignal>
#include <cstring>

#include "worker/process/core/elf_file.h"
#include "worker/syscalls/abi/convert.h"
#include "worker/syscalls/handlers.h"

namespace phybin::syscalls {
namespace {

// <asm/prctl.h> of x86_64.
constexpr int kSetGs = 0x1001, kSetFs = 0x1002, kGetFs = 0x1003, kGetGs = 0x1004, kGetCpuid = 0x1011,
              kSetCpuid = 0x1012;

// prctl options of ARM64 that x86_64 does not have, and some that would reach the worker instead of the guest.
constexpr int kForeignOptions[] = {50, 51, 54, 55, 56, 59, 60, 61, 63, 64};

}  // namespace

#define HANDLER(name) int64_t sys_##name([[maybe_unused]] GuestState& state, [[maybe_unused]] const uint64_t* a)

HANDLER(uname) {
  utsname name;
  int64_t result = raw_syscall(SYS_uname, word(&name));
  if (failed(result)) return result;
  memset(name.machine, 0, sizeof name.machine);
  strcpy(name.machine, "x86_64");
  return runtime::write_guest(a[0], name) ? 0 : -EFAULT;
}

HANDLER(arch_prctl) {
  switch (as_int(a[0])) {
    case kSetFs:
    case kSetGs:
      if (a[1] >= process::kGuestAddressEnd) return -EPERM;
      (as_int(a[0]) == kSetFs ? state.fs_base : state.gs_base) = a[1];
      return 0;
    case kGetFs:
      return runtime::write_guest(a[1], state.fs_base) ? 0 : -EFAULT;
    case kGetGs:
      return runtime::write_guest(a[1], state.gs_base) ? 0 : -EFAULT;
    case kGetCpuid:
      return 1;
    case kSetCpuid:
      return -ENODEV;
    default:
      return -EINVAL;
  }
}

HANDLER(prctl) {
  const int option = as_int(a[0]);
  for (int foreign : kForeignOptions) {
    if (option == foreign) return -EINVAL;
  }
  switch (option) {
    case PR_GET_SECCOMP:
      return 0;
    case PR_SET_SECCOMP:
      return -EINVAL;  // filters see ARM64 numbers; as on a kernel without seccomp
    case PR_SET_MM:
      return -EPERM;
    case PR_GET_TSC: {
      const int enabled = PR_TSC_ENABLE;
      return runtime::write_guest(a[1], enabled) ? 0 : -EFAULT;
    }
    case PR_SET_TSC:
      return as_int(a[1]) == PR_TSC_ENABLE ? 0 : -EINVAL;
    default:
      if (a[1]) runtime::before_kernel_writes(a[1], 16);
      return raw_syscall(SYS_prctl, a[0], a[1], a[2], a[3], a[4]);
  }
}

// As on a kernel without the feature.
HANDLER(seccomp) { return as_int(a[0]) == 2 ? -EOPNOTSUPP : -EINVAL; }
HANDLER(ptrace) { return -EPERM; }

HANDLER(getpgrp) { return raw_syscall(SYS_getpgid, 0); }

HANDLER(semctl) {
  const int command = as_int(a[2]);
  HostSemaphores host;
  switch (command) {
    case IPC_STAT:
    case SEM_STAT:
    case 20: {  // SEM_STAT_ANY
      int64_t result = raw_syscall(SYS_semctl, a[0], a[1], a[2], word(&host));
      if (failed(result)) return result;
      return runtime::write_guest(a[3], to_guest_semaphores(host)) ? result : -EFAULT;
    }
    case IPC_SET: {
      GuestSemaphores guest;
      if (!runtime::read_guest(a[3], guest)) return -EFAULT;
      host = to_host_semaphores(guest);
      return raw_syscall(SYS_semctl, a[0], a[1], a[2], word(&host));
    }
    default:
      runtime::before_kernel_writes(a[3], command == GETALL ? 65536 : 64);
      return raw_syscall(SYS_semctl, a[0], a[1], a[2], a[3]);
  }
}

HANDLER(mq_open) {
  return raw_syscall(SYS_mq_open, a[0], open_flags_to_host(static_cast<uint32_t>(a[1])), a[2], a[3]);
}

HANDLER(inotify_init) { return raw_syscall(SYS_inotify_init1, 0); }
HANDLER(eventfd) { return raw_syscall(SYS_eventfd2, a[0], 0); }

}  // namespace phybin::syscalls
