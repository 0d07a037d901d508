// Ways of control flow that a shadow stack does not expect: deep recursion, longjmp over many frames, coroutines,
// returns to changed addresses, tail calls; and many indirect targets.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <ucontext.h>

#include "check.h"

__attribute__((noinline)) static uint64_t deep(uint64_t n) { return n == 0 ? 0 : n + deep(n - 1) * 1; }

static jmp_buf jump;

__attribute__((noinline)) static int dive(volatile int n) {
  if (n == 0) longjmp(jump, 1);
  if (n < 0) return 0;
  return dive(n - 1) + 1;
}

static ucontext_t back, sides[3];
static char stacks[3][65536];
static int trace[64], traced;

static void coroutine(int id) {
  for (int i = 0; i < 5; ++i) {
    trace[traced++ & 63] = id * 10 + i;
    swapcontext(&sides[id], &back);
  }
}

static void test_coroutines(void) {
  for (int i = 0; i < 3; ++i) {
    getcontext(&sides[i]);
    sides[i].uc_stack.ss_sp = stacks[i];
    sides[i].uc_stack.ss_size = sizeof stacks[i];
    sides[i].uc_link = &back;
    makecontext(&sides[i], (void (*)(void))coroutine, 1, i);
  }
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 3; ++i) swapcontext(&back, &sides[i]);
  }
  CHECK(traced == 15);
  for (int i = 0; i < 15; ++i) CHECK(trace[i] == i % 3 * 10 + i / 3);
}

// Returns behind the call's own return address.
__attribute__((noinline, naked)) static int skips(void) {
  asm("addq $5, (%rsp)\n movl $1, %eax\n ret");  // 5 bytes: the movl of the caller
}

static int skipped(void) {
  int result;
  asm volatile("call %P1\n movl $2, %%eax\n" : "=a"(result) : "i"(skips) : "rcx", "rdx", "memory");
  return result;
}

typedef int (*operation)(int);
#define OPERATION(n) \
  __attribute__((noinline)) static int operation##n(int x) { return x * 3 + n; }
// clang-format takes them for parts of one declaration.
// clang-format off
OPERATION(0) OPERATION(1) OPERATION(2) OPERATION(3) OPERATION(4) OPERATION(5) OPERATION(6) OPERATION(7)
    // clang-format on
    static const operation operations[] = {operation0, operation1, operation2, operation3,
                                           operation4, operation5, operation6, operation7};

static int compare(const void* a, const void* b) { return *(const int*)a - *(const int*)b; }

int main(void) {
  CHECK(deep(50000) == 50000ull * 50001 / 2);
  volatile int jumps = 0;
  for (volatile int i = 1; i < 300; ++i) {
    if (setjmp(jump) == 0) {
      dive(i);
      CHECK(0);
    } else {
      ++jumps;
    }
  }
  CHECK(jumps == 299);
  test_coroutines();
  for (int i = 0; i < 100; ++i) CHECK(skipped() == 1);
  unsigned value = 1;
  for (int i = 0; i < 100000; ++i) value = (unsigned)operations[(value >> 3) & 7]((int)(value & 0xffff));
  printf("%u\n", value);
  int numbers[1000];
  for (int i = 0; i < 1000; ++i) numbers[i] = (i * 7919) % 1000;
  qsort(numbers, 1000, sizeof numbers[0], compare);
  for (int i = 0; i < 1000; ++i) CHECK(numbers[i] == i);
  return finish("control_flow");
}
