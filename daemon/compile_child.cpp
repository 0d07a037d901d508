// See compile_child.h. Making an image means to read a file that some user chose, so the process that does it is
// given as little as possible: its descriptors (the module, the entry points, the file for the image), limits, the
// lowest priority, no network, and a seccomp filter that lets it open files for reading only and touch no other
// process. What a kernel does not offer is left out: the filter is a second wall, the first one is that the compiler
// is careful.
#include "daemon/compile_child.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "daemon/children.h"

namespace phybin::daemon {
namespace {

constexpr int kFixedArguments = 5;  // name, mode, memory, time, file
constexpr rlim_t kDescriptors = 64;

#if defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#elif defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
constexpr uint32_t kX32 = 0x40000000;
#else
#error "the seccomp filter does not know this architecture"
#endif

// Newer than the headers of the C library; the numbers are the same on all architectures.
constexpr unsigned kIoUringSetup = 425, kOpenAt2 = 437, kClone3 = 435, kLandlockCreate = 444;

// What making an image never needs. Threads and exec stay possible.
constexpr unsigned kRefused[] = {
    SYS_socket,
    SYS_socketpair,
    SYS_connect,
    SYS_bind,
    SYS_listen,
    SYS_accept,
    SYS_accept4,
    SYS_sendto,
    SYS_sendmsg,
    SYS_sendmmsg,
    SYS_recvmsg,
    SYS_recvfrom,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_unshare,
    SYS_setns,
    SYS_swapon,
    SYS_swapoff,
    SYS_reboot,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_open_by_handle_at,
    SYS_name_to_handle_at,
    SYS_unlinkat,
    SYS_renameat,
    SYS_renameat2,
    SYS_mkdirat,
    SYS_linkat,
    SYS_symlinkat,
    SYS_mknodat,
    SYS_fchmodat,
    SYS_fchownat,
    SYS_truncate,
    SYS_utimensat,
    SYS_setxattr,
    SYS_lsetxattr,
    SYS_removexattr,
    SYS_lremovexattr,
    SYS_kill,
    SYS_tkill,
    SYS_rt_sigqueueinfo,
    SYS_rt_tgsigqueueinfo,
    SYS_setuid,
    SYS_setgid,
    SYS_setresuid,
    SYS_setresgid,
    SYS_setgroups,
    SYS_capset,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_adjtimex,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_syslog,
    SYS_acct,
    SYS_quotactl,
    SYS_memfd_create,
    SYS_shmget,
    SYS_msgget,
    SYS_semget,
    SYS_mq_open,
    SYS_inotify_init1,
    SYS_fanotify_init,
    kIoUringSetup,
    kLandlockCreate,
#if defined(__x86_64__)
    SYS_unlink,
    SYS_rename,
    SYS_mkdir,
    SYS_rmdir,
    SYS_link,
    SYS_symlink,
    SYS_mknod,
    SYS_chmod,
    SYS_chown,
    SYS_lchown,
    SYS_utime,
    SYS_utimes,
    SYS_futimesat,
    SYS_creat,
    SYS_fork,
    SYS_vfork,
    SYS_modify_ldt,
    SYS_iopl,
    SYS_ioperm,
#endif
};
// Programs fall back to older calls for these.
constexpr unsigned kUnknown[] = {kOpenAt2, kClone3};

struct Open {
  unsigned number, flags_argument;
};
constexpr Open kOpens[] = {
    {SYS_openat, 2},
#if defined(__x86_64__)
    {SYS_open, 1},
#endif
};
constexpr uint32_t kWriting = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY);

sock_filter load(size_t offset) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)); }
sock_filter answer(uint32_t what) { return BPF_STMT(BPF_RET | BPF_K, what); }
sock_filter skip_unless_equal(uint32_t value, uint8_t count) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, count);
}

std::vector<sock_filter> make_filter() {
  std::vector<sock_filter> filter;
  filter.push_back(load(offsetof(seccomp_data, arch)));
  filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0));
  filter.push_back(answer(SECCOMP_RET_KILL_PROCESS));
  filter.push_back(load(offsetof(seccomp_data, nr)));
#if defined(__x86_64__)
  filter.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kX32, 0, 1));
  filter.push_back(answer(SECCOMP_RET_KILL_PROCESS));
#endif
  auto refuse = [&](unsigned number, uint32_t error) {
    filter.push_back(skip_unless_equal(number, 1));
    filter.push_back(answer(SECCOMP_RET_ERRNO | error));
  };
  for (unsigned number : kRefused) refuse(number, EPERM);
  for (unsigned number : kUnknown) refuse(number, ENOSYS);
  for (const Open& open : kOpens) {
    // The flags are in the low half of the argument.
    filter.push_back(skip_unless_equal(open.number, 4));
    filter.push_back(load(offsetof(seccomp_data, args) + open.flags_argument * sizeof(uint64_t)));
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kWriting, 0, 1));
    filter.push_back(answer(SECCOMP_RET_ERRNO | EACCES));
    filter.push_back(answer(SECCOMP_RET_ALLOW));
  }
  // abort() sends itself a signal.
  filter.push_back(skip_unless_equal(SYS_tgkill, 3));
  filter.push_back(load(offsetof(seccomp_data, args)));
  filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(getpid()), 1, 0));
  filter.push_back(answer(SECCOMP_RET_ERRNO | EPERM));
  filter.push_back(answer(SECCOMP_RET_ALLOW));
  return filter;
}

void limit(int resource, rlim_t value) {
  const rlimit both{value, value};
  setrlimit(static_cast<__rlimit_resource>(resource), &both);
}

}  // namespace

std::vector<std::string> caged_command(const CompileLimits& limits, const std::vector<std::string>& command) {
  std::vector<std::string> words = {"phybind-compile", kCompileMode, std::to_string(limits.memory),
                                    std::to_string(limits.cpu_seconds), std::to_string(limits.file_bytes)};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

int run_caged(int argc, char** argv) {
  if (argc <= kFixedArguments) return 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setpriority(PRIO_PROCESS, 0, 19);
  const sched_param no_priority{};
  sched_setscheduler(0, SCHED_BATCH, &no_priority);
  constexpr int kProcess = 1, kBestEffortLowest = 2 << 13 | 7;
  syscall(SYS_ioprio_set, kProcess, 0, kBestEffortLowest);
  unshare(CLONE_NEWNET);
  if (const uint64_t memory = strtoull(argv[2], nullptr, 10); memory != 0) limit(RLIMIT_AS, memory);
  limit(RLIMIT_CPU, strtoull(argv[3], nullptr, 10));
  limit(RLIMIT_FSIZE, strtoull(argv[4], nullptr, 10));
  limit(RLIMIT_NOFILE, kDescriptors);
  limit(RLIMIT_CORE, 0);
  std::vector<sock_filter> filter = make_filter();
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    fprintf(stderr, "without seccomp filter: %s\n", strerror(errno));
  }
  execv(argv[kFixedArguments], argv + kFixedArguments);
  fprintf(stderr, "%s: %s\n", argv[kFixedArguments], strerror(errno));
  return errno == ENOENT ? 127 : 126;
}

}  // namespace phybin::daemon
