// Signals that arrive inside loops must change nothing: at whatever backward branch the translation lets a signal in,
// the guest has to go on with the same registers and flags. One loop for each kind of branch and of pending flags.
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/time.h>

#include "check.h"

static volatile sig_atomic_t ticks;

static void tick(int signal) {
  (void)signal;
  ++ticks;
}

enum { kCount = 300000 };

// Runs `body` until several signals have come during it.
#define LOOP(body)                                \
  do {                                            \
    const int before = ticks;                     \
    int rounds = 0;                               \
    while (ticks - before < 8 && rounds < 4000) { \
      body;                                       \
      ++rounds;                                   \
    }                                             \
    CHECK(ticks - before >= 8);                   \
  } while (0)

static void loop_instruction(void) {
  uint64_t count = kCount, turns = 0;
  __asm__ volatile("1: inc %1\n loop 1b" : "+c"(count), "+r"(turns) : : "cc");
  CHECK(turns == kCount);
  CHECK(count == 0);
}

static void loopne_instruction(void) {
  uint64_t count = kCount, turns = 0;
  __asm__ volatile("1: inc %1\n test %1, %1\n loopne 1b" : "+c"(count), "+r"(turns) : : "cc");
  CHECK(turns == kCount);
}

static void test_of_a_value(void) {
  uint64_t left = kCount, turns = 0;
  __asm__ volatile("1: inc %1\n lea -1(%0), %0\n test %0, %0\n jnz 1b" : "+r"(left), "+r"(turns) : : "cc");
  CHECK(turns == kCount);
}

static void test_of_a_bit(void) {
  uint64_t value = 0, turns = 0;
  __asm__ volatile("1: inc %1\n lea 1(%0), %0\n testl $0x40000, %k0\n jz 1b" : "+r"(value), "+r"(turns) : : "cc");
  CHECK(turns == 0x40000);
}

static void decrement(void) {
  uint64_t left = kCount, turns = 0;
  __asm__ volatile("1: lea 1(%1), %1\n dec %0\n jnz 1b" : "+r"(left), "+r"(turns) : : "cc");
  CHECK(turns == kCount);
}

static void addition_with_carry(void) {
  uint64_t value = 0 - (uint64_t)kCount, turns = 0;
  __asm__ volatile("1: lea 1(%1), %1\n add $1, %0\n jnc 1b" : "+r"(value), "+r"(turns) : : "cc");
  CHECK(turns == kCount);
}

// CF is set before the loop and must be there behind it: neither LEA nor JRCXZ nor DEC changes it.
static void carry_across(void) {
  uint64_t left = kCount;
  uint8_t carry = 0;
  __asm__ volatile("stc\n 1: dec %0\n jnz 1b\n setc %1" : "+r"(left), "=r"(carry) : : "cc");
  CHECK(carry == 1);
}

static void parity(void) {
  uint64_t left = kCount, odd = 0;
  __asm__ volatile("1: mov %0, %%rax\n and $1, %%eax\n jp 2f\n inc %1\n 2: dec %0\n jnz 1b"
                   : "+r"(left), "+r"(odd)
                   :
                   : "rax", "cc");
  CHECK(odd == kCount / 2);
}

static void comparison_of_doubles(void) {
  double value = 0, limit = kCount;
  const double one = 1;
  uint64_t turns = 0;
  __asm__ volatile("1: inc %1\n addsd %3, %0\n comisd %0, %2\n ja 1b"
                   : "+x"(value), "+r"(turns)
                   : "x"(limit), "x"(one)
                   : "cc");
  CHECK(turns == kCount);
}

static void string_instruction(void) {
  static char from[kCount], to[kCount];
  memset(from, 7, sizeof from);
  memset(to, 0, sizeof to);
  const char* source = from;
  char* target = to;
  uint64_t count = kCount;
  __asm__ volatile("rep movsb" : "+S"(source), "+D"(target), "+c"(count) : : "memory");
  CHECK(count == 0 && source == from + kCount && target == to + kCount);
  CHECK(memcmp(from, to, sizeof from) == 0);
}

static void jump_table(void) {
  uint64_t left = kCount, turns = 0;
  __asm__ volatile(
      "lea 1f(%%rip), %%rax\n"
      "1: inc %1\n dec %0\n jz 2f\n jmp *%%rax\n 2:"
      : "+r"(left), "+r"(turns)
      :
      : "rax", "cc");
  CHECK(turns == kCount);
}

int main(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = tick;
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval every = {{0, 1500}, {0, 1500}};
  setitimer(ITIMER_REAL, &every, NULL);
  LOOP(loop_instruction());
  LOOP(loopne_instruction());
  LOOP(test_of_a_value());
  LOOP(test_of_a_bit());
  LOOP(decrement());
  LOOP(addition_with_carry());
  LOOP(carry_across());
  LOOP(parity());
  LOOP(comparison_of_doubles());
  LOOP(string_instruction());
  LOOP(jump_table());
  const struct itimerval off = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &off, NULL);
  return finish("signals in loops");
}
