// See sandbox.h. The filter is for the architecture that this program is built for.
#include "worker/compile/sandbox.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>

namespace phybin::compile {
namespace {

#if defined __aarch64__
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#elif defined __x86_64__
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#else
#error "no filter for this architecture"
#endif

#ifndef SECCOMP_RET_KILL_PROCESS
#define SECCOMP_RET_KILL_PROCESS 0x80000000u
#endif

constexpr uint32_t argument(unsigned i) {
  return static_cast<uint32_t>(offsetof(seccomp_data, args) + i * sizeof(uint64_t));  // its low half, little-endian
}

constexpr sock_filter load(uint32_t offset) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset); }
constexpr sock_filter answer(uint32_t action) { return BPF_STMT(BPF_RET | BPF_K, action); }
// Skips `count` instructions unless what was loaded is `value`.
constexpr sock_filter skip_unless_equal(uint32_t value, uint8_t count) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, count);
}
#define ALLOW(name) skip_unless_equal(SYS_##name, 1), answer(SECCOMP_RET_ALLOW)

constexpr sock_filter kFilter[] = {
    load(offsetof(seccomp_data, arch)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0),
    answer(SECCOMP_RET_KILL_PROCESS),
    load(offsetof(seccomp_data, nr)),
    ALLOW(read),
    ALLOW(write),
    ALLOW(munmap),
    ALLOW(mremap),
    ALLOW(brk),
    ALLOW(madvise),
    ALLOW(futex),
    ALLOW(sched_yield),
    ALLOW(rt_sigreturn),
    ALLOW(sigaltstack),
    ALLOW(exit),
    ALLOW(exit_group),
    // New memory, never executable.
    skip_unless_equal(SYS_mmap, 5),
    load(argument(2)),
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 2, 0),
    load(argument(3)),
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_ANONYMOUS, 4, 0),
    answer(SECCOMP_RET_KILL_PROCESS),
    skip_unless_equal(SYS_mprotect, 3),
    load(argument(2)),
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0),
    answer(SECCOMP_RET_ALLOW),
    answer(SECCOMP_RET_KILL_PROCESS),
};

}  // namespace

void enter_sandbox() {
  // Both fail on kernels without them and under emulators, which is all the same here.
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return;
  sock_fprog program = {sizeof kFilter / sizeof kFilter[0], const_cast<sock_filter*>(kFilter)};
  prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

}  // namespace phybin::compile
