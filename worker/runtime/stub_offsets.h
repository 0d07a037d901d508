// Offsets and numbers that the assembly stubs share with C++; thread.cpp checks each against the structures.
#pragma once

#define STATE_RIP 0
#define STATE_NZCV 40
#define STATE_PF 48
#define STATE_AF 56
#define STATE_HOST_SP 64
#define STATE_SHADOW 72
#define STATE_MXCSR 80
#define STATE_FPCR 84
#define STATE_LOOKUP 448
#define STATE_GPR (STATE_LOOKUP + (16 << LOOKUP_MASK_BITS))
#define STATE_XMM (STATE_GPR + 128)
#define STATE_FPSR (STATE_XMM + 768)

#define THREAD_HELPER_RETURN (STATE_FPSR + 16)
#define THREAD_SHADOW_TOP (THREAD_HELPER_RETURN + 8)
#define THREAD_SHADOW_BOTTOM (THREAD_HELPER_RETURN + 16)
#define THREAD_LEAVE_HELPER (THREAD_HELPER_RETURN + 24)
#define THREAD_PENDING (THREAD_HELPER_RETURN + 32)
#define THREAD_TRAP_INFO (THREAD_HELPER_RETURN + 40)
#define THREAD_SLOT (THREAD_HELPER_RETURN + 48)
#define THREAD_CODE_INDEX (THREAD_HELPER_RETURN + 56)
#define THREAD_RESOLVED (THREAD_HELPER_RETURN + 64)

#define CODE_INDEX_MULTIPLIER 0x9e3779b97f4a7c15

// Why translated code was left.
#define EXIT_LOOKUP 0
#define EXIT_SLOT 1
#define EXIT_SYSCALL 2
#define EXIT_TRAP 3
// From here on guest state must be rebuilt first (dispatcher.cpp).
#define EXIT_FAULT 4
#define EXIT_SAFEPOINT 5
#define EXIT_HELPER 6
#define EXIT_TRAP_IN_PLACE 7  // as EXIT_TRAP, but by a BRK that the location tables know
#define EXIT_ALIGNMENT 8

#define LOOKUP_MASK_BITS 11

// In the x87 control block (translator/x87_interface.h).
#define X87_C1_BIT 25
#define X87_PRECISION_BIT 21
