// Guest flags while a thread is outside translated code: between GuestState's raw form and RFLAGS, and from the forms
// that translated code holds them in to the canonical one.
#pragma once

#include <cstdint>

#include "worker/translator/emit/location.h"
#include "worker/translator/guest_state.h"

namespace phybin::runtime {

inline constexpr uint64_t kNzcvN = 1u << 31, kNzcvZ = 1u << 30, kNzcvC = 1u << 29, kNzcvV = 1u << 28;

enum RflagsBit : uint64_t {
  kRflagsCf = 1u << 0,
  kRflagsPf = 1u << 2,
  kRflagsAf = 1u << 4,
  kRflagsZf = 1u << 6,
  kRflagsSf = 1u << 7,
  kRflagsTf = 1u << 8,
  kRflagsIf = 1u << 9,
  kRflagsDf = 1u << 10,
  kRflagsOf = 1u << 11,
  kRflagsNt = 1u << 14,
  kRflagsRf = 1u << 16,
  kRflagsAc = 1u << 18,
  kRflagsId = 1u << 21,
};

// Without branches: every system call puts RFLAGS into R11.
inline uint64_t rflags_of(const GuestState& state) {
  static_assert(kNzcvN >> 24 == kRflagsSf && kNzcvZ >> 24 == kRflagsZf && kNzcvV >> 17 == kRflagsOf);
  // Bit n: n, folded from a byte, has even parity.
  constexpr uint64_t kEvenParity = 0x9669;
  const uint64_t folded = (state.pf_raw ^ (state.pf_raw & 0xff) >> 4) & 15;
  return state.system_flags | 2 | (~state.nzcv >> 29 & kRflagsCf) | (state.nzcv >> 24 & (kRflagsSf | kRflagsZf)) |
         (state.nzcv >> 17 & kRflagsOf) | (kEvenParity >> folded & 1) << 2 |
         ((state.af_raw ^ state.pf_raw) & kRflagsAf) | (static_cast<uint64_t>(state.direction) >> 63) << 10;
}

inline void set_rflags(GuestState& state, uint64_t flags) {
  state.nzcv = ((flags & kRflagsCf) != 0 ? 0 : kNzcvC) | ((flags & kRflagsZf) != 0 ? kNzcvZ : 0) |
               ((flags & kRflagsSf) != 0 ? kNzcvN : 0) | ((flags & kRflagsOf) != 0 ? kNzcvV : 0);
  state.pf_raw = (flags & kRflagsPf) != 0 ? 0 : 1;
  state.af_raw = flags & kRflagsAf;
  state.direction = (flags & kRflagsDf) != 0 ? -1 : 1;
  state.system_flags = (flags & (kRflagsTf | kRflagsNt | kRflagsAc | kRflagsId)) | kRflagsIf | 2;
}

// state.nzcv is as it was in translated code, in `form`.
inline void make_flags_canonical(GuestState& state, emit::FlagForm form) {
  switch (form) {
    case emit::FlagForm::kCanonical:
      break;
    case emit::FlagForm::kDirect:
      state.nzcv ^= kNzcvC;
      break;
    case emit::FlagForm::kLogic:
      state.nzcv = (state.nzcv & (kNzcvN | kNzcvZ)) | kNzcvC;
      break;
    case emit::FlagForm::kFloat: {
      const bool n = (state.nzcv & kNzcvN) != 0, v = (state.nzcv & kNzcvV) != 0, z = (state.nzcv & kNzcvZ) != 0;
      state.nzcv = (z || v ? kNzcvZ : 0) | (n == v ? kNzcvC : 0);
      state.pf_raw = v ? 0 : 1;
      state.af_raw = 0;
      break;
    }
  }
}

}  // namespace phybin::runtime
