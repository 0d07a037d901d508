// Where the worker begins, in front of libc's own beginning.
//
// libc is shown an empty environment. The one on the stack is the guest's: what it says to libc (GLIBC_TUNABLES,
// MALLOC_..., LD_...) it says to the guest's libc, and ours would spend 20,000 instructions on reading all of it. So
// the block that the kernel has put on the stack (argc, argv, null, envp, null, auxiliary vector) is made again below
// it, with an empty envp; strings stay where they are.

  .text
  .global phybin_start
  .type phybin_start, %function
phybin_start:
  mov x19, x0                       // what libc gets in x0
  ldr x1, [sp]
  add x2, sp, #16
  add x2, x2, x1, lsl #3            // envp
  adrp x3, phybin_environment
  str x2, [x3, :lo12:phybin_environment]
1:
  ldr x4, [x2], #8
  cbnz x4, 1b                       // x2: auxiliary vector
  mov x5, x2
2:
  ldp x4, x6, [x5], #16
  cbnz x4, 2b                       // x5: its end
  mov x6, sp
  sub x7, x5, x2
  add x7, x7, x1, lsl #3
  add x7, x7, #24                   // argc and two null words
  sub x7, x6, x7
  and sp, x7, #~15
  mov x7, sp
  add x4, x1, #2                    // argc, argv, null
3:
  ldr x3, [x6], #8
  str x3, [x7], #8
  subs x4, x4, #1
  b.ne 3b
  str xzr, [x7], #8
4:
  ldp x3, x4, [x2], #16
  stp x3, x4, [x7], #16
  cmp x2, x5
  b.ne 4b
  bl phybin_postpone_relocations
  mov x0, x19
  b _start

  .bss
  .balign 8
  .global phybin_environment
phybin_environment:
  .skip 8

  .section .note.GNU-stack, "", %progbits
