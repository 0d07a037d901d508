// Processes that die of signals are seen by their parent to have died of them.
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static volatile int zero;

static void by_kill_term(void) { kill(getpid(), SIGTERM); }
static void by_abort(void) { abort(); }
static void by_null(void) { *(volatile int*)(uintptr_t)zero = 1; }
static void by_division(void) { zero = 1000 / zero; }
static void by_ud2(void) { asm volatile("ud2"); }
static void by_int3(void) { asm volatile("int3"); }
static void by_alarm(void) {
  alarm(1);
  for (;;) ++*(volatile int*)&zero;
}
static void by_raised_segv(void) { raise(SIGSEGV); }
static void by_kill(void) { kill(getpid(), SIGKILL); }
static void by_realtime(void) { raise(SIGRTMIN + 1); }
static void by_pipe(void) {
  int ends[2];
  if (pipe(ends) != 0) return;
  close(ends[0]);
  if (write(ends[1], "x", 1) == 1) _exit(3);
}
static void by_blocked_segv(void) {
  sigset_t set;
  sigfillset(&set);
  sigprocmask(SIG_SETMASK, &set, NULL);
  signal(SIGSEGV, SIG_IGN);
  by_null();
}
static void by_cpu_limit(void) {
  struct rlimit limit = {1, 2};
  setrlimit(RLIMIT_CPU, &limit);
  for (;;) ++*(volatile int*)&zero;
}
static void not_at_all(void) { raise(SIGWINCH); }

static const struct {
  const char* name;
  void (*run)(void);
  int signal;
} deaths[] = {
    {"TERM", by_kill_term, SIGTERM},
    {"abort", by_abort, SIGABRT},
    {"null pointer", by_null, SIGSEGV},
    {"division", by_division, SIGFPE},
    {"ud2", by_ud2, SIGILL},
    {"int3", by_int3, SIGTRAP},
    {"alarm", by_alarm, SIGALRM},
    {"raised SEGV", by_raised_segv, SIGSEGV},
    {"KILL", by_kill, SIGKILL},
    {"real-time", by_realtime, 0},
    {"pipe", by_pipe, SIGPIPE},
    {"blocked SEGV", by_blocked_segv, SIGSEGV},
    {"CPU limit", by_cpu_limit, SIGXCPU},
    {"WINCH", not_at_all, 0},
};

int main(void) {
  struct rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  for (size_t i = 0; i < sizeof deaths / sizeof deaths[0]; ++i) {
    pid_t child = fork();
    if (child == 0) {
      deaths[i].run();
      _exit(42);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    int expected = deaths[i].run == by_realtime ? SIGRTMIN + 1 : deaths[i].signal;
    if (expected == 0 ? !(WIFEXITED(status) && WEXITSTATUS(status) == 42)
                      : !(WIFSIGNALED(status) && WTERMSIG(status) == expected)) {
      printf("%s: status %#x\n", deaths[i].name, status);
      ++failures;
    }
  }
  return finish("signals_death");
}
