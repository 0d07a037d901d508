// Handlers, masks, alternate stacks, faults that are repaired, longjmp out of a handler, interrupted calls.
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

static char* page;
static sigjmp_buf again;
static volatile sig_atomic_t ticks, on_alternate;

static void on_fault(int signal, siginfo_t* info, void* data) {
  ucontext_t* context = data;
  char here;
  stack_t stack;
  sigaltstack(NULL, &stack);
  on_alternate = &here > (char*)stack.ss_sp && &here < (char*)stack.ss_sp + stack.ss_size;
  if (info->si_addr == page) {
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
    return;
  }
  printf("signal %d code %d address %p rip %s\n", signal, info->si_code, info->si_addr,
         context->uc_mcontext.gregs[REG_RIP] ? "set" : "zero");
  siglongjmp(again, 1);
}

static void on_tick(int signal) {
  (void)signal;
  ticks++;
}

static void on_trap(int signal, siginfo_t* info, void* data) {
  (void)info;
  ucontext_t* context = data;
  printf("trap %d rax %llx\n", signal, (unsigned long long)context->uc_mcontext.gregs[REG_RAX]);
  context->uc_mcontext.gregs[REG_RAX] = 77;
  if (signal == SIGILL) context->uc_mcontext.gregs[REG_RIP] += 2;
}

int main(void) {
  static char alternate[65536];
  stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
  sigaltstack(&stack, NULL);
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  sigaction(SIGSEGV, &action, NULL);
  sigaction(SIGBUS, &action, NULL);
  page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *page = 5;
  printf("repaired %d, on alternate stack %d\n", *page, on_alternate);
  for (int i = 0; i < 3; i++) {
    if (!sigsetjmp(again, 1)) *(volatile int*)(uintptr_t)(0x10 + i) = 1;
  }
  action.sa_sigaction = on_trap;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGILL, &action, NULL);
  sigaction(SIGTRAP, &action, NULL);
  long rax = 5;
  __asm__ volatile("ud2" : "+a"(rax));
  printf("after ud2 %ld\n", rax);
  rax = 6;
  __asm__ volatile("int3" : "+a"(rax));
  printf("after int3 %ld\n", rax);

  signal(SIGALRM, on_tick);
  struct itimerval interval = {{0, 5000}, {0, 5000}};
  setitimer(ITIMER_REAL, &interval, NULL);
  volatile unsigned long spins = 0;
  while (ticks < 10) spins++;
  memset(&interval, 0, sizeof interval);
  setitimer(ITIMER_REAL, &interval, NULL);
  printf("ticked\n");

  struct sigaction interrupting = {.sa_handler = on_tick};
  sigaction(SIGALRM, &interrupting, NULL);
  interval.it_value.tv_usec = 20000;
  setitimer(ITIMER_REAL, &interval, NULL);
  int ends[2];
  char byte;
  if (pipe(ends)) return 1;
  ssize_t result = read(ends[0], &byte, 1);
  printf("read %zd %s\n", result, result < 0 ? strerror(errno) : "");

  sigset_t set, pending;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigprocmask(SIG_BLOCK, &set, NULL);
  signal(SIGUSR1, on_tick);
  int before = ticks;
  raise(SIGUSR1);
  sigpending(&pending);
  printf("pending %d delivered %d\n", sigismember(&pending, SIGUSR1), ticks - before);
  sigprocmask(SIG_UNBLOCK, &set, NULL);
  printf("delivered %d\n", ticks - before);
  raise(SIGTERM);
  return 0;
}
