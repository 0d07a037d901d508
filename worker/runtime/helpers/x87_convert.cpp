// Conversions between the x87's 80 bits and the formats of memory operands: float32, float64, integers, packed
// decimal.
#include "worker/runtime/helpers/x87_float80.h"
#include "worker/runtime/helpers/x87_rounding.h"

namespace phybin::runtime::x87 {

using namespace detail;

namespace {

// An IEEE format of `fraction_bits` and `exponent_bits`, in the low bits of a word.
struct Ieee {
  unsigned fraction_bits;
  unsigned exponent_bits;
  int32_t bias;
};

constexpr Ieee kFloat32{23, 8, 127};
constexpr Ieee kFloat64{52, 11, 1023};

Float80 widen_ieee(uint64_t bits, const Ieee& format, Context& context) {
  const uint32_t largest = (1u << format.exponent_bits) - 1;
  const uint32_t exponent = static_cast<uint32_t>(bits >> format.fraction_bits) & largest;
  const uint64_t fraction = bits << (64 - format.fraction_bits) >> 1;
  const uint16_t sign = (bits >> (format.fraction_bits + format.exponent_bits)) != 0 ? kSignBit : 0;
  if (exponent == largest) return {kIntegerBit | fraction, static_cast<uint16_t>(sign | kExponentMask)};
  if (exponent != 0) {
    return {kIntegerBit | fraction,
            static_cast<uint16_t>(sign | (static_cast<int32_t>(exponent) + kExponentBias - format.bias))};
  }
  if (fraction == 0) return make_zero(sign);
  context.source_denormal = true;
  const int shift = __builtin_clzll(fraction);
  return {fraction << shift, static_cast<uint16_t>(sign | (kExponentBias - format.bias + 1 - shift))};
}

uint64_t narrow_ieee(Float80 v, const Ieee& format, Context& context) {
  const uint64_t infinity = ((uint64_t{1} << format.exponent_bits) - 1) << format.fraction_bits;
  const unsigned dropped = 63 - format.fraction_bits;
  const auto with_sign = [&](Float80 of, uint64_t magnitude) {
    return magnitude | static_cast<uint64_t>(sign_of(of) != 0) << (format.exponent_bits + format.fraction_bits);
  };
  Float80 nan;
  if (decided_by_nan(v, nan, context)) return with_sign(nan, infinity | nan.significand << 1 >> (dropped + 1));
  if (is_infinity(v)) return with_sign(v, infinity);
  if (is_zero(v)) return with_sign(v, 0);
  const int32_t smallest = kExponentBias - format.bias + 1;
  const Packed packed = round_to_format(normalize(v), {dropped, smallest, kExponentBias + format.bias, 0}, context);
  if (packed.infinite) return with_sign(v, infinity);
  // The integer bit adds one to the exponent.
  return with_sign(v, (static_cast<uint64_t>(packed.exponent - smallest) << format.fraction_bits) +
                          (packed.significand >> dropped));
}

// The integer nearest to v in the direction of `control`, for |v| < 2^64.
Rounded round_magnitude(Float80 v, uint32_t control) {
  if (is_zero(v)) return {0, false, false};
  const Wide w = normalize(v);
  const uint128 shifted =
      shift_right_sticky(uint128{w.hi} << 64, static_cast<uint32_t>(kExponentBias + 63 - w.exponent));
  return round_significand(w.sign, static_cast<uint64_t>(shifted >> 64), static_cast<uint64_t>(shifted), 0, control);
}

constexpr uint64_t kLargestDecimal = 999'999'999'999'999'999;

}  // namespace

Float80 widen_float32(uint32_t bits, Context& context) { return widen_ieee(bits, kFloat32, context); }
Float80 widen_float64(uint64_t bits, Context& context) { return widen_ieee(bits, kFloat64, context); }

Float80 load_widened(Float80 v, Context& context) {
  if (is_signaling(v)) {
    context.raise(kInvalid);
    return quiet(v);
  }
  if (context.source_denormal) context.raise(kDenormal);
  return v;
}

uint32_t to_float32(Float80 v, Context& context) { return static_cast<uint32_t>(narrow_ieee(v, kFloat32, context)); }
uint64_t to_float64(Float80 v, Context& context) { return narrow_ieee(v, kFloat64, context); }

int64_t to_integer(Float80 v, unsigned bits, bool truncate, Context& context) {
  const uint64_t indefinite = ~uint64_t{0} << (bits - 1);
  if (!is_unsupported(v) && exponent_of(v) < kExponentBias + 64) {
    const uint64_t limit = (uint64_t{1} << (bits - 1)) - (sign_of(v) != 0 ? 0 : 1);
    const Rounded rounded = round_magnitude(v, truncate ? kRoundToZero : context.control);
    const bool carried = rounded.up && rounded.significand == 0;
    if (!carried && rounded.significand <= limit) {
      if (rounded.inexact) context.raise(kPrecision | (rounded.up ? kC1 : 0));
      return static_cast<int64_t>(sign_of(v) != 0 ? 0 - rounded.significand : rounded.significand);
    }
  }
  context.raise(kInvalid);
  return static_cast<int64_t>(indefinite);
}

Float80 from_packed_decimal(uint64_t digits, uint16_t sign_and_high_digits) {
  uint64_t value = 0;
  for (int shift = 4; shift >= 0; shift -= 4) value = value * 10 + (sign_and_high_digits >> shift & 15);
  for (int shift = 60; shift >= 0; shift -= 4) value = value * 10 + (digits >> shift & 15);
  Float80 result;
  if (value != 0) {
    const int zeros = __builtin_clzll(value);
    result = {value << zeros, static_cast<uint16_t>(kExponentBias + 63 - zeros)};
  }
  result.sign_exponent |= sign_and_high_digits & kSignBit;
  return result;
}

uint64_t to_packed_decimal(Float80 v, uint16_t& sign_and_high_digits, Context& context) {
  if (!is_unsupported(v) && exponent_of(v) < kExponentBias + 64) {
    const Rounded rounded = round_magnitude(v, context.control);
    const bool carried = rounded.up && rounded.significand == 0;
    if (!carried && rounded.significand <= kLargestDecimal) {
      if (rounded.inexact) context.raise(kPrecision | (rounded.up ? kC1 : 0));
      uint64_t rest = rounded.significand;
      uint64_t low = 0;
      for (int shift = 0; shift < 64; shift += 4, rest /= 10) low |= rest % 10 << shift;
      sign_and_high_digits = static_cast<uint16_t>(sign_of(v) | (rest / 10) << 4 | rest % 10);
      return low;
    }
  }
  context.raise(kInvalid);
  sign_and_high_digits = 0xffff;
  return uint64_t{0xc000} << 48;
}

}  // namespace phybin::runtime::x87
