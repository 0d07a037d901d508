// The borders of translated code: entering it, leaving it, and what it calls in between.
//
// Registers on the translated side are those of emit/homes.h: guest GPRs in x8-x15 and x19-x26, XMM in v0-v15, PF in
// x29, AF in x18, shadow stack in x27, thread state in x28, N Z C V in NZCV with C = !CF. Translated code never touches
// sp, which stays where phybin_enter left it, so light helpers run on the host stack without a switch.

#include "worker/runtime/stub_offsets.h"

#define STATE x28
#define FRAME 176

  .macro FUNCTION name
  .balign 16
  .global \name
  .type \name, %function
\name:
  .endm

// Stores all guest registers; x16, x17, x30 and x0-x7 are free. NZCV must be canonical.
  .macro SAVE_GUEST
  mrs x7, nzcv
  str x7, [STATE, #STATE_NZCV]
  stp x29, x18, [STATE, #STATE_PF]
  str x27, [STATE, #STATE_SHADOW]
  mov x7, #STATE_GPR
  add x7, STATE, x7
  stp x8, x9, [x7]
  stp x10, x11, [x7, #16]
  stp x12, x13, [x7, #32]
  stp x14, x15, [x7, #48]
  stp x19, x20, [x7, #64]
  stp x21, x22, [x7, #80]
  stp x23, x24, [x7, #96]
  stp x25, x26, [x7, #112]
  stp q0, q1, [x7, #128]
  stp q2, q3, [x7, #160]
  stp q4, q5, [x7, #192]
  stp q6, q7, [x7, #224]
  stp q8, q9, [x7, #256]
  stp q10, q11, [x7, #288]
  stp q12, q13, [x7, #320]
  stp q14, q15, [x7, #352]
  mrs x6, fpsr
  mov x7, #STATE_FPSR
  str x6, [STATE, x7]
  .endm

// Loads them all; uses x0-x7.
  .macro LOAD_GUEST
  mov x7, #STATE_FPSR
  ldr x6, [STATE, x7]
  msr fpsr, x6
  mov x7, #STATE_GPR
  add x7, STATE, x7
  ldp q0, q1, [x7, #128]
  ldp q2, q3, [x7, #160]
  ldp q4, q5, [x7, #192]
  ldp q6, q7, [x7, #224]
  ldp q8, q9, [x7, #256]
  ldp q10, q11, [x7, #288]
  ldp q12, q13, [x7, #320]
  ldp q14, q15, [x7, #352]
  ldp x8, x9, [x7]
  ldp x10, x11, [x7, #16]
  ldp x12, x13, [x7, #32]
  ldp x14, x15, [x7, #48]
  ldp x19, x20, [x7, #64]
  ldp x21, x22, [x7, #80]
  ldp x23, x24, [x7, #96]
  ldp x25, x26, [x7, #112]
  ldr x27, [STATE, #STATE_SHADOW]
  ldp x29, x18, [STATE, #STATE_PF]
  ldr x7, [STATE, #STATE_NZCV]
  msr nzcv, x7
  .endm

// The guest's rounding and flush modes hold only in translated code. Writing FPCR is slow and the default is 0.
  .macro HOST_FPCR
  ldr w7, [STATE, #STATE_FPCR]
  cbz w7, 1f
  msr fpcr, xzr
1:
  .endm

  .macro GUEST_FPCR
  ldr w7, [STATE, #STATE_FPCR]
  cbz w7, 1f
  msr fpcr, x7
1:
  .endm

  .text

// uint64_t phybin_enter(GuestState*, uint64_t code)
FUNCTION phybin_enter
  sub sp, sp, #FRAME
  stp x19, x20, [sp]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov STATE, x0
  mov x17, x1
  mov x2, sp
  str x2, [STATE, #STATE_HOST_SP]
  GUEST_FPCR
  LOAD_GUEST
  br x17

// Guest state is in memory; x0 = reason, x28 = state.
FUNCTION phybin_leave
  ldr x1, [STATE, #STATE_HOST_SP]
  mov sp, x1
  HOST_FPCR
  ldp x19, x20, [sp]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #FRAME
  ret

  .macro LEAVE reason
  mov x0, #\reason
  b save_and_leave
  .endm

// The first slot of the pair was empty; flags are canonical now, so the second one will do. If that is empty too, the
// target is looked up, and most often that is all: most slots are used a few times, when a program starts, and to link
// one costs as much as ten look-ups (and a private page of an image). Every eighth use of a slot whose target stands
// in the thread's table, so was jumped to before, links it; and every sixteenth of the others, since targets can drive
// each other out of the table forever.
FUNCTION phybin_stub_resolve_slot   // x17 = slot pair
  ldr x16, [x17, #8]
  cbz x16, 1f
  br x16
1:
  ldr x16, [x17, #16]               // target; in an image relative to its module's text
  adrp x7, phybin_image_place_count
  ldr x7, [x7, #:lo12:phybin_image_place_count]
  cbz x7, 4f
  adrp x6, phybin_image_places
  add x6, x6, #:lo12:phybin_image_places
2:
  ldp x4, x5, [x6], #24             // start, end
  sub x4, x17, x4
  sub x5, x17, x5
  bic x5, x5, x4
  tbnz x5, #63, 3f
  sub x7, x7, #1
  cbnz x7, 2b
  b 4f
3:
  ldr x4, [x6, #-8]                 // text
  add x16, x16, x4
4:
  mov x7, #THREAD_RESOLVED
  ldr x6, [STATE, x7]
  add x6, x6, #1
  str x6, [STATE, x7]
  ubfiz x5, x16, #4, #LOOKUP_MASK_BITS
  add x5, STATE, x5
  ldp x7, x30, [x5, #STATE_LOOKUP]
  and x7, x7, #0x7fffffffffffffff
  sub x7, x7, x16
  cbz x7, 6f
  and x6, x6, #15
  cbz x6, 5f
  mov x17, x5
  b lookup_in_process
6:
  and x6, x6, #7
  cbz x6, 5f
  br x30
5:
  mov x7, #THREAD_SLOT
  str x17, [STATE, x7]
  str x16, [STATE, #STATE_RIP]
  LEAVE EXIT_SLOT

save_and_leave:
  SAVE_GUEST
  b phybin_leave

FUNCTION phybin_stub_syscall        // x16 = next instruction
  str x16, [STATE, #STATE_RIP]
  LEAVE EXIT_SYSCALL

FUNCTION phybin_stub_trap           // x16 = the trapping instruction, w17 = kind | imm << 8
  mov x7, #THREAD_TRAP_INFO
  str x17, [STATE, x7]
  str x16, [STATE, #STATE_RIP]
  LEAVE EXIT_TRAP

// The plain key has missed; code that takes canonical flags stands under the marked key in the same entry. Then the
// process's index (code_index.h), then the images (images.cpp), which are read without a lock; what is found takes the
// entry. Removed code may still be found here: it stays mapped until this thread has passed a safepoint, where the
// table is cleared.
FUNCTION phybin_stub_lookup         // x16 = target, canonical flags
  ubfiz x17, x16, #4, #LOOKUP_MASK_BITS
  add x17, STATE, x17
  ldp x7, x30, [x17, #STATE_LOOKUP]
  eor x7, x7, #0x8000000000000000
  sub x7, x7, x16
  cbnz x7, 1f
  br x30
1:
lookup_in_process:                  // x17 = entry of the thread's table - STATE_LOOKUP
  mov x7, #THREAD_CODE_INDEX
  ldr x7, [STATE, x7]
  ldr x7, [x7]
  ldp x5, x6, [x7]                  // mask, entries
  ldr x4, 9f
  mul x4, x16, x4
  lsr x4, x4, #32
  add x3, x16, #1
2:
  and x2, x4, x5
  add x2, x6, x2, lsl #4
  ldar x1, [x2]
  sub x7, x1, x3
  cbz x7, 3f
  add x4, x4, #1
  cbnz x1, 2b
  b 4f
3:
  ldr x1, [x2, #8]
  cbz x1, 4f
  and x2, x1, #0x8000000000000000
  orr x2, x2, x16
  and x1, x1, #0x7fffffffffffffff
  stp x2, x1, [x17, #STATE_LOOKUP]
  br x1
4:
  adrp x7, phybin_image_table
  ldr x7, [x7, #:lo12:phybin_image_table]
  cbz x7, 8f
  ldr x6, [x7], #16
5:                                  // the image, if any, is among x6 ranges from x7 on
  cbz x6, 8f
  lsr x5, x6, #1
  add x4, x7, x5, lsl #5
  ldp x1, x2, [x4]                  // start; length, mask
  sub x1, x16, x1
  tbnz x1, #63, 6f
  sub x3, x1, w2, uxtw
  tbnz x3, #63, 7f
  add x7, x4, #32
  sub x6, x6, x5
  sub x6, x6, #1
  b 5b
6:
  mov x6, x5
  b 5b
7:
  ldp x6, x7, [x4, #16]             // index, code
  lsr x2, x2, #32
  add w3, w1, #1                    // key
  ldr x5, 9f
  mul x5, x3, x5
  lsr x5, x5, #32
1:
  and x4, x5, x2
  ldr x4, [x6, x4, lsl #3]          // key, code with its mark
  eor w1, w4, w3
  cbz w1, 2f
  add x5, x5, #1
  cbnz w4, 1b
8:
  str x16, [STATE, #STATE_RIP]
  LEAVE EXIT_LOOKUP
2:
  lsr x4, x4, #32
  orr x2, x16, x4, lsl #63
  and x4, x4, #~1
  add x1, x7, x4
  stp x2, x1, [x17, #STATE_LOOKUP]
  br x1
  .balign 8
9:
  .quad CODE_INDEX_MULTIPLIER

// A return whose shadow stack entry was another: the right one may be a few frames out (longjmp, exceptions, tail
// calls that popped), or one that was popped before. Any entry with the right guest address is good, wherever it is.
FUNCTION phybin_stub_return_miss    // x16 = target, canonical flags, entry popped
  mov x6, #THREAD_SHADOW_TOP
  add x6, STATE, x6
  ldp x6, x5, [x6]                  // top, bottom
  // x4 = min(x27, top): popping the sentinel of the empty stack went beyond it.
  sub x7, x6, x27
  tbz x7, #63, 1f
  mov x27, x6
1:
  mov x4, x27
  mov x3, #8
2:
  sub x7, x4, x6
  cbz x7, 4f                        // the sentinel: end of the stack
  ldp x2, x30, [x4], #16
  and x2, x2, #0x7fffffffffffffff
  sub x2, x2, x16
  cbz x2, 6f
  sub x3, x3, #1
  cbnz x3, 2b
4:
  sub x4, x27, #32                  // below the entry just popped
  mov x3, #4
5:
  sub x7, x4, x5
  tbnz x7, #63, phybin_stub_lookup
  ldp x2, x30, [x4]
  cbz x30, phybin_stub_lookup       // never used from here on
  and x2, x2, #0x7fffffffffffffff
  sub x2, x2, x16
  cbz x2, 7f
  sub x4, x4, #16
  sub x3, x3, #1
  cbnz x3, 5b
  b phybin_stub_lookup
6:
  mov x27, x4
  ret x30
7:
  add x27, x4, #16
  ret x30

// w16 = LightHelper, x1-x3 arguments, x0 and x1 results; keeps all but x0-x7, x16, x17, x30. Light helpers are compiled
// such that they keep x8-x15, x18 and the vector registers (worker/CMakeLists.txt), AAPCS64 keeps the rest.
FUNCTION phybin_stub_helper
  mrs x17, nzcv
  stp x17, x30, [sp, #-16]!
  adrp x17, phybin_light_helpers
  add x17, x17, :lo12:phybin_light_helpers
  ldr x17, [x17, w16, uxtw #3]
  mov x0, STATE
  blr x17
  ldp x17, x30, [sp], #16
  msr nzcv, x17
  ret x30

// w16 = StateHelper, x1, x2 arguments, x3 = guest address of the instruction. The return address stays in the thread
// meanwhile: a fault of the helper on guest memory is a fault of the guest instruction there.
FUNCTION phybin_stub_helper_state
  mov x7, #THREAD_HELPER_RETURN
  str x30, [STATE, x7]
  str x3, [STATE, #STATE_RIP]
  SAVE_GUEST
  HOST_FPCR
  adrp x17, phybin_state_helpers
  add x17, x17, :lo12:phybin_state_helpers
  ldr x17, [x17, w16, uxtw #3]
  mov x0, STATE
  blr x17
  mov x7, #THREAD_LEAVE_HELPER
  ldr x6, [STATE, x7]
  cbnz x6, 2f
  mov x7, #THREAD_HELPER_RETURN
  ldr x30, [STATE, x7]
  str xzr, [STATE, x7]
  GUEST_FPCR
  LOAD_GUEST
  ret x30
2:
  str xzr, [STATE, x7]
  mov x0, #EXIT_HELPER
  b phybin_leave

FUNCTION phybin_stubs_end
  nop

// int64_t phybin_syscall(number, a, b, c, d, e, f, pending)
// A signal between the test and the SVC would be noticed only after the call has blocked: its handler finds the pc in
// [begin, end) and moves it to abort. At `end` the call has been made.
FUNCTION phybin_syscall
  mov x8, x0
  mov x0, x1
  mov x1, x2
  mov x2, x3
  mov x3, x4
  mov x4, x5
  mov x5, x6
  .global phybin_syscall_begin
phybin_syscall_begin:
  ldr x9, [x7]
  cbnz x9, phybin_syscall_abort
  svc #0
  .global phybin_syscall_end
phybin_syscall_end:
  ret
  .global phybin_syscall_abort
phybin_syscall_abort:
  mov x0, #-512
  ret

// uint64_t phybin_guarded_copy(void* to, const void* from, uint64_t size)
FUNCTION phybin_guarded_copy
  .global phybin_guarded_begin
phybin_guarded_begin:
  subs x2, x2, #16
  b.lo 2f
1:
  ldp x3, x4, [x1], #16
  stp x3, x4, [x0], #16
  subs x2, x2, #16
  b.hs 1b
2:
  adds x2, x2, #16
  b.eq 4f
  tbz x2, #3, 3f
  ldr x3, [x1], #8
  str x3, [x0], #8
  ands x2, x2, #7
  b.eq 4f
3:
  ldrb w3, [x1], #1
  strb w3, [x0], #1
  subs x2, x2, #1
  b.ne 3b
4:
  mov x0, #0
  ret

// uint64_t phybin_guarded_cas16(void* at, expected low, high, low, high)
FUNCTION phybin_guarded_cas16
1:
  ldaxp x5, x6, [x0]
  cmp x5, x1
  ccmp x6, x2, #0, eq
  b.ne 2f
  stlxp w7, x3, x4, [x0]
  cbnz w7, 1b
  mov x0, #0
  ret
2:
  clrex
  mov x0, #2
  ret
  .global phybin_guarded_end
phybin_guarded_end:
  .global phybin_guarded_fail
phybin_guarded_fail:
  mov x0, #1
  ret

  .section .note.GNU-stack, "", %progbits
