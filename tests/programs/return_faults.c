// RET whose return address cannot be read: the frame names the RET, whatever the translation does around it. Flags of
// the instruction before are still pending, and RET moves RSP by more than an address can hold as a displacement.
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "check.h"

static sigjmp_buf leave;
static uint64_t fault_rip, fault_rsp;

static void on_fault(int signal, siginfo_t* info, void* context) {
  (void)signal;
  (void)info;
  const ucontext_t* c = context;
  fault_rip = (uint64_t)c->uc_mcontext.gregs[REG_RIP];
  fault_rsp = (uint64_t)c->uc_mcontext.gregs[REG_RSP];
  siglongjmp(leave, 1);
}

#define RETURN(name, instruction)                                                               \
  extern const char name##_at[];                                                                \
  __asm__(".text\n" #name ": mov %rdi, %rsp\n add $16, %rsp\n" #name "_at: " instruction "\n"); \
  extern void name(uint64_t stack) __attribute__((noreturn))

RETURN(plain, "ret");
RETURN(small, "ret $16");
RETURN(large, "ret $0x900");
RETURN(largest, "ret $0xfff0");

#define TEST(name)                                      \
  do {                                                  \
    fault_rip = fault_rsp = 0;                          \
    if (sigsetjmp(leave, 1) == 0) name(stack - 16);     \
    CHECK(fault_rip == (uint64_t)(uintptr_t)name##_at); \
    CHECK(fault_rsp == stack);                          \
  } while (0)

int main(void) {
  static char handler_stack[1 << 16];
  const stack_t alternate = {.ss_sp = handler_stack, .ss_size = sizeof handler_stack};
  sigaltstack(&alternate, NULL);
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, NULL);
  void* const nothing = mmap(NULL, 1 << 16, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(nothing != MAP_FAILED);
  const uint64_t stack = (uint64_t)(uintptr_t)nothing + 4096;
  TEST(plain);
  TEST(small);
  TEST(large);
  TEST(largest);
  return finish("faults of returns");
}
