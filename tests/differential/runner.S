/* The guest side of the differential tests: a static x86_64 program without libc. `runner BATCH RESULTS` maps the
 * batch file, puts the machine into the initial state of each case, jumps to its snippet, and appends the state
 * afterwards to the result file. One write for each case, so that after a crash the number of results names the
 * culprit. Outside the snippets it needs mov, add, sub, cmp, lea, push, pop, pushfq, popfq, jcc, jmp, movups,
 * ldmxcsr, stmxcsr and the system calls open, mmap, write and exit_group: it works under a translator that knows
 * hardly anything yet. If the header asks for it, it also handles the signals of faulting instructions, and takes
 * the state from the signal frame; then rt_sigaction and sigaltstack are needed. */
#include "layout.h"

#define SYS_write 1
#define SYS_open 2
#define SYS_mmap 9
#define SYS_rt_sigaction 13
#define SYS_sigaltstack 131
#define SYS_exit_group 231

#define SA_FLAGS 0x4c000004 /* SA_SIGINFO | SA_RESTORER | SA_ONSTACK | SA_NODEFER */

/* ucontext_t and the parts that it points to (Linux, x86_64) */
#define UC_RIP 168
#define UC_FLAGS 176
#define UC_FPSTATE 224
#define FP_MXCSR 24
#define FP_XMM 160
#define SI_CODE 8
#define SI_ADDR 16

.macro for_each_gpr action
    \action %rax, 0
    \action %rcx, 8
    \action %rdx, 16
    \action %rbx, 24
    \action %rsp, 32
    \action %rbp, 40
    \action %rsi, 48
    \action %rdi, 56
    \action %r8, 64
    \action %r9, 72
    \action %r10, 80
    \action %r11, 88
    \action %r12, 96
    \action %r13, 104
    \action %r14, 112
    \action %r15, 120
.endm
.macro save_gpr register, offset
    mov \register, result + RESULT_GPR + \offset(%rip)
.endm
.macro load_gpr register, offset
    mov entry_gpr + \offset(%rip), \register
.endm

.macro for_each_vector action
    \action 0
    \action 1
    \action 2
    \action 3
    \action 4
    \action 5
    \action 6
    \action 7
    \action 8
    \action 9
    \action 10
    \action 11
    \action 12
    \action 13
    \action 14
    \action 15
.endm
.macro load_xmm number
    movups CASE_VECTOR + 32 * \number(%rbx), %xmm\number
.endm
.macro save_xmm number
    movups %xmm\number, result + RESULT_VECTOR + 32 * \number(%rip)
.endm
.macro load_ymm number
    vmovups CASE_VECTOR + 32 * \number(%rbx), %ymm\number
.endm
.macro save_ymm number
    vmovups %ymm\number, result + RESULT_VECTOR + 32 * \number(%rip)
.endm

.macro save_frame_gpr offset, ucontext_offset
    mov \ucontext_offset(%rdx), %rax
    mov %rax, result + RESULT_GPR + \offset(%rip)
.endm
.macro save_frame_xmm number
    mov FP_XMM + 16 * \number(%rcx), %rax
    mov %rax, result + RESULT_VECTOR + 32 * \number(%rip)
    mov FP_XMM + 16 * \number + 8(%rcx), %rax
    mov %rax, result + RESULT_VECTOR + 32 * \number + 8(%rip)
.endm

    .text
/* Linked at RETURN_ADDRESS: snippets jump here. */
return_point:
    for_each_gpr save_gpr
    lea stack_top(%rip), %rsp
    pushfq
    pop %rax
    mov %rax, result + RESULT_FLAGS(%rip)
    push $2
    popfq
    stmxcsr result + RESULT_MXCSR(%rip)
    ldmxcsr default_mxcsr(%rip)
    mov current_case(%rip), %rbx
    mov CASE_OPTIONS(%rbx), %rax
    and $OPTION_YMM, %rax
    jne 1f
    for_each_vector save_xmm
    jmp 2f
1:  for_each_vector save_ymm
2:  mov CASE_OPTIONS(%rbx), %rax
    and $OPTION_FX, %rax
    je 3f
    fxsave result + RESULT_FX(%rip)
    fninit
3:
finish_case:
    /* A digest of the arena. */
    mov $ARENA_ADDRESS, %rsi
    mov $(ARENA_BYTES / 8), %ecx
    mov $0, %rax
4:  lea (%rax, %rax, 8), %rax
    add (%rsi), %rax
    add $8, %rsi
    sub $1, %ecx
    jne 4b
    mov %rax, result + RESULT_DIGEST(%rip)

    mov current_index(%rip), %rax
    mov %rax, result + RESULT_INDEX(%rip)
    lea result(%rip), %rsi
    mov $RESULT_BYTES, %edx
    mov result_file(%rip), %rdi
    mov $SYS_write, %eax
    syscall
    cmp $RESULT_BYTES, %rax
    jne failed
    mov $BATCH_ADDRESS, %rbx
    mov HEADER_DUMP(%rbx), %rax
    cmp $0, %rax
    je 5f
    mov $ARENA_ADDRESS, %rsi
    mov $ARENA_BYTES, %edx
    mov result_file(%rip), %rdi
    mov $SYS_write, %eax
    syscall
    cmp $ARENA_BYTES, %rax
    jne failed
5:
    mov current_case(%rip), %rbx
    add $CASE_BYTES, %rbx
    mov current_index(%rip), %rbp
    add $1, %rbp
    jmp run_case

/* Signal handler: the result comes from the frame. Nobody returns from it; the next case starts from here. */
handler:
    mov %edi, result + RESULT_SIGNAL(%rip)
    mov SI_CODE(%rsi), %eax
    mov %eax, result + RESULT_SIGNAL + 4(%rip)
    mov SI_ADDR(%rsi), %rax
    mov %rax, result + RESULT_FAULT_ADDRESS(%rip)
    save_frame_gpr 0, 144
    save_frame_gpr 8, 152
    save_frame_gpr 16, 136
    save_frame_gpr 24, 128
    save_frame_gpr 32, 160
    save_frame_gpr 40, 120
    save_frame_gpr 48, 112
    save_frame_gpr 56, 104
    save_frame_gpr 64, 40
    save_frame_gpr 72, 48
    save_frame_gpr 80, 56
    save_frame_gpr 88, 64
    save_frame_gpr 96, 72
    save_frame_gpr 104, 80
    save_frame_gpr 112, 88
    save_frame_gpr 120, 96
    mov UC_RIP(%rdx), %rax
    mov %rax, result + RESULT_RIP(%rip)
    mov UC_FLAGS(%rdx), %rax
    mov %rax, result + RESULT_FLAGS(%rip)
    mov UC_FPSTATE(%rdx), %rcx
    mov FP_MXCSR(%rcx), %eax
    mov %eax, result + RESULT_MXCSR(%rip)
    for_each_vector save_frame_xmm
    lea result + RESULT_FX(%rip), %rdi
    mov $64, %edx
1:  mov (%rcx), %rax
    mov %rax, (%rdi)
    add $8, %rcx
    add $8, %rdi
    sub $1, %edx
    jne 1b
    lea stack_top(%rip), %rsp
    ldmxcsr default_mxcsr(%rip)
    jmp finish_case

restorer:
    jmp failed

    .globl _start
_start:
    mov 16(%rsp), %rdi
    mov $0, %esi
    mov $0, %edx
    mov $SYS_open, %eax
    mov 24(%rsp), %rbp
    syscall
    cmp $0, %eax
    jl failed
    mov %rax, %r8
    mov $BATCH_ADDRESS, %edi
    mov $BATCH_BYTES, %esi
    mov $5, %edx        /* PROT_READ | PROT_EXEC */
    mov $0x12, %r10d    /* MAP_PRIVATE | MAP_FIXED */
    mov $0, %r9d
    mov $SYS_mmap, %eax
    syscall
    cmp $BATCH_ADDRESS, %rax
    jne failed
    mov $ARENA_ADDRESS, %edi
    mov $ARENA_BYTES, %esi
    mov $3, %edx        /* PROT_READ | PROT_WRITE */
    mov $0x32, %r10d    /* MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS */
    mov $-1, %r8
    mov $0, %r9d
    mov $SYS_mmap, %eax
    syscall
    cmp $ARENA_ADDRESS, %rax
    jne failed
    mov %rbp, %rdi
    mov $0x241, %esi    /* O_WRONLY | O_CREAT | O_TRUNC */
    mov $0600, %edx
    mov $SYS_open, %eax
    syscall
    cmp $0, %eax
    jl failed
    mov %rax, result_file(%rip)
    mov $BATCH_ADDRESS, %ebx
    mov HEADER_FAULTS(%rbx), %rax
    cmp $0, %rax
    je 2f
    lea signal_stack(%rip), %rdi
    mov $0, %esi
    mov $SYS_sigaltstack, %eax
    syscall
    cmp $0, %eax
    jne failed
    lea signals(%rip), %rbp
1:  mov (%rbp), %edi
    cmp $0, %edi
    je 2f
    lea action(%rip), %rsi
    mov $0, %edx
    mov $8, %r10d
    mov $SYS_rt_sigaction, %eax
    syscall
    cmp $0, %eax
    jne failed
    add $4, %rbp
    jmp 1b
2:  mov $(BATCH_ADDRESS + HEADER_BYTES), %ebx
    mov $0, %ebp

/* rbx: case record, rbp: its number */
run_case:
    mov $BATCH_ADDRESS, %eax
    cmp HEADER_COUNT(%rax), %rbp
    je done
    mov %rbx, current_case(%rip)
    mov %rbp, current_index(%rip)
    lea stack_top(%rip), %rsp
    mov $0, %rax
    mov %rax, result + RESULT_SIGNAL(%rip)
    mov %rax, result + RESULT_RIP(%rip)
    mov %rax, result + RESULT_FAULT_ADDRESS(%rip)

    mov $ARENA_ADDRESS, %edi
    mov $(ARENA_BYTES / PATTERN_BYTES), %edx
1:  lea CASE_PATTERN(%rbx), %rsi
    mov $(PATTERN_BYTES / 8), %ecx
2:  mov (%rsi), %rax
    mov %rax, (%rdi)
    add $8, %rsi
    add $8, %rdi
    sub $1, %ecx
    jne 2b
    sub $1, %edx
    jne 1b

    mov CASE_OPTIONS(%rbx), %rax
    and $OPTION_FX, %rax
    je 3f
    fxrstor CASE_FX(%rbx)
3:  mov CASE_OPTIONS(%rbx), %rax
    and $OPTION_YMM, %rax
    jne 4f
    for_each_vector load_xmm
    jmp 5f
4:  for_each_vector load_ymm
5:  ldmxcsr CASE_MXCSR(%rbx)
    mov CASE_CODE(%rbx), %rax
    mov %rax, entry_code(%rip)
    /* The registers go through a fixed place: the last loads need no base register. */
    lea CASE_GPR(%rbx), %rsi
    lea entry_gpr(%rip), %rdi
    mov $16, %ecx
6:  mov (%rsi), %rax
    mov %rax, (%rdi)
    add $8, %rsi
    add $8, %rdi
    sub $1, %ecx
    jne 6b
    mov CASE_FLAGS(%rbx), %rax
    push %rax
    popfq
    for_each_gpr load_gpr
    jmp *entry_code(%rip)

done:
    mov $0, %edi
    mov $SYS_exit_group, %eax
    syscall
failed:
    mov $1, %edi
    mov $SYS_exit_group, %eax
    syscall

    .data
default_mxcsr:
    .long 0x1f80
signals: /* SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV */
    .long 4, 5, 7, 8, 11, 0
    .balign 8
action:
    .quad handler, SA_FLAGS, restorer, 0
signal_stack:
    .quad signal_stack_memory, 0, 16384

    .bss
    .balign 64
result:
    .skip RESULT_BYTES
entry_gpr:
    .skip 128
entry_code:
    .skip 8
current_case:
    .skip 8
current_index:
    .skip 8
result_file:
    .skip 8
    .balign 64
    .skip 4096
stack_top:
signal_stack_memory:
    .skip 16384
    .section .note.GNU-stack, "", @progbits
