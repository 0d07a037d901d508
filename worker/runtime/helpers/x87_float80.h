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

// The operations for any operands and control.
Float80 add(Float80 a, Float80 b, Context& context);
Float80 subtract(Float80 a, Float80 b, Context& context);
Float80 multiply(Float80 a, Float80 b, Context& context);
Float80 divide(Float80 a, Float80 b, Context& context);

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

// The common path asks for round to nearest, 64 bits, and a masked PE, so that only C1 and PE can be set.
inline constexpr uint32_t kCommonControlMask = kRoundingControl | kPrecisionControl | kPrecision;
inline bool has_common_control(uint32_t control) {
  return (control & kCommonControlMask) == (kRoundNearest | kPrecision64 | kPrecision);
}

// The common path of an operation; `ok` is false where it does not apply, and then nothing else means anything.
struct Common {
  Float80 value;
  uint32_t flags = 0;
  bool ok = false;
};

namespace detail {

inline bool both_normal(Float80 a, Float80 b) {
  return ((a.significand & b.significand) >> 63) != 0 && exponent_of(a) - 1 < kExponentMask - 1 &&
         exponent_of(b) - 1 < kExponentMask - 1;
}

// Rounds to nearest even; gives up where rounding could overflow or the result is tiny.
[[gnu::always_inline]] inline Common round_common(uint32_t sign, int32_t exponent, uint64_t hi, uint64_t lo) {
  if (__builtin_expect(static_cast<uint32_t>(exponent - 1) >= kExponentMask - 2, 0)) return {};
  const uint64_t up = lo >= kIntegerBit + (~hi & 1);
  uint64_t significand = hi + up;
  const uint32_t carry = significand == 0;
  significand |= static_cast<uint64_t>(carry) << 63;
  const uint32_t flags = lo != 0 ? kPrecision | static_cast<uint32_t>(up << 9) : 0;
  return {{significand, static_cast<uint16_t>(sign + static_cast<uint32_t>(exponent) + carry)}, flags, true};
}

}  // namespace detail

[[gnu::always_inline]] inline Common add_common(Float80 a, Float80 b) {
  if (__builtin_expect(!detail::both_normal(a, b), 0)) return {};
  int32_t exponent = static_cast<int32_t>(exponent_of(a));
  int32_t distance = exponent - static_cast<int32_t>(exponent_of(b));
  uint32_t sign = sign_of(a);
  const bool subtracts = sign_of(a) != sign_of(b);
  uint64_t hi = a.significand;
  uint64_t other = b.significand;
  if (distance < 0 || (distance == 0 && hi < other)) {
    const uint64_t swapped = hi;
    hi = other;
    other = swapped;
    exponent -= distance;
    distance = -distance;
    sign = sign_of(b);
  }
  // (other:lo) is the smaller operand aligned to the larger; the last bit of lo is sticky.
  uint64_t lo;
  if (__builtin_expect(distance < 64, 1)) {
    lo = other << 1 << (63 - distance);
    other >>= distance;
  } else {
    const uint32_t more = static_cast<uint32_t>(distance - 64);
    lo = more >= 64 ? 1 : other >> more | static_cast<uint64_t>((other << 1 << ((63 - more) & 63)) != 0);
    other = 0;
  }
  if (!subtracts) {
    hi += other;
    if (hi < other) {
      lo = lo >> 1 | (lo & 1) | hi << 63;
      hi = hi >> 1 | kIntegerBit;
      ++exponent;
    }
    return detail::round_common(sign, exponent, hi, lo);
  }
  hi = hi - other - (lo != 0);
  lo = 0 - lo;
  if (static_cast<int64_t>(hi) >= 0) {
    if (hi == 0) {
      if (lo == 0) return {{}, 0, true};
      hi = lo;
      lo = 0;
      exponent -= 64;
    }
    const int shift = __builtin_clzll(hi);
    hi = hi << shift | lo >> 1 >> (63 - shift);
    lo <<= shift;
    exponent -= shift;
  }
  return detail::round_common(sign, exponent, hi, lo);
}

[[gnu::always_inline]] inline Common multiply_common(Float80 a, Float80 b) {
  if (__builtin_expect(!detail::both_normal(a, b), 0)) return {};
  const uint128 product = uint128{a.significand} * b.significand;
  uint64_t hi = static_cast<uint64_t>(product >> 64);
  uint64_t lo = static_cast<uint64_t>(product);
  const uint32_t shift = static_cast<uint32_t>(~hi >> 63);
  hi = hi << shift | (lo >> 63 & shift);
  lo <<= shift;
  const int32_t exponent = static_cast<int32_t>(exponent_of(a) + exponent_of(b) - shift) - (kExponentBias - 1);
  return detail::round_common((a.sign_exponent ^ b.sign_exponent) & kSignBit, exponent, hi, lo);
}

namespace detail {

// The quotient of two significands with their integer bits set, as (hi:lo) with hi normalised; true if a < b, which
// makes the exponent one smaller. lo is exact enough for rounding; it is never one half, because that needs a divisor
// with bits below its 64.
[[gnu::always_inline]] inline bool divide_significands(uint64_t a, uint64_t b, uint64_t& hi, uint64_t& lo) {
  const bool less = a < b;
  uint64_t rest;
  hi = less ? divide_128(a, 0, b, rest) : divide_128(a >> 1, a << 63, b, rest);
  lo = rest == 0 ? 0 : rest > b - rest ? kIntegerBit | 1 : 1;
  return less;
}

}  // namespace detail

[[gnu::always_inline]] inline Common divide_common(Float80 a, Float80 b) {
  if (__builtin_expect(!detail::both_normal(a, b), 0)) return {};
  uint64_t hi;
  uint64_t lo;
  const bool less = detail::divide_significands(a.significand, b.significand, hi, lo);
  const int32_t exponent = static_cast<int32_t>(exponent_of(a) - exponent_of(b)) + kExponentBias - less;
  return detail::round_common((a.sign_exponent ^ b.sign_exponent) & kSignBit, exponent, hi, lo);
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
uint32_t compare(Float80 a, Float80 b, bool quiet, Context& context);

// The common path: normal numbers and zeros, which raise nothing.
[[gnu::always_inline]] inline bool compare_common(Float80 a, Float80 b, uint32_t& condition) {
  if (__builtin_expect((!is_normal(a) && !is_zero(a)) || (!is_normal(b) && !is_zero(b)), 0)) return false;
  condition = 0;
  if (a == b || (a.significand | b.significand) == 0) {
    condition = kC3;
  } else if (((a.sign_exponent ^ b.sign_exponent) & kSignBit) != 0) {
    if (sign_of(a) != 0) condition = kC0;
  } else {
    const bool smaller =
        a.sign_exponent != b.sign_exponent ? a.sign_exponent < b.sign_exponent : a.significand < b.significand;
    if (smaller != (sign_of(a) != 0)) condition = kC0;
  }
  return true;
}

// Operands from memory, widened without any exception: a signaling NaN stays one, a denormal sets source_denormal.
Float80 widen_float32(uint32_t bits, Context& context);
Float80 widen_float64(uint64_t bits, Context& context);

// The common path of both: normal numbers and zeros.
template <unsigned fraction_bits, unsigned exponent_bits>
[[gnu::always_inline]] inline Common widen_common(uint64_t bits) {
  constexpr uint32_t kLargest = (1u << exponent_bits) - 1;
  const uint32_t exponent = static_cast<uint32_t>(bits >> fraction_bits) & kLargest;
  const uint32_t sign = (bits >> (fraction_bits + exponent_bits) & 1) << 15;
  if (__builtin_expect(exponent - 1 >= kLargest - 1, 0)) {
    const bool zero = bits << (64 - fraction_bits - exponent_bits) == 0;
    return {make_zero(static_cast<uint16_t>(sign)), 0, zero};
  }
  return {{kIntegerBit | bits << (63 - fraction_bits),
           static_cast<uint16_t>(sign + exponent + (kExponentBias - kLargest / 2))},
          0,
          true};
}

[[gnu::always_inline]] inline Common widen_float32_common(uint64_t bits) { return widen_common<23, 8>(bits); }
[[gnu::always_inline]] inline Common widen_float64_common(uint64_t bits) { return widen_common<52, 11>(bits); }

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
uint64_t to_float64(Float80 v, Context& context);

// The common path of both, under the common control.
struct CommonStore {
  uint64_t bits = 0;
  uint32_t flags = 0;
  bool ok = false;
};

template <unsigned fraction_bits, unsigned exponent_bits>
[[gnu::always_inline]] inline CommonStore narrow_common(Float80 v) {
  constexpr uint32_t kLargest = (1u << exponent_bits) - 1;
  constexpr unsigned kDropped = 63 - fraction_bits;
  const uint32_t exponent = exponent_of(v) - (kExponentBias - kLargest / 2);
  if (__builtin_expect((v.significand >> 63) == 0 || exponent - 1 >= kLargest - 2, 0)) return {};
  const uint64_t rest = v.significand << (64 - kDropped);
  const uint64_t kept = v.significand >> kDropped;
  const uint64_t up = rest >= kIntegerBit + (~kept & 1);
  // The integer bit adds the one that the exponent is short of, and a carry goes into it.
  const uint64_t sign = static_cast<uint64_t>(v.sign_exponent >> 15) << (fraction_bits + exponent_bits);
  const uint64_t bits = sign + (static_cast<uint64_t>(exponent - 1) << fraction_bits) + kept + up;
  return {bits, rest != 0 ? kPrecision | static_cast<uint32_t>(up << 9) : 0, true};
}

[[gnu::always_inline]] inline CommonStore to_float32_common(Float80 v) { return narrow_common<23, 8>(v); }
[[gnu::always_inline]] inline CommonStore to_float64_common(Float80 v) { return narrow_common<52, 11>(v); }

// FIST and FISTTP (truncate): a signed integer of 16, 32 or 64 bits, sign-extended; out of range or not a number
// gives IE and the most negative integer of that size.
int64_t to_integer(Float80 v, unsigned bits, bool truncate, Context& context);

// Its common path, under the common control: zeros, and magnitudes from 1 that fit.
[[gnu::always_inline]] inline CommonStore to_integer_common(Float80 v, unsigned bits, bool truncate) {
  const uint32_t exponent = exponent_of(v) - kExponentBias;
  if ((v.significand >> 63) == 0 || exponent >= bits - 1) return {0, 0, is_zero(v)};
  const uint64_t rest = v.significand << (exponent + 1);
  uint64_t magnitude = v.significand >> (63 - exponent);
  const uint64_t up = !truncate && rest >= kIntegerBit + (~magnitude & 1);
  magnitude += up;
  if (__builtin_expect((magnitude >> (bits - 1)) != 0, 0)) return {};
  return {sign_of(v) != 0 ? 0 - magnitude : magnitude, rest != 0 ? kPrecision | static_cast<uint32_t>(up << 9) : 0,
          true};
}

// FBLD: 18 digits and a sign in 10 bytes, low 8 bytes in `digits`. Invalid digits are undefined on the CPU, which
// adds them up with their weights; so does this.
Float80 from_packed_decimal(uint64_t digits, uint16_t sign_and_high_digits);
// FBSTP: returns the low 8 bytes and stores the upper two.
uint64_t to_packed_decimal(Float80 v, uint16_t& sign_and_high_digits, Context& context);

}  // namespace phybin::runtime::x87
