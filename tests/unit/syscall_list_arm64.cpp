// Numbers of ARM64 in the list of system calls, beside those of <asm-generic/unistd.h>, which is ARM64's table. In a
// file of its own, because the header of this machine defines the same names.
// NOLINTBEGIN(bugprone-reserved-identifier)
#define __ARCH_WANT_RENAMEAT
#define __ARCH_WANT_NEW_STAT
#define __ARCH_WANT_SET_GET_RLIMIT
#define __ARCH_WANT_SYS_CLONE3
#define __ARCH_WANT_MEMFD_SECRET
// NOLINTEND(bugprone-reserved-identifier)
#include "syscall_list_arm64.h"

#include <asm-generic/unistd.h>

namespace phybin::syscalls {
namespace {

// Names that the generic table does not have; the list must say -1 for them.
#define PHYBIN_NO(name) constexpr int __NR_##name = -1;
// clang-format off
PHYBIN_NO(open) PHYBIN_NO(stat) PHYBIN_NO(lstat) PHYBIN_NO(poll) PHYBIN_NO(access) PHYBIN_NO(pipe) PHYBIN_NO(select)
PHYBIN_NO(dup2) PHYBIN_NO(pause) PHYBIN_NO(alarm) PHYBIN_NO(fork) PHYBIN_NO(vfork) PHYBIN_NO(getdents)
PHYBIN_NO(rename) PHYBIN_NO(mkdir) PHYBIN_NO(rmdir) PHYBIN_NO(creat) PHYBIN_NO(link) PHYBIN_NO(unlink)
PHYBIN_NO(symlink) PHYBIN_NO(readlink) PHYBIN_NO(chmod) PHYBIN_NO(chown) PHYBIN_NO(lchown) PHYBIN_NO(getpgrp)
PHYBIN_NO(utime) PHYBIN_NO(mknod) PHYBIN_NO(uselib) PHYBIN_NO(ustat) PHYBIN_NO(sysfs) PHYBIN_NO(modify_ldt)
PHYBIN_NO(_sysctl) PHYBIN_NO(arch_prctl) PHYBIN_NO(iopl) PHYBIN_NO(ioperm) PHYBIN_NO(create_module)
PHYBIN_NO(get_kernel_syms) PHYBIN_NO(query_module) PHYBIN_NO(getpmsg) PHYBIN_NO(putpmsg) PHYBIN_NO(afs_syscall)
PHYBIN_NO(tuxcall) PHYBIN_NO(security) PHYBIN_NO(time) PHYBIN_NO(set_thread_area) PHYBIN_NO(get_thread_area)
PHYBIN_NO(epoll_create) PHYBIN_NO(epoll_ctl_old) PHYBIN_NO(epoll_wait_old) PHYBIN_NO(epoll_wait) PHYBIN_NO(utimes)
PHYBIN_NO(vserver) PHYBIN_NO(inotify_init) PHYBIN_NO(futimesat) PHYBIN_NO(signalfd) PHYBIN_NO(eventfd)
enum Kind { own, pass, none };  // NOLINT(readability-identifier-naming): words of the list
// clang-format on
#undef PHYBIN_NO

#define SYSCALL(number, name, arm64, arguments, kind) {#name, arm64, kind == none ? -1 : __NR_##name},
constexpr Arm64Number kNumbers[] = {
#include "worker/syscalls/abi/syscall_list.inc"
};
#undef SYSCALL

}  // namespace

const Arm64Number* arm64_numbers(unsigned& count) {
  count = sizeof kNumbers / sizeof kNumbers[0];
  return kNumbers;
}

}  // namespace phybin::syscalls
