// A bytecode interpreter with computed goto, the shape of Python's and of many others: one indirect jump for each
// bytecode instruction. The program that it runs counts primes with a sieve.
#include <string.h>

#include "bench.h"

enum Op { kPush, kLoad, kStore, kAdd, kMul, kLess, kJump, kJumpIfFalse, kGet, kPut, kHalt };
enum Variable { kI, kJ, kPrimes, kVariables };
enum { kLimit = 4000, kPrimesBelowLimit = 550 };

static int code[128];
static int length;

static void emit(int op) { code[length++] = op; }

// Returns the place of the operand, for jumps whose target comes later.
static int emit2(int op, int operand) {
  code[length++] = op;
  code[length++] = operand;
  return length - 1;
}

static void assemble(void) {
  emit2(kPush, 2), emit2(kStore, kI);
  int outer = length;  // while (i < limit)
  emit2(kLoad, kI), emit2(kPush, kLimit), emit(kLess);
  int to_end = emit2(kJumpIfFalse, 0);
  emit2(kLoad, kI), emit(kGet);  // if (prime[i])
  int to_next = emit2(kJumpIfFalse, 0);
  emit2(kLoad, kPrimes), emit2(kPush, 1), emit(kAdd), emit2(kStore, kPrimes);
  emit2(kLoad, kI), emit2(kLoad, kI), emit(kMul), emit2(kStore, kJ);
  int inner = length;  // while (j < limit) prime[j] = 0, j += i
  emit2(kLoad, kJ), emit2(kPush, kLimit), emit(kLess);
  int to_inner_end = emit2(kJumpIfFalse, 0);
  emit2(kPush, 0), emit2(kLoad, kJ), emit(kPut);
  emit2(kLoad, kJ), emit2(kLoad, kI), emit(kAdd), emit2(kStore, kJ);
  emit2(kJump, inner);
  code[to_inner_end] = code[to_next] = length;
  emit2(kLoad, kI), emit2(kPush, 1), emit(kAdd), emit2(kStore, kI);
  emit2(kJump, outer);
  code[to_end] = length;
  emit(kHalt);
}

static unsigned char memory[kLimit];

static __attribute__((noinline)) long interpret(void) {
  static const void* const labels[] = {&&push, &&load,          &&store, &&add, &&mul, &&less,
                                       &&jump, &&jump_if_false, &&get,   &&put, &&halt};
  long stack[16], variables[kVariables] = {0};
  long* top = stack;
  const int* pc = code;
#define NEXT goto* labels[*pc++]
  NEXT;
push:
  *top++ = *pc++;
  NEXT;
load:
  *top++ = variables[*pc++];
  NEXT;
store:
  variables[*pc++] = *--top;
  NEXT;
add:
  top--;
  top[-1] += top[0];
  NEXT;
mul:
  top--;
  top[-1] *= top[0];
  NEXT;
less:
  top--;
  top[-1] = top[-1] < top[0];
  NEXT;
jump:
  pc = code + *pc;
  NEXT;
jump_if_false:
  pc = *--top ? pc + 1 : code + *pc;
  NEXT;
get:
  top[-1] = memory[top[-1]];
  NEXT;
put:
  top -= 2;
  memory[top[1]] = (unsigned char)top[0];
  NEXT;
halt:
  return variables[kPrimes];
}

int main(int argc, char** argv) {
  uint64_t digest = 1;
  assemble();
  for (long round = bench_size(argc, argv); round > 0; round--) {
    memset(memory, 1, sizeof memory);
    long primes = interpret();
    bench_require(primes == kPrimesBelowLimit, "number of primes");
    digest = bench_mix(digest, (uint64_t)primes + memory[round % kLimit]);
  }
  return bench_finish("interp", digest);
}
