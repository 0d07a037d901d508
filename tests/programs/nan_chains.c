// NaNs in chains of floating-point operations: which one comes out, and what each place shows where the guest may
// look in between: registers at a fault, memory, comparisons, both sides of a branch, the next round of a loop, the
// exception flags. Prints digests; those of an x86_64 CPU are right.
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "check.h"

typedef struct {
  uint64_t q[2];
} __attribute__((aligned(16))) Vector;

// What the code works on: RDI points to it. `unreadable` is what RSI points to, RDX is an offset, RCX a count.
static struct {
  Vector xmm[16];  // loaded before, stored behind
  Vector in[8], out[8];
  uint32_t mxcsr, rounds;
} state;
static char* unreadable;

static const uint64_t kDoubles[] = {0,
                                    0x8000000000000000,
                                    0x3ff0000000000000,
                                    0xbff8000000000000,
                                    0x4008000000000000,
                                    0x7ff0000000000000,
                                    0xfff0000000000000,
                                    0x7ff8000000000000,
                                    0xfff8000000000000,
                                    0x7ff8000000000123,
                                    0xfffc000000000456,
                                    0x7ff0000000000789,
                                    0xfff0000000000abc,
                                    0x0000000000000001,
                                    0x7fefffffffffffff,
                                    0x7fc000007fc00000};
static const uint32_t kFloats[] = {0,          0x80000000, 0x3f800000, 0xbfc00000, 0x40400000, 0x7f800000,
                                   0xff800000, 0x7fc00000, 0xffc00000, 0x7fc00123, 0xffe00456, 0x7f800789,
                                   0xff800abc, 0x00000001, 0x7f7fffff, 0x41200000};

static uint64_t random_state;
static unsigned random_below(unsigned n) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(random_state >> 33) % n;
}

// Numbers for the most part, so that the NaN is made at one place of a chain and then at another.
static void fill(Vector* v, int floats) {
  const unsigned special = random_below(3) == 0 ? 16 : 6;
  for (int i = 0; i < 2; ++i) {
    if (floats)
      v->q[i] = (uint64_t)kFloats[random_below(special)] << 32 | kFloats[random_below(special)];
    else
      v->q[i] = kDoubles[random_below(special)];
  }
}

static uint64_t digest;
static void add(const void* data, size_t size) {
  for (const unsigned char* p = data; size-- != 0; ++p) digest = (digest ^ *p) * 0x100000001b3;
}

static void* skip_to;
static int faults;
static void handle(int signal, siginfo_t* info, void* context) {
  ucontext_t* uc = context;
  (void)signal;
  ++faults;
  const int64_t fault_offset = (char*)info->si_addr - unreadable;
  const int32_t from_end = (int32_t)((char*)skip_to - (char*)uc->uc_mcontext.gregs[REG_RIP]);
  add(&info->si_code, sizeof info->si_code);
  if (info->si_code > 0 && info->si_code != SI_KERNEL) add(&fault_offset, sizeof fault_offset);
  add(&from_end, sizeof from_end);
  add(uc->uc_mcontext.fpregs->_xmm, 256);
  add(&uc->uc_mcontext.gregs[REG_RAX], 8);
  add(&uc->uc_mcontext.gregs[REG_RCX], 8);
  uc->uc_mcontext.gregs[REG_RIP] = (greg_t)skip_to;
}

#define EACH_XMM(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define LOAD(n) "movups " #n "*16(%%rdi), %%xmm" #n "\n"
#define STORE(n) "movups %%xmm" #n ", " #n "*16(%%rdi)\n"
#define CLOBBER(n) "xmm" #n,

// A case is a function, so that its code is translated once and then meets all kinds of numbers.
#define CASE(name, floats, code)                                                                         \
  static void name##_run(uint64_t rdx) {                                                                 \
    uint64_t rax = 0, rcx = 3;                                                                           \
    asm volatile("leaq 9f(%%rip), %%r11\n movq %%r11, %[skip]\n" EACH_XMM(                               \
                     LOAD) "ldmxcsr %[csr]\n jmp 1f\n 1:\n" code "\n9: stmxcsr %[csr]\n" EACH_XMM(STORE) \
                 : [skip] "=m"(skip_to), [csr] "+m"(state.mxcsr), "+a"(rax), "+c"(rcx), "+d"(rdx)        \
                 : "D"(&state), "S"(unreadable)                                                          \
                 : EACH_XMM(CLOBBER) "r8", "r11", "memory", "cc");                                       \
    add(&rax, 8);                                                                                        \
    add(&rcx, 8);                                                                                        \
  }                                                                                                      \
  static void name(void) { test(#name, floats, name##_run); }

static void test(const char* name, int floats, void (*run)(uint64_t)) {
  enum { kCases = 600 };
  digest = 0xcbf29ce484222325;
  random_state = 1;
  faults = 0;
  unsigned flags = 0;
  for (int i = 0; i < kCases; ++i) {
    for (int k = 0; k < 16; ++k) fill(&state.xmm[k], floats);
    for (int k = 0; k < 8; ++k) fill(&state.in[k], floats);
    memset(state.out, 0, sizeof state.out);
    state.mxcsr = 0x1f80;
    run(i % 7 == 6 ? 8 : 0);
    const uint32_t invalid_or_zero_divide = state.mxcsr & 5;
    flags |= invalid_or_zero_divide;
    add(&invalid_or_zero_divide, sizeof invalid_or_zero_divide);
    add(state.xmm, sizeof state.xmm);
    add(state.out, sizeof state.out);
  }
  printf("%-24s %016lx %d faults, flags %x\n", name, digest, faults, flags);
}

#define IN(n) "256+" #n "*16(%%rdi)"
#define OUT(n) "384+" #n "*16(%%rdi)"

// Chains.
CASE(multiply_add, 0, "mulpd %%xmm1, %%xmm0\n addpd %%xmm2, %%xmm0")
CASE(multiply_add_memory, 0, "movapd " IN(0) ", %%xmm0\n mulpd %%xmm1, %%xmm0\n addpd " IN(1) ", %%xmm0")
CASE(multiply_add_floats, 1,
     "mulps %%xmm1, %%xmm0\n addps %%xmm2, %%xmm0\n subps %%xmm3, %%xmm0\n divps %%xmm4, %%xmm0")
CASE(scalars, 0, "movsd " IN(0) ", %%xmm0\n mulsd " IN(1) ", %%xmm0\n addsd %%xmm0, %%xmm1\n divsd %%xmm2, %%xmm1\n"
                 "sqrtsd %%xmm1, %%xmm3")
CASE(scalar_floats, 1, "movss " IN(0) ", %%xmm0\n mulss " IN(1) ", %%xmm0\n addss %%xmm0, %%xmm1\n subss %%xmm2, %%xmm1\n"
                       "sqrtss %%xmm1, %%xmm3")
CASE(accumulators, 0,
     "mulpd %%xmm8, %%xmm0\n addpd %%xmm0, %%xmm9\n mulpd %%xmm8, %%xmm1\n addpd %%xmm1, %%xmm10\n mulpd %%xmm8, "
     "%%xmm2\n"
     "addpd %%xmm2, %%xmm11\n mulpd %%xmm8, %%xmm3\n addpd %%xmm3, %%xmm12\n mulpd %%xmm8, %%xmm4\n addpd %%xmm4, "
     "%%xmm13")
CASE(halves, 0, "mulpd %%xmm1, %%xmm0\n addsd %%xmm0, %%xmm2\n unpckhpd %%xmm0, %%xmm0\n addsd %%xmm0, %%xmm2")
CASE(upper_unseen, 0, "mulpd %%xmm1, %%xmm0\n addsd %%xmm0, %%xmm2\n movapd %%xmm2, %%xmm0")
CASE(upper_unseen_kept, 0, "mulpd %%xmm1, %%xmm0\n movapd %%xmm0, %%xmm3\n addsd %%xmm0, %%xmm2")
CASE(elements, 1,
     "mulps %%xmm1, %%xmm0\n unpcklps %%xmm2, %%xmm0\n addps %%xmm3, %%xmm0\n movss %%xmm0, %%xmm4\n"
     "unpckhps %%xmm0, %%xmm5\n movlhps %%xmm0, %%xmm6\n movhlps %%xmm0, %%xmm7")
CASE(horizontal, 0, "addpd %%xmm1, %%xmm0\n haddpd %%xmm2, %%xmm0\n addsubpd %%xmm3, %%xmm0\n hsubpd %%xmm0, %%xmm4")
CASE(horizontal_floats, 1, "addps %%xmm1, %%xmm0\n haddps %%xmm2, %%xmm0\n addsubps %%xmm3, %%xmm0")
CASE(dot_product, 1,
     "mulps %%xmm1, %%xmm0\n mulps %%xmm3, %%xmm2\n addps %%xmm0, %%xmm2\n haddps %%xmm2, %%xmm2\n"
     "haddps %%xmm2, %%xmm2")
CASE(squares, 0,
     "subsd %%xmm1, %%xmm0\n mulsd %%xmm0, %%xmm0\n subsd %%xmm3, %%xmm2\n mulsd %%xmm2, %%xmm2\n"
     "addsd %%xmm2, %%xmm0\n sqrtsd %%xmm0, %%xmm4\n divsd %%xmm4, %%xmm5")
CASE(register_reused, 0,
     "mulpd %%xmm1, %%xmm0\n movapd %%xmm0, %%xmm2\n movapd %%xmm3, %%xmm0\n subpd %%xmm2, %%xmm0\n"
     "movapd %%xmm4, %%xmm1\n addpd %%xmm0, %%xmm1")
CASE(same_twice, 0, "mulpd %%xmm0, %%xmm0\n subpd %%xmm0, %%xmm0\n divpd %%xmm0, %%xmm0\n addpd %%xmm0, %%xmm0")
// Bits of one format taken for the other one's.
CASE(formats_mixed, 1, "mulps %%xmm1, %%xmm0\n addpd %%xmm2, %%xmm0\n subps %%xmm3, %%xmm0\n sqrtsd %%xmm0, %%xmm4")
CASE(roots_mixed, 1, "sqrtps %%xmm1, %%xmm0\n sqrtsd %%xmm0, %%xmm4\n sqrtss %%xmm4, %%xmm5")
CASE(integers_mixed, 1,
     "cvtdq2pd %%xmm1, %%xmm0\n addps %%xmm2, %%xmm0\n movabsq $0x40001fe0001e2400, %%r8\n xorps %%xmm3, %%xmm3\n "
     "cvtsi2sdq %%r8, %%xmm3\n "
     "subss %%xmm3, %%xmm4")

// Somebody looks in between.
CASE(stored, 0, "mulpd %%xmm1, %%xmm0\n movapd %%xmm0, " OUT(0) "\n addpd %%xmm2, %%xmm0\n movsd %%xmm0, " OUT(1))
CASE(bits, 0,
     "mulpd %%xmm1, %%xmm0\n xorpd %%xmm2, %%xmm0\n addpd %%xmm3, %%xmm0\n andpd %%xmm2, %%xmm0\n"
     "sqrtpd %%xmm0, %%xmm5")
CASE(sign_moved, 0,
     "mulsd %%xmm1, %%xmm0\n movmskpd %%xmm0, %%eax\n addsd %%xmm2, %%xmm0\n movq %%xmm0, %%r8\n addq %%r8, %%rax")
CASE(compared, 0,
     "mulsd %%xmm1, %%xmm0\n ucomisd %%xmm0, %%xmm2\n setp %%al\n addsd %%xmm3, %%xmm0\n comisd %%xmm0, %%xmm4\n"
     "setb %%ah\n divsd %%xmm5, %%xmm0")
CASE(maximum, 0, "mulpd %%xmm1, %%xmm0\n maxpd %%xmm0, %%xmm2\n addpd %%xmm2, %%xmm3\n minpd %%xmm3, %%xmm0")
CASE(mask, 0, "addpd %%xmm1, %%xmm0\n cmpltpd %%xmm0, %%xmm2\n andpd %%xmm2, %%xmm0\n addpd %%xmm3, %%xmm0")
CASE(converted, 0, "mulsd %%xmm1, %%xmm0\n cvtsd2ss %%xmm0, %%xmm2\n cvttsd2si %%xmm0, %%rax\n addsd %%xmm3, %%xmm0")
CASE(shuffled, 1,
     "mulps %%xmm1, %%xmm0\n shufps $0x1b, %%xmm0, %%xmm0\n addps %%xmm2, %%xmm0\n pshufd $0x4e, %%xmm0, %%xmm3")
CASE(rounding, 0, "mulpd %%xmm1, %%xmm0\n stmxcsr " OUT(0) "\n orl $0x6000, " OUT(0) "\n ldmxcsr " OUT(0) "\n addpd %%xmm2, %%xmm0\n"
                  "movl $0, " OUT(0))
CASE(branch, 0,
     "mulsd %%xmm1, %%xmm0\n testq %%rdx, %%rdx\n jne 2f\n addsd %%xmm2, %%xmm0\n jmp 3f\n 2: subsd %%xmm3, %%xmm0\n"
     "3: addsd %%xmm4, %%xmm0")
CASE(called, 0, "mulsd %%xmm1, %%xmm0\n call 2f\n addsd %%xmm4, %%xmm0\n jmp 9f\n 2: addsd %%xmm2, %%xmm0\n ret")
CASE(flags_alive, 0, "cmpq $0, %%rdx\n mulpd %%xmm1, %%xmm0\n addpd %%xmm2, %%xmm0\n sete %%al\n adcq $5, %%rax")
CASE(flags_of_comparison, 0,
     "ucomisd %%xmm3, %%xmm4\n mulsd %%xmm1, %%xmm0\n addsd %%xmm2, %%xmm0\n setnp %%al\n setbe %%ah")

// Faults in the midst: with RDX = 8 of what must be aligned, always of what is unreadable.
CASE(fault_operand, 0,
     "movapd " IN(0) ", %%xmm0\n mulpd %%xmm1, %%xmm0\n addpd 256+16(%%rdi,%%rdx), %%xmm0\n subpd %%xmm2, %%xmm0")
CASE(fault_second, 0,
     "mulpd %%xmm1, %%xmm0\n addpd " IN(1) ", %%xmm0\n subpd 256+32(%%rdi,%%rdx), %%xmm0\n divpd " IN(3) ", %%xmm0")
CASE(fault_unreadable, 0, "movsd " IN(0) ", %%xmm0\n mulsd %%xmm1, %%xmm0\n addsd %%xmm0, %%xmm2\n subsd 40(%%rsi), %%xmm2\n"
                          "mulsd %%xmm2, %%xmm0")
CASE(fault_late, 0, "movsd " IN(0) ", %%xmm0\n movsd " IN(1) ", %%xmm3\n mulsd %%xmm1, %%xmm0\n mulsd %%xmm1, %%xmm3\n addsd %%xmm0, %%xmm3\n"
                    "movsd 8(%%rsi), %%xmm4\n addsd %%xmm4, %%xmm3")
CASE(fault_after_change, 0,
     "movsd " IN(0) ", %%xmm0\n mulsd %%xmm1, %%xmm0\n incq %%rax\n addsd 16(%%rsi), %%xmm0\n incq %%rax")
CASE(fault_of_store, 0,
     "mulsd %%xmm1, %%xmm0\n addsd %%xmm2, %%xmm0\n movsd %%xmm0, 24(%%rsi)\n mulsd %%xmm0, %%xmm0")
CASE(fault_first, 0,
     "movapd %%xmm2, %%xmm0\n movapd 256(%%rdi,%%rdx), %%xmm1\n mulpd %%xmm1, %%xmm0\n addpd " IN(1) ", %%xmm0")
CASE(fault_overtaken, 0,
     "movlpd " IN(0) ", %%xmm0\n addpd %%xmm7, %%xmm0\n subpd %%xmm4, %%xmm0\n sqrtss 256(%%rsi), %%xmm5")
CASE(fault_in_loop, 0, "2: movapd " IN(0) ", %%xmm0\n mulpd %%xmm1, %%xmm0\n addpd 256+16(%%rdi,%%rdx), %%xmm0\n movapd %%xmm0, %%xmm1\n"
                       "cmpq $2, %%rcx\n cmoveq %%rcx, %%rdx\n decq %%rcx\n jne 2b")

// Loops.
CASE(
    loop_sum, 0,
    "2: movsd 256-8(%%rdi,%%rcx,8), %%xmm0\n mulsd 320-8(%%rdi,%%rcx,8), %%xmm0\n decq %%rcx\n addsd %%xmm0, %%xmm1\n"
    "testq %%rcx, %%rcx\n jne 2b")
CASE(loop_packed, 0,
     "2: movapd 256(%%rdi,%%rax), %%xmm0\n mulpd %%xmm1, %%xmm0\n addpd 320(%%rdi,%%rax), %%xmm0\n"
     "movaps %%xmm0, 384(%%rdi,%%rax)\n addq $16, %%rax\n cmpq $64, %%rax\n jne 2b")
CASE(loop_dot, 0,
     "2: movapd 256(%%rdi,%%rax), %%xmm1\n mulpd 320(%%rdi,%%rax), %%xmm1\n addq $16, %%rax\n addsd %%xmm1, %%xmm0\n"
     "unpckhpd %%xmm1, %%xmm1\n addsd %%xmm1, %%xmm0\n cmpq $64, %%rax\n jne 2b")
CASE(loop_carried, 0, "2: mulpd %%xmm1, %%xmm0\n addpd %%xmm2, %%xmm1\n subpd %%xmm0, %%xmm2\n decq %%rcx\n jne 2b")
CASE(loop_floats, 1,
     "2: movaps 256(%%rdi,%%rax), %%xmm3\n mulps %%xmm1, %%xmm3\n addps %%xmm3, %%xmm0\n subps %%xmm3, %%xmm2\n"
     "addq $16, %%rax\n cmpq $64, %%rax\n jne 2b")

int main(void) {
  unreadable = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_NODEFER};
  sigaction(SIGSEGV, &action, NULL);
  multiply_add(), multiply_add_memory(), multiply_add_floats(), scalars(), scalar_floats(), accumulators(), halves();
  upper_unseen(), upper_unseen_kept(), elements(), horizontal(), horizontal_floats(), dot_product(), squares();
  register_reused(), same_twice(), formats_mixed(), roots_mixed(), integers_mixed();
  stored(), bits(), sign_moved(), compared(), maximum(), mask(), converted(), shuffled(), rounding(), branch();
  called(), flags_alive(), flags_of_comparison();
  fault_operand(), fault_second(), fault_unreadable(), fault_late(), fault_after_change(), fault_of_store();
  fault_first(), fault_overtaken(), fault_in_loop();
  loop_sum(), loop_packed(), loop_dot(), loop_carried(), loop_floats();
  return finish("nan chains");
}
