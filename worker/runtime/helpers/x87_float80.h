// 80-bit extended-precision arithmetic of the x87, in integers only.
//
// Pure functions on values: every result, NaN payload and exception flag is what an Intel CPU produces for the same
// control word (SDM vol. 1, chapters 4 and 8), so that the guest cannot tell. No host floating point is used: ARM64
// has no 80-bit format, and helpers must leave the vector registers alone.
//
// The common path (normal operands and result, 64-bit precision, round to nearest) is inline here; whatever needs
// more is out of line in x87_float80.cpp.
#pragma once

#include <cstdint>

namespace phybin::runtime::x87 {

using uint128 = unsigned __int128;

// The 80 bits as they lie in memory: FLD m80 reads significand, then sign_exponent.
struct Float80 {
  uint64_t significand = 0;
  uint16_t sign_exponent = 0;

  bool operator==(const Float80&) const = default;
};

inline constexpr int32_t kExponentBias = 16383;
inline constexpr uint32_t kExponentMask = 0x7fff;
inline constexpr uint16_t kSignBit = 0x8000;
inline constexpr uint64_t kIntegerBit = uint64_t{1} << 63;
inline constexpr uint64_t kQuietBit = uint64_t{1} << 62;

// Bits of the status word.
inline constexpr uint32_t kInvalid = 0x0001;
inline constexpr uint32_t kDenormal = 0x0002;
inline constexpr uint32_t kZeroDivide = 0x0004;
inline constexpr uint32_t kOverflow = 0x0008;
inline constexpr uint32_t kUnderflow = 0x0010;
inline constexpr uint32_t kPrecision = 0x0020;
inline constexpr uint32_t kStackFault = 0x0040;
inline constexpr uint32_t kErrorSummary = 0x0080;
inline constexpr uint32_t kC0 = 0x0100;
inline constexpr uint32_t kC1 = 0x0200;
inline constexpr uint32_t kC2 = 0x0400;
inline constexpr uint32_t kTopMask = 0x3800;
inline constexpr uint32_t kC3 = 0x4000;
inline constexpr uint32_t kBusy = 0x8000;
inline constexpr uint32_t kExceptionMask = 0x003f;
inline constexpr uint32_t kConditionMask = kC0 | kC1 | kC2 | kC3;

// Fields of the control word.
inline constexpr uint32_t kPrecisionControl = 0x0300;
inline constexpr uint32_t kRoundingControl = 0x0c00;
inline constexpr uint32_t kRoundNearest = 0x0000;
inline constexpr uint32_t kRoundDown = 0x0400;
inline constexpr uint32_t kRoundUp = 0x0800;
inline constexpr uint32_t kRoundToZero = 0x0c00;
inline constexpr uint32_t kPrecision64 = 0x0300;
inline constexpr uint32_t kDefaultControlWord = 0x037f;

// What an operation reads and reports. After an exception that is unmasked in `control` and detected before the
// operation (IE, DE, ZE), the returned value is meaningless and no further flag is set, as on the CPU, which then
// leaves the destination alone. Unmasked OE and UE give the bias-adjusted result (SDM vol. 1, 8.5.4 and 8.5.5).
struct Context {
  uint32_t control = kDefaultControlWord;
  uint32_t flags = 0;            // status word bits to set: exceptions, and C1 if the result was rounded up
  uint32_t conditions = 0;       // FPREM: which of C0 and C3 it determined
  bool source_denormal = false;  // an operand was a denormal before it was widened to 80 bits

  // Sets exception flags; true if one of them is unmasked.
  bool raise(uint32_t bits) {
    flags |= bits;
    return (bits & ~control & kExceptionMask) != 0;
  }
};

inline constexpr Float80 kIndefinite{kIntegerBit | kQuietBit, 0xffff};

inline uint16_t sign_of(Float80 v) { return v.sign_exponent & kSignBit; }
inline uint32_t exponent_of(Float80 v) { return v.sign_exponent & kExponentMask; }
inline bool is_normal(Float80 v) { return (v.significand >> 63) != 0 && exponent_of(v) - 1 < kExponentMask - 1; }
inline bool is_zero(Float80 v) { return v.significand == 0 && exponent_of(v) == 0; }
inline bool is_infinity(Float80 v) { return exponent_of(v) == kExponentMask && v.significand == kIntegerBit; }
inline bool is_nan(Float80 v) { return exponent_of(v) == kExponentMask && v.significand > kIntegerBit; }
inline bool is_signaling(Float80 v) { return is_nan(v) && (v.significand & kQuietBit) == 0; }
// Denormals and pseudo-denormals: both raise DE.
inline bool is_denormal(Float80 v) { return exponent_of(v) == 0 && v.significand != 0; }
// Unnormals, pseudo-infinities, pseudo-NaNs: encodings of the 8087 that every later FPU rejects.
inline bool is_unsupported(Float80 v) { return exponent_of(v) != 0 && (v.significand >> 63) == 0; }

// The classes of FXAM, as C3, C2, C0 and the sign in C1.
uint32_t classify(Float80 v);

inline Float80 make_zero(uint16_t sign) { return {0, sign}; }
inline Float80 make_infinity(uint16_t sign) { return {kIntegerBit, static_cast<uint16_t>(sign | kExponentMask)}; }
inline Float80 negate(Float80 v) { return {v.significand, static_cast<uint16_t>(v.sign_exponent ^ kSignBit)}; }
inline Float80 absolute(Float80 v) { return {v.significand, static_cast<uint16_t>(v.sign_exponent & ~kSignBit)}; }

// A finite number under construction: hi has its integer bit set, lo holds what lies below the 64-bit significand
// (its last bit sticky); exponent is biased and may leave the format's range.
struct Wide {
  uint16_t sign;
  int32_t exponent;
  uint64_t hi;
  uint64_t lo;
};

// Rounds to the precision that the control word selects, or to 64 bits always, with all exceptions.
Float80 round_and_pack(const Wide& v, Context& context);
Float80 round_and_pack_64(const Wide& v, Context& context);

// Operations whose operands or control are not those of the common path.
Float80 add_slow(Float80 a, Float80 b, Context& context);
Float80 subtract_slow(Float80 a, Float80 b, Context& context);
Float80 multiply_slow(Float80 a, Float80 b, Context& context);
Float80 divide_slow(Float80 a, Float80 b, Context& context);

// (hi:lo) / divisor for hi < divisor and a divisor whose top bit is set: schoolbook division with 32-bit digits, for
// ARM64 divides 64 bits at most.
inline uint64_t divide_128(uint64_t hi, uint64_t lo, uint64_t divisor, uint64_t& remainder) {
  const uint64_t d1 = divisor >> 32;
  const uint64_t d0 = divisor & 0xffffffff;
  const auto digit = [&](uint64_t high, uint64_t next, uint64_t& rest) {
    uint64_t q = high / d1;
    uint64_t r = high - q * d1;
    // q is at most two too large (Knuth vol. 2, 4.3.1).
    while ((q >> 32) != 0 || q * d0 > (r << 32 | next)) {
      --q;
      r += d1;
      if ((r >> 32) != 0) break;
    }
    rest = (high << 32 | next) - q * divisor;
    return q;
  };
  uint64_t rest;
  const uint64_t q1 = digit(hi, lo >> 32, rest);
  const uint64_t q0 = digit(rest, lo & 0xffffffff, remainder);
  return q1 << 32 | q0;
}

namespace detail {

inline Float80 finish(const Wide& v, Context& context) {
  // The exponent is kept one below the largest so that a carry cannot overflow.
  if (__builtin_expect((context.control & (kRoundingControl | kPrecisionControl)) != (kRoundNearest | kPrecision64) ||
                           static_cast<uint32_t>(v.exponent - 1) >= kExponentMask - 2,
                       0)) {
    return round_and_pack(v, context);
  }
  const uint64_t up = v.lo >= kIntegerBit + (~v.hi & 1);  // ties to even
  uint64_t significand = v.hi + up;
  const uint64_t carry = significand == 0;
  significand |= carry << 63;
  if (v.lo != 0) context.flags |= kPrecision | static_cast<uint32_t>(up << 9);
  return {significand, static_cast<uint16_t>(v.sign | (v.exponent + static_cast<int32_t>(carry)))};
}

// Exact zero from operands that are not both zeros of one sign.
inline Float80 cancelled(const Context& context) {
  return make_zero((context.control & kRoundingControl) == kRoundDown ? kSignBit : 0);
}

// a + b for significands with the integer bit set.
inline Float80 add_finite(Wide a, Wide b, Context& context) {
  if (a.exponent < b.exponent || (a.exponent == b.exponent && a.hi < b.hi)) {
    const Wide swapped = a;
    a = b;
    b = swapped;
  }
  const uint32_t distance = static_cast<uint32_t>(a.exponent - b.exponent);
  const uint128 x = uint128{a.hi} << 64;
  uint128 y = uint128{b.hi} << 64;
  if (__builtin_expect(distance <= 64, 1)) {
    y >>= distance;
  } else if (distance < 128) {
    y = b.hi >> (distance - 64) | static_cast<uint64_t>((b.hi << (128 - distance)) != 0);
  } else {
    y = 1;
  }
  if (a.sign == b.sign) {
    uint128 sum = x + y;
    if (sum < x) {
      sum = sum >> 1 | (sum & 1) | uint128{kIntegerBit} << 64;
      ++a.exponent;
    }
    return finish({a.sign, a.exponent, static_cast<uint64_t>(sum >> 64), static_cast<uint64_t>(sum)}, context);
  }
  uint128 difference = x - y;
  uint64_t hi = static_cast<uint64_t>(difference >> 64);
  if (hi == 0) {
    if (difference == 0) return cancelled(context);
    difference <<= 64;
    a.exponent -= 64;
    hi = static_cast<uint64_t>(difference >> 64);
  }
  const int shift = __builtin_clzll(hi);
  difference <<= shift;
  return finish(
      {a.sign, a.exponent - shift, static_cast<uint64_t>(difference >> 64), static_cast<uint64_t>(difference)},
      context);
}

inline Float80 multiply_finite(const Wide& a, const Wide& b, Context& context) {
  uint128 product = uint128{a.hi} * b.hi;
  int32_t exponent = a.exponent + b.exponent - (kExponentBias - 1);
  if ((product >> 127) == 0) {
    product <<= 1;
    --exponent;
  }
  return finish({static_cast<uint16_t>(a.sign ^ b.sign), exponent, static_cast<uint64_t>(product >> 64),
                 static_cast<uint64_t>(product)},
                context);
}

inline Float80 divide_finite(const Wide& a, const Wide& b, Context& context) {
  int32_t exponent = a.exponent - b.exponent + kExponentBias;
  uint64_t remainder;
  uint64_t quotient;
  if (a.hi < b.hi) {
    --exponent;
    quotient = divide_128(a.hi, 0, b.hi, remainder);
  } else {
    quotient = divide_128(a.hi >> 1, a.hi << 63, b.hi, remainder);
  }
  // The rest of the quotient only matters as below, at or above one half; it cannot be exactly one half, because
  // that needs a divisor that has a bit below its 64.
  const uint64_t low = remainder == 0 ? 0 : remainder > b.hi - remainder ? kIntegerBit | 1 : 1;
  return finish({static_cast<uint16_t>(a.sign ^ b.sign), exponent, quotient, low}, context);
}

inline Wide widen(Float80 v) { return {sign_of(v), static_cast<int32_t>(exponent_of(v)), v.significand, 0}; }

}  // namespace detail

inline Float80 add(Float80 a, Float80 b, Context& context) {
  if (__builtin_expect(!is_normal(a) || !is_normal(b), 0)) return add_slow(a, b, context);
  return detail::add_finite(detail::widen(a), detail::widen(b), context);
}

inline Float80 subtract(Float80 a, Float80 b, Context& context) {
  if (__builtin_expect(!is_normal(a) || !is_normal(b), 0)) return subtract_slow(a, b, context);
  return detail::add_finite(detail::widen(a), detail::widen(negate(b)), context);
}

inline Float80 multiply(Float80 a, Float80 b, Context& context) {
  if (__builtin_expect(!is_normal(a) || !is_normal(b), 0)) return multiply_slow(a, b, context);
  return detail::multiply_finite(detail::widen(a), detail::widen(b), context);
}

inline Float80 divide(Float80 a, Float80 b, Context& context) {
  if (__builtin_expect(!is_normal(a) || !is_normal(b), 0)) return divide_slow(a, b, context);
  return detail::divide_finite(detail::widen(a), detail::widen(b), context);
}

Float80 square_root(Float80 v, Context& context);
Float80 round_to_integer(Float80 v, Context& context);      // FRNDINT
Float80 scale(Float80 v, Float80 power, Context& context);  // FSCALE
// FXTRACT: the significand is returned, the exponent stored.
Float80 extract(Float80 v, Float80& exponent, Context& context);
// FPREM (nearest = false) and FPREM1 (true). C0, C3, C1 get the three low bits of the quotient, C2 says that the
// reduction is incomplete; all are in context.flags.
Float80 remainder(Float80 a, Float80 b, bool nearest, Context& context);

// C3, C2, C0 of FCOM (quiet = false: every NaN is invalid) and FUCOM (true: only signaling ones).
uint32_t compare_slow(Float80 a, Float80 b, bool quiet, Context& context);

inline uint32_t compare(Float80 a, Float80 b, bool quiet, Context& context) {
  if (__builtin_expect((!is_normal(a) && !is_zero(a)) || (!is_normal(b) && !is_zero(b)), 0)) {
    return compare_slow(a, b, quiet, context);
  }
  if ((a.significand | b.significand) == 0) return kC3;
  if (sign_of(a) != sign_of(b)) return sign_of(a) != 0 ? kC0 : 0;
  if (a == b) return kC3;
  const bool smaller_magnitude =
      a.sign_exponent < b.sign_exponent || (a.sign_exponent == b.sign_exponent && a.significand < b.significand);
  return smaller_magnitude != (sign_of(a) != 0) ? kC0 : 0;
}

// Operands from memory, widened without any exception: a signaling NaN stays one, a denormal sets source_denormal.
Float80 widen_float32(uint32_t bits, Context& context);
Float80 widen_float64_slow(uint64_t bits, Context& context);

inline Float80 widen_float64(uint64_t bits, Context& context) {
  const uint32_t exponent = static_cast<uint32_t>(bits >> 52) & 0x7ff;
  if (__builtin_expect(exponent - 1 >= 0x7fe, 0)) return widen_float64_slow(bits, context);
  return {kIntegerBit | bits << 11,
          static_cast<uint16_t>((bits >> 48 & kSignBit) | (exponent + kExponentBias - 1023))};
}

inline Float80 from_int64(int64_t value) {
  if (value == 0) return {};
  const uint16_t sign = value < 0 ? kSignBit : 0;
  const uint64_t magnitude = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  const int shift = __builtin_clzll(magnitude);
  return {magnitude << shift, static_cast<uint16_t>(sign | (kExponentBias + 63 - shift))};
}

// FLD m32, FLD m64: as above, with IE for a signaling NaN (then quiet) and DE for a denormal.
Float80 load_widened(Float80 v, Context& context);

// Bits to store; after an unmasked exception other than PE they are meaningless: the CPU then stores nothing.
uint32_t to_float32(Float80 v, Context& context);
uint64_t to_float64_slow(Float80 v, Context& context);

inline uint64_t to_float64(Float80 v, Context& context) {
  const uint32_t exponent = exponent_of(v) - (kExponentBias - 1023);
  if (__builtin_expect(
          !is_normal(v) || exponent - 1 >= 0x7fd || (context.control & kRoundingControl) != kRoundNearest, 0)) {
    return to_float64_slow(v, context);
  }
  const uint64_t rest = v.significand << 53;
  const uint64_t kept = v.significand >> 11;
  const uint64_t up = rest >= kIntegerBit + (~kept & 1);
  if (rest != 0) context.flags |= kPrecision | static_cast<uint32_t>(up << 9);
  // The integer bit adds the one that the exponent is short of, and a carry goes into it.
  return (static_cast<uint64_t>(sign_of(v)) << 48) + (static_cast<uint64_t>(exponent - 1) << 52) + kept + up;
}

// FIST and FISTTP (truncate): a signed integer of 16, 32 or 64 bits, sign-extended; out of range or not a number
// gives IE and the most negative integer of that size.
int64_t to_integer(Float80 v, unsigned bits, bool truncate, Context& context);

// FBLD: 18 digits and a sign in 10 bytes, low 8 bytes in `digits`. Invalid digits are undefined on the CPU, which
// adds them up with their weights; so does this.
Float80 from_packed_decimal(uint64_t digits, uint16_t sign_and_high_digits);
// FBSTP: returns the low 8 bytes and stores the upper two.
uint64_t to_packed_decimal(Float80 v, uint16_t& sign_and_high_digits, Context& context);

}  // namespace phybin::runtime::x87
