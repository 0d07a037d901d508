// The state of one guest thread as translated code addresses it: x28 points at it.
//
// Memory of a thread, from low to high: its safepoint poll page, then this structure. The poll page ends exactly at
// the structure, so a poll is one `ldur wzr, [x28, #-256]`; it faults when another thread or a signal handler has
// made the page inaccessible. What translated code reads and writes stands within the first 496 bytes (reach of LDP),
// directly behind it the table that indirect jumps probe; registers stand behind that, for the stubs that save all.
#pragma once

#include <cstddef>
#include <cstdint>

namespace phybin {

inline constexpr int kPollDisplacement = -256;  // bytes from the state to the word that safepoints load

// Code that every translation may call, reached through GuestState::stubs: translations hold no host address.
// Contracts (registers in and out) stand in runtime/stubs.S and emit/exits.cpp.
enum class Stub : uint8_t {
  kResolveSlot,  // x17 = address of a slot pair whose first slot is empty, flags canonical
  kLookup,       // x16 = guest target whose table probe missed, flags canonical
  kReturnMiss,   // x16 = guest target, flags canonical, shadow stack popped
  kSyscall,      // x16 = guest address of the next instruction
  kTrap,         // x16 = guest address of the trapping instruction, w17 = TrapKind | imm << 8
  kHelper,       // w16 = LightHelper, arguments in x1..x3, results x0, x1; keeps all but x0-x7, x16, x17, x30
  kHelperState,  // w16 = StateHelper, arguments in x1, x2, x3 = guest address of the instruction; whole guest state
                 // is in memory meanwhile; may not return here
  kX87Add,  // x0 = significand, x1 = sign and exponent, x2 and x3 likewise, x16 = control block; result x0, x1, or
            // x0 = 0 if they are not ordinary numbers; changes x0-x5, x16, x17, x30, NZCV (x87_arithmetic.S)
  kX87Multiply,  // the same
  kX87Compare,   // operands likewise; x0 = 1 and canonical flags, or x0 = 0
  kCount
};

inline constexpr unsigned kLookupBits = 11;
inline constexpr unsigned kLookupEntries = 1u << kLookupBits;
// Key bit of table and shadow stack entries whose code needs canonical flags on entry (docs/design.md, "Flags at
// exits").
inline constexpr uint64_t kNeedsFlags = uint64_t{1} << 63;

struct LookupEntry {
  uint64_t key;   // guest address, | kNeedsFlags; 1 (no code stands there) when empty
  uint64_t code;  // host address
};

struct alignas(16) GuestState {
  uint64_t rip = 0;
  uint64_t fs_base = 0;
  uint64_t gs_base = 0;
  int64_t direction = 1;          // DF: 1 or -1
  uint64_t system_flags = 0x202;  // RFLAGS bits that are neither arithmetic nor DF (IF, TF, AC, ID, NT ...)
  uint64_t nzcv = 0;              // host layout, canonical polarity (C = !CF), while outside translated code
  uint64_t pf_raw = 0;
  uint64_t af_raw = 0;
  uint64_t host_sp = 0;       // stack of the worker's own code on this thread
  uint64_t shadow_stack = 0;  // x27 while outside translated code
  uint32_t mxcsr = 0x1f80;    // control bits and the exception flags already collected from FPSR
  uint32_t fpcr = 0;          // host FPCR that goes with mxcsr
  uint64_t stubs[static_cast<unsigned>(Stub::kCount)] = {};
  uint64_t spill[8] = {};
  alignas(16) uint8_t x87[192] = {};  // X87State (runtime/helpers/x87_state.h); MMX registers are its significands
  uint64_t reserved_hot[2] = {};
  LookupEntry lookup[kLookupEntries];

  alignas(16) uint64_t gpr[16] = {};
  alignas(16) uint64_t xmm[16][2] = {};
  alignas(16) uint64_t ymm_high[16][2] = {};
  alignas(16) uint64_t vec_spill[16][2] = {};  // operands of cold paths
  uint64_t fpsr_collected = 0;
};

static_assert(offsetof(GuestState, lookup) <= 496 && offsetof(GuestState, lookup) % 16 == 0);

}  // namespace phybin
