// The sandbox of --compile-image: what is needed goes on working, all else ends the process.
#include "worker/compile/sandbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace phybin {
namespace {

// The status of a child that enters the sandbox and then does `what`; it exits with 0 if that returns.
template <typename What>
int status_of(What what) {
  const pid_t child = fork();
  if (child == 0) {
    compile::enter_sandbox();
    what();
    syscall(SYS_exit_group, 0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

bool filters_work() { return prctl(PR_GET_SECCOMP) >= 0; }

void* map(int protection, int flags, int fd) {
  return reinterpret_cast<void*>(syscall(SYS_mmap, nullptr, 4096, protection, MAP_PRIVATE | flags, fd, 0));
}

TEST(Sandbox, Allowed) {
  EXPECT_EQ(status_of([] {
              char byte;
              syscall(SYS_read, -1, &byte, 1);
              syscall(SYS_write, -1, &byte, 1);
              void* memory = map(PROT_READ | PROT_WRITE, MAP_ANONYMOUS, -1);
              syscall(SYS_mprotect, memory, 4096, PROT_READ);
              syscall(SYS_munmap, memory, 4096);
            }),
            0);
}

TEST(Sandbox, Forbidden) {
  if (!filters_work()) GTEST_SKIP() << "no seccomp here";
  void (*const forbidden[])() = {
      [] { syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY, 0); },
      [] { syscall(SYS_socket, AF_UNIX, SOCK_STREAM, 0); },
      [] { syscall(SYS_execveat, -1, "", nullptr, nullptr, 0); },
      [] { syscall(SYS_kill, 1, 0); },
      [] { map(PROT_READ | PROT_EXEC, MAP_ANONYMOUS, -1); },
      [] { map(PROT_READ, 0, 0); },
      [] { syscall(SYS_mprotect, nullptr, 4096, PROT_READ | PROT_EXEC); },
  };
  for (const auto& what : forbidden) {
    const int status = status_of(what);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) << status;
  }
}

}  // namespace
}  // namespace phybin
