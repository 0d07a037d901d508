// Operands that must be aligned (MOVAPS and its like) fault where they are not, whatever an earlier access through
// the same registers has shown: each way in which a register can be changed between two accesses, addresses that
// differ by less than 16, and loops, which check less after their first round.
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

#include "check.h"

static int faults;
static void *skip_to, *expected;
static ucontext_t frame;
static int si_code;

static void handle(int signal, siginfo_t* info, void* context) {
  ucontext_t* uc = context;
  (void)signal;
  ++faults;
  si_code = info->si_code;
  frame = *uc;
  uc->uc_mcontext.gregs[REG_RIP] = (greg_t)skip_to;
}

static unsigned char buffer[1024] __attribute__((aligned(64)));

// Runs code with RDI at an aligned address, RSI 8 bytes above another one, RAX = 0, RBX = 8, RCX = 0, RDX = 1. It
// faults at its label 8, with RCX = rounds; or, with rounds < 0, not at all.
#define RUN(rounds, code)                                                                                 \
  do {                                                                                                    \
    unsigned char *rdi = buffer + 512, *rsi = buffer + 264;                                               \
    uint64_t rax = 0, rbx = 8, rcx = 0, rdx = 1;                                                          \
    faults = 0;                                                                                           \
    memset(buffer, 0, sizeof buffer);                                                                     \
    asm volatile(                                                                                         \
        "leaq 8f(%%rip), %%r11\n movq %%r11, %[expected]\n leaq 9f(%%rip), %%r11\n movq %%r11, %[skip]\n" \
        "movq %%rsp, %%r12\n" code "\n9: movq %%r12, %%rsp\n cld\n"                                       \
        : "+D"(rdi), "+S"(rsi), "+a"(rax), "+b"(rbx), "+c"(rcx),                                          \
          "+d"(rdx), [expected] "=m"(expected), [skip] "=m"(skip_to)                                      \
        :                                                                                                 \
        : "r8", "r9", "r11", "r12", "r13", "xmm0", "xmm1", "xmm2", "memory", "cc");                       \
    const int wanted = (rounds);                                                                          \
    CHECK(faults == (wanted >= 0));                                                                       \
    if (wanted >= 0 && faults == 1) {                                                                     \
      CHECK(frame.uc_mcontext.gregs[REG_RIP] == (greg_t)expected && si_code == SI_KERNEL);                \
      CHECK(frame.uc_mcontext.gregs[REG_RCX] == wanted);                                                  \
    }                                                                                                     \
  } while (0)

#define LOAD "movaps (%%rdi), %%xmm0\n"
// An access that shows that RDI is aligned, then something, then one that must fault, or must not.
#define CHANGED(change) RUN(0, LOAD change "\n8: movaps (%%rdi), %%xmm1")
#define UNCHANGED(change) RUN(-1, LOAD change "\n8: movaps (%%rdi), %%xmm1")

static void test_registers(void) {
  CHANGED("addq $8, %%rdi");
  CHANGED("addq $24, %%rdi");
  CHANGED("subq $-40, %%rdi");
  CHANGED("subq %%rbx, %%rdi");
  CHANGED("addq %%rbx, %%rdi");
  CHANGED("incq %%rdi");
  CHANGED("decq %%rdi");
  CHANGED("leaq 4(%%rdi), %%rdi");
  CHANGED("leaq (%%rdi,%%rbx), %%rdi");
  CHANGED("leaq (%%rdi,%%rbx,2), %%rdi\n leaq -1(%%rdi), %%rdi");
  CHANGED("movq %%rsi, %%rdi");
  CHANGED("xchgq %%rsi, %%rdi");
  CHANGED("xaddq %%rsi, %%rdi");
  CHANGED("pushq %%rsi\n popq %%rdi");
  CHANGED("testq %%rax, %%rax\n cmoveq %%rsi, %%rdi");
  CHANGED("orq %%rbx, %%rdi");
  CHANGED("orq $8, %%rdi");
  CHANGED("xorq $8, %%rdi");
  CHANGED("orb $8, %%dil");
  CHANGED("movb $0x18, %%dil");
  CHANGED("addw $2, %%di");
  CHANGED("btsq $3, %%rdi");
  CHANGED("lock btsq $3, 128+%[skip]\n movq %%rsi, %%rdi");
  CHANGED("movq %%rsi, (%%rdi)\n movq (%%rdi), %%rdi");
  CHANGED("stosb");
  CHANGED("movl $9, %%ecx\n rep stosb");
  CHANGED("movsb");
  CHANGED("movsl");
  CHANGED("scasb");
  CHANGED("cmpsb");
  CHANGED("std\n movsw");
  CHANGED("movq %%rdi, %%rax\n movq %%rsi, %%r13\n cmpxchgq %%r13, %%rdi");
  CHANGED("movq %%rsi, %%xmm2\n movq %%xmm2, %%rdi");
  CHANGED("movq %%rdi, %%rax\n mulq %%rdx\n leaq 3(%%rax), %%rdi");
  CHANGED("call 1f\n jmp 2f\n 1: addq $8, %%rdi\n ret\n 2:");
  CHANGED("testq %%rax, %%rax\n jne 1f\n addq $8, %%rdi\n 1:");
  CHANGED("jmp 2f\n 1: " LOAD "jmp 3f\n 2: addq $8, %%rdi\n 3:");
  UNCHANGED("addq $16, %%rdi");
  UNCHANGED("subq $-48, %%rdi\n addq $-16, %%rdi");
  UNCHANGED("addq $8, %%rdi\n addq $8, %%rdi");
  UNCHANGED("incq %%rdi\n leaq 15(%%rdi), %%rdi");
  UNCHANGED("leaq 8(%%rdi), %%rdi\n andq $-16, %%rdi");
  UNCHANGED("movq %%rsi, %%rdi\n shrq $4, %%rdi\n shlq $4, %%rdi");
  UNCHANGED("pushq %%rdi\n popq %%rdi");
}

static void test_addresses(void) {
  RUN(0, LOAD "8: movaps 8(%%rdi), %%xmm1");
  RUN(0, LOAD "8: movaps 4(%%rdi), %%xmm1");
  RUN(0, LOAD "8: addps 17(%%rdi), %%xmm1");
  RUN(0, LOAD "8: movaps %%xmm1, -8(%%rdi)");
  RUN(0, LOAD "8: movaps (%%rdi,%%rbx), %%xmm1");
  RUN(0, LOAD "8: movaps (%%rdi,%%rdx,4), %%xmm1");
  RUN(0, LOAD "8: movaps (%%rdi,%%rdx,8), %%xmm1");
  RUN(0,
      "movaps (%%rdi,%%rax,8), %%xmm0\n addq $2, %%rax\n movaps (%%rdi,%%rax,8), %%xmm0\n incq %%rax\n"
      "8: movaps (%%rdi,%%rax,8), %%xmm0");
  RUN(0, "movaps (%%rdi,%%rax,8), %%xmm0\n addq $2, %%rax\n 8: movaps (%%rdi,%%rax,4), %%xmm0");
  RUN(0,
      "movaps (%%rdi,%%rax), %%xmm0\n movaps (%%rax,%%rdi), %%xmm1\n addq $8, %%rax\n"
      "8: movaps (%%rax,%%rdi), %%xmm0");
  RUN(0, "movaps 8(%%rsi), %%xmm0\n 8: movaps (%%rsi), %%xmm0");
  RUN(0, "movaps 8(%%rsi), %%xmm0\n addq $16, %%rsi\n 8: movaps (%%rsi), %%xmm0");
  RUN(-1, "movaps 8(%%rsi), %%xmm0\n addq $8, %%rsi\n 8: movaps (%%rsi), %%xmm0");
  RUN(-1, LOAD "movaps 16(%%rdi), %%xmm1\n movaps -32(%%rdi), %%xmm1\n 8: movaps %%xmm1, (%%rdi)");
  RUN(-1, "movaps 8(%%rdi,%%rbx), %%xmm0\n 8: movaps -8(%%rbx,%%rdi), %%xmm1");
  RUN(0,
      "andq $-16, %%rsp\n movaps %%xmm0, -64(%%rsp)\n subq $128, %%rsp\n movaps (%%rsp), %%xmm0\n pushq %%rax\n"
      "8: movaps (%%rsp), %%xmm0");
  RUN(0,
      "andq $-16, %%rsp\n movaps %%xmm0, -64(%%rsp)\n subq $128, %%rsp\n movaps (%%rsp), %%xmm0\n popq %%rax\n"
      "8: movaps (%%rsp), %%xmm0");
  RUN(0, "andq $-16, %%rsp\n subq $136, %%rsp\n 8: movaps (%%rsp), %%xmm0");
  RUN(-1, "andq $-16, %%rsp\n subq $136, %%rsp\n pushq %%rax\n movaps (%%rsp), %%xmm0\n 8: movaps 16(%%rsp), %%xmm0");
  RUN(0, "andq $-16, %%rdi\n 8: movaps 8(%%rdi), %%xmm0");
}

// The body of a loop of up to `most` rounds; RCX counts them.
#define LOOP(rounds, most, body) RUN(rounds, "1:\n" body "\n incq %%rcx\n cmpq $" #most ", %%rcx\n jne 1b")
#define ACCESS "8: movaps (%%rdi), %%xmm0\n"

static void test_loops(void) {
  LOOP(-1, 9, ACCESS "addq $16, %%rdi");
  LOOP(-1, 9, ACCESS "subq $32, %%rdi");
  LOOP(-1, 9, "8: movaps (%%rdi,%%rax), %%xmm0\n addq $16, %%rax\n movaps %%xmm0, (%%rdi,%%rax)");
  LOOP(-1, 9, "8: movaps (%%rdi,%%rax,8), %%xmm0\n addq $2, %%rax");
  LOOP(-1, 9, "8: addps -16(%%rdi), %%xmm0\n leaq 16(%%rdi), %%rdi\n movaps %%xmm0, (%%rdi)");
  LOOP(1, 9, ACCESS "addq $8, %%rdi");
  LOOP(1, 9, ACCESS "addq $17, %%rdi");
  LOOP(1, 9, ACCESS "decq %%rdi");
  LOOP(1, 9, ACCESS "xchgq %%rsi, %%rdi");
  LOOP(1, 9, ACCESS "movq %%rsi, %%rdi\n leaq 8(%%rdi), %%rsi");
  LOOP(1, 9, "8: movaps (%%rdi,%%rax,8), %%xmm0\n addq $1, %%rax");
  LOOP(1, 9, "8: movaps (%%rdi,%%rax), %%xmm0\n movq %%rbx, %%rax");
  LOOP(2, 9, ACCESS "addq %%rax, %%rdi\n movq %%rbx, %%rax");
  LOOP(2, 9, ACCESS "addq %%rax, %%rdi\n movq %%rdx, %%rax\n movq %%rbx, %%rdx");
  LOOP(3, 9, "movaps (%%rdi), %%xmm1\n 8: movaps 64(%%rdi,%%rax), %%xmm0\n cmpq $2, %%rcx\n sete %%al");
  LOOP(4, 9, ACCESS "cmpq $3, %%rcx\n cmoveq %%rsi, %%rdi");
  LOOP(4, 9, ACCESS "cmpq $3, %%rcx\n jne 2f\n addq $8, %%rdi\n 2:");
  LOOP(5, 9, ACCESS "cmpb $4, %%cl\n sete %%al\n shlb $2, %%al\n orb %%al, %%dil");
  // Two loops deep: the inner one's second start is misaligned.
  RUN(11,
      "xorl %%r8d, %%r8d\n 1: movl $0, %%eax\n 2: incq %%rcx\n 8: movaps (%%rdi,%%rax), %%xmm0\n addq $16, %%rax\n"
      "cmpq $64, %%rax\n jne 2b\n incq %%r8\n cmpq $2, %%r8\n jne 3f\n addq $4, %%rdi\n 3: incq %%rcx\n"
      "cmpq $4, %%r8\n jne 1b");
  // Entered in the midst, and at its start from elsewhere.
  RUN(0,
      "movq %%rsi, %%rdi\n jmp 2f\n 1: movaps -16(%%rdi), %%xmm1\n 2:\n 8: movaps (%%rdi), %%xmm0\n addq $16, %%rdi\n"
      "incq %%rcx\n cmpq $9, %%rcx\n jne 1b");
  RUN(3,
      "1: movaps (%%rdi), %%xmm1\n movaps -16(%%rdi), %%xmm0\n addq $16, %%rdi\n incq %%rcx\n cmpq $2, %%rcx\n jne "
      "1b\n"
      "movq %%rsi, %%rdi\n incq %%rcx\n 8: movaps (%%rdi), %%xmm1\n jmp 1b");
  RUN(2,
      "jmp 2f\n 1: incq %%rdi\n 2:\n 8: movaps (%%rdi), %%xmm1\n movaps -16(%%rdi), %%xmm0\n addq $16, %%rdi\n"
      "incq %%rcx\n cmpq $2, %%rcx\n jne 8b\n jmp 1b");
}

int main(void) {
  struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_NODEFER};
  sigaction(SIGSEGV, &action, NULL);
  test_registers();
  test_addresses();
  test_loops();
  return finish("alignment");
}
