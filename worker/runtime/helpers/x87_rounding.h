// Rounding and operand checks shared by the files that implement x87 arithmetic; not for others.
#pragma once

#include "worker/runtime/helpers/x87_float80.h"

namespace phybin::runtime::x87::detail {

struct Rounded {
  uint64_t significand;  // 0 if the carry left it
  bool inexact;
  bool up;
};

// Rounds (hi:lo) so that the lowest `dropped` bits of the significand are zero (dropped < 64).
inline Rounded round_significand(uint16_t sign, uint64_t hi, uint64_t lo, unsigned dropped, uint32_t control) {
  uint64_t kept = hi;
  if (dropped != 0) {
    lo = hi << (64 - dropped) | static_cast<uint64_t>(lo != 0);
    kept = hi >> dropped << dropped;
  }
  bool up = false;
  switch (control & kRoundingControl) {
    case kRoundNearest:
      up = lo >= kIntegerBit + (~(kept >> dropped) & 1);
      break;
    case kRoundDown:
      up = sign != 0 && lo != 0;
      break;
    case kRoundUp:
      up = sign == 0 && lo != 0;
      break;
    default:
      break;
  }
  return {kept + (static_cast<uint64_t>(up) << dropped), lo != 0, up};
}

// Shifts by a variable count: the compiler's own call its library, which does not keep the guest's registers.
inline uint128 shift_right(uint128 v, unsigned count) {
  const uint64_t hi = static_cast<uint64_t>(v >> 64), lo = static_cast<uint64_t>(v);
  if (count >= 64) return count >= 128 ? 0 : hi >> (count - 64);
  return uint128{hi >> count} << 64 | (lo >> count | hi << 1 << (63 - count));
}
inline uint128 shift_left(uint128 v, unsigned count) {
  const uint64_t hi = static_cast<uint64_t>(v >> 64), lo = static_cast<uint64_t>(v);
  if (count >= 64) return count >= 128 ? 0 : uint128{lo << (count - 64)} << 64;
  return uint128{hi << count | lo >> 1 >> (63 - count)} << 64 | lo << count;
}

// Shifts right; the bits lost are kept as a sticky last bit.
inline uint128 shift_right_sticky(uint128 value, uint32_t count) {
  if (count == 0) return value;
  if (count >= 128) return value != 0;
  return shift_right(value, count) | static_cast<uint128>(shift_left(value, 128 - count) != 0);
}

// A format to round to: how many of the 64 bits go, and the exponents (with the bias of 80 bits) of its largest and
// smallest normal numbers.
struct Format {
  unsigned dropped;
  int32_t smallest;
  int32_t largest;
  int32_t adjustment;  // of the exponent after an unmasked overflow or underflow; 0 if nothing is stored then
};

struct Packed {
  uint64_t significand;
  int32_t exponent;  // with the bias of 80 bits; format.smallest too if the significand is denormal
  bool infinite;
};

// The whole of SDM vol. 1, 4.9.1.4 to 4.9.1.6 for a nonzero finite value.
Packed round_to_format(const Wide& v, const Format& format, Context& context);

// A finite nonzero operand with its integer bit set; denormals get exponents below 1.
inline Wide normalize(Float80 v) {
  Wide w{sign_of(v), static_cast<int32_t>(exponent_of(v)), v.significand, 0};
  if (w.exponent == 0) {
    const int shift = __builtin_clzll(w.hi);
    w.hi <<= shift;
    w.exponent = 1 - shift;
  }
  return w;
}

inline Float80 invalid(Context& context) {
  context.raise(kInvalid);
  return kIndefinite;
}

inline Float80 quiet(Float80 v) { return {v.significand | kQuietBit, v.sign_exponent}; }

// Unsupported encodings and NaNs, which come before everything else (SDM vol. 1, table 4-7 and 8.5.1.2): true if the
// result is decided.
bool decided_by_nan(Float80 a, Float80 b, Float80& result, Context& context);
bool decided_by_nan(Float80 v, Float80& result, Context& context);

// Raises DE if there is a denormal operand; true if that is unmasked.
inline bool stopped_by_denormal(Float80 a, Float80 b, Context& context) {
  return (is_denormal(a) || is_denormal(b) || context.source_denormal) && context.raise(kDenormal);
}
inline bool stopped_by_denormal(Float80 v, Context& context) { return stopped_by_denormal(v, v, context); }

}  // namespace phybin::runtime::x87::detail
