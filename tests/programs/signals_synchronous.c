// Synchronous signals: what the frame says, that registers in it can be changed, alternate stacks, leaving a handler
// by longjmp.
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "check.h"

static volatile int signals;
static siginfo_t last;
static greg_t last_registers[NGREG];
static char* skip_to;
static volatile int on_alternate;
static char alternate[65536];

static void skip(int signal, siginfo_t* info, void* context) {
  ucontext_t* uc = context;
  (void)signal;
  ++signals;
  last = *info;
  memcpy(last_registers, uc->uc_mcontext.gregs, sizeof last_registers);
  char here;
  on_alternate = &here >= alternate && &here < alternate + sizeof alternate;
  if (skip_to) uc->uc_mcontext.gregs[REG_RIP] = (greg_t)skip_to;
}

static void handle(int signal, void (*handler)(int, siginfo_t*, void*), int flags) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | flags;
  sigemptyset(&action.sa_mask);
  CHECK(sigaction(signal, &action, NULL) == 0);
}

// Each instruction stands between labels, with known values in registers; the handler goes on at `after`.
#define FAULT(instruction, rax, rcx)                                                         \
  ({                                                                                         \
    uint64_t result = (uint64_t)(rax), count = (uint64_t)(rcx);                              \
    asm volatile(                                                                            \
        "leaq 2f(%%rip), %%r11\n movq %%r11, %2\n movq $0x1234567, %%r12\n cmpq $5, %%r12\n" \
        "1: " instruction "\n2: nop\n"                                                       \
        : "+a"(result), "+c"(count), "=m"(skip_to)                                           \
        :                                                                                    \
        : "rdx", "r11", "r12", "memory", "cc");                                              \
    result;                                                                                  \
  })

static void test_frames(void) {
  char* none = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char* readable = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  handle(SIGSEGV, skip, 0);
  handle(SIGFPE, skip, 0);
  handle(SIGILL, skip, 0);
  handle(SIGTRAP, skip, 0);

  FAULT("movq 8(%%rax), %%rax", 8, 77);
  CHECK(signals == 1 && last.si_signo == SIGSEGV && last.si_code == SEGV_MAPERR && last.si_addr == (void*)16);
  CHECK(last_registers[REG_RAX] == 8 && last_registers[REG_RCX] == 77 && last_registers[REG_R12] == 0x1234567);
  CHECK(last_registers[REG_TRAPNO] == 14 && (last_registers[REG_ERR] & 7) == 4 && last_registers[REG_CR2] == 16);

  FAULT("movl %%ecx, 4(%%rax)", none, 1);
  CHECK(signals == 2 && last.si_code == SEGV_ACCERR && last.si_addr == none + 4);
  CHECK((last_registers[REG_ERR] & 6) == 6 && last_registers[REG_CR2] == (greg_t)(none + 4));

  FAULT("addl %%ecx, (%%rax)", readable, 1);
  CHECK(signals == 3 && last.si_code == SEGV_ACCERR && (last_registers[REG_ERR] & 2) == 2);
  CHECK(readable[0] == 0);
  CHECK(FAULT("movb (%%rax), %%al", readable, 1) == (uint64_t)readable && signals == 3);

  FAULT("xorl %%edx, %%edx\n divl %%ecx", 10, 0);
  CHECK(signals == 4 && last.si_signo == SIGFPE && last.si_code == FPE_INTDIV);
  CHECK(last_registers[REG_RAX] == 10 && last_registers[REG_RDX] == 0 && last_registers[REG_TRAPNO] == 0);
  FAULT("movl $7, %%edx\n divl %%ecx", 10, 3);
  CHECK(signals == 5 && last.si_signo == SIGFPE && last.si_code == FPE_INTDIV);
  FAULT("cqto\n idivq %%rcx", INT64_MIN, -1);
  CHECK(signals == 6 && last.si_signo == SIGFPE);

  FAULT("ud2", 1, 2);
  CHECK(signals == 7 && last.si_signo == SIGILL && last.si_code == ILL_ILLOPN);
  CHECK(last.si_addr == (void*)last_registers[REG_RIP] && last_registers[REG_TRAPNO] == 6);
  FAULT("int3", 1, 2);
  CHECK(signals == 8 && last.si_signo == SIGTRAP && last_registers[REG_TRAPNO] == 3);
  CHECK(last_registers[REG_RIP] == (greg_t)skip_to);
  FAULT("hlt", 1, 2);
  CHECK(signals == 9 && last.si_signo == SIGSEGV && last.si_code == SI_KERNEL && last_registers[REG_TRAPNO] == 13);
  FAULT("stc\n std\n movq (%%rax), %%rax\n adcl $0, %%ecx", 0, 0);
  asm volatile("cld");
  CHECK((last_registers[REG_EFL] & 0x401) == 0x401);
  FAULT("jmp *%%rax", 0x100, 0);
  CHECK(last.si_signo == SIGSEGV && last.si_addr == (void*)0x100 && last_registers[REG_RIP] == 0x100);
  asm volatile("" ::: "memory");
  FAULT("jmp *%%rax", none, 0);
  CHECK(last.si_signo == SIGSEGV && last.si_addr == none && last.si_code == SEGV_ACCERR);
  munmap(none, 4096);
  munmap(readable, 4096);
}

static void grant(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)context;
  ++signals;
  mprotect((void*)((uintptr_t)info->si_addr & ~4095ul), 4096, PROT_READ | PROT_WRITE);
}

static void test_retry(void) {
  char* memory = mmap(NULL, 16 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  handle(SIGSEGV, grant, 0);
  signals = 0;
  for (int i = 0; i < 16; ++i) memory[i * 4096 + i] = (char)i;
  memset(memory, 3, 16 * 4096);
  CHECK(signals == 16);
  for (int i = 0; i < 16; ++i) mprotect(memory + i * 4096, 4096, PROT_READ);
  char* to = memory;
  long size = 16 * 4096;
  asm volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(9) : "memory");
  CHECK(to == memory + 16 * 4096 && size == 0);
  CHECK(signals == 32 && memory[0] == 9 && memory[16 * 4096 - 1] == 9);
  munmap(memory, 16 * 4096);
}

static sigjmp_buf jump;

static void jump_out(int signal, siginfo_t* info, void* context) {
  (void)info, (void)context;
  siglongjmp(jump, signal);
}

static void test_longjmp(void) {
  handle(SIGSEGV, jump_out, 0);
  handle(SIGFPE, jump_out, 0);
  volatile int caught = 0, zero = 0;
  for (volatile int i = 0; i < 2000; ++i) {
    int signal = sigsetjmp(jump, 1);
    if (signal == 0) {
      if (i & 1)
        *(volatile int*)(uintptr_t)(zero + 8) = 1;
      else
        zero = 1000 / zero;
      CHECK(0);
    } else {
      ++caught;
    }
  }
  CHECK(caught == 2000);
}

static void test_alternate_stack(void) {
  stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
  CHECK(sigaltstack(&stack, NULL) == 0);
  handle(SIGSEGV, skip, SA_ONSTACK);
  FAULT("movq (%%rax), %%rax", 0, 0);
  CHECK(on_alternate);
  stack_t now;
  CHECK(sigaltstack(NULL, &now) == 0 && now.ss_sp == alternate && now.ss_flags == 0);
  handle(SIGSEGV, skip, 0);
  FAULT("movq (%%rax), %%rax", 0, 0);
  CHECK(!on_alternate);
}

__attribute__((noinline)) static int recurse(volatile char* caller) {
  volatile char page[4096];
  page[0] = *caller;
  const int below = recurse(page);
  return below + page[0] + *caller;
}

static void test_stack_overflow(void) {
  handle(SIGSEGV, jump_out, SA_ONSTACK);
  if (sigsetjmp(jump, 1) == 0) {
    char first = 0;
    recurse(&first);
    CHECK(0);
  }
}

static void test_bus_error(void) {
  char name[] = "/tmp/phybin-test-XXXXXX";
  int fd = mkstemp(name);
  unlink(name);
  CHECK(ftruncate(fd, 8192) == 0);
  char* memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(ftruncate(fd, 4096) == 0);
  handle(SIGBUS, skip, 0);
  memory[0] = 1;
  FAULT("movb (%%rax), %%al", memory + 4096, 0);
  CHECK(last.si_signo == SIGBUS && last.si_code == BUS_ADRERR && last.si_addr == memory + 4096);
}

// The floating-point state of a handler is its own.
static void change_float(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info, (void)context;
  unsigned mxcsr;
  asm volatile("stmxcsr %0" : "=m"(mxcsr));
  CHECK(mxcsr == 0x1f80);
  asm volatile("pcmpeqd %%xmm7, %%xmm7\n fninit\n fldz" ::: "xmm7");
}

static void test_float_state(void) {
  handle(SIGUSR1, change_float, 0);
  unsigned mxcsr = 0x3f80, after;
  uint64_t low = 0x1122334455667788, result;
  double ten = 10, back;
  asm volatile("ldmxcsr %0" ::"m"(mxcsr));
  register long rax asm("rax") = 39;  // getpid, then kill
  long pid;
  asm volatile("syscall" : "=a"(pid) : "a"(rax) : "rcx", "r11", "memory");
  asm volatile(
      "fldl %3\n movq %4, %%xmm7\n movl $62, %%eax\n movq %5, %%rdi\n movl $10, %%esi\n syscall\n movq %%xmm7, %0\n"
      "fstpl %1\n stmxcsr %2\n"
      : "=r"(result), "=m"(back), "=m"(after)
      : "m"(ten), "r"(low), "r"(pid)
      : "rax", "rcx", "rdi", "rsi", "r11", "xmm7", "memory");
  CHECK(result == low && back == 10 && after == 0x3f80);
  mxcsr = 0x1f80;
  asm volatile("ldmxcsr %0" ::"m"(mxcsr));
}

int main(void) {
  test_frames();
  test_retry();
  test_longjmp();
  test_alternate_stack();
  test_stack_overflow();
  test_bus_error();
  test_float_state();
  return finish("signals_synchronous");
}
