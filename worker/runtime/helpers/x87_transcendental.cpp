// F2XM1, FYL2X, FYL2XP1, FPATAN, FSIN, FCOS, FSINCOS, FPTAN by power series in 128-bit fixed point.
//
// Each function is brought to the form argument * series(argument^2) or the like, with the series near 1 in fixed
// point and the argument in 128-bit floating point, so that results are precise relative to themselves however small.
// Errors stay below 2^-115 of the result; rounding to 64 bits then gives the correctly rounded result but for one
// argument in about 2^50. FSIN, FCOS and FPTAN reduce their argument with the 66-bit pi of Intel's CPUs (SDM vol.
// 1, 8.3.8), exactly.
//
// CPUs are less precise: their last bit follows from an internal precision of some 67 bits that is not documented. Of
// 10^6 random arguments each, results were identical to those of an Intel Xeon (family 6, model 207), and the others
// one unit in the last place away, in
//   F2XM1 90.2 %, FYL2X 93.7 % (84 % for arguments next to 1), FYL2XP1 89.2 %, FPTAN 95.1 %, FPATAN 97.3 %,
//   FSIN, FCOS and FSINCOS 97.2 % (99.8 % below pi / 4).
#include "worker/runtime/helpers/x87_transcendental.h"

#include <array>

#include "worker/runtime/helpers/x87_real.h"

namespace phybin::runtime::x87 {

using namespace detail;

namespace detail {

uint128 divide_fraction(uint128 a, uint128 b) {
  const uint64_t b1 = static_cast<uint64_t>(b >> 64);
  const uint64_t b0 = static_cast<uint64_t>(b);
  uint128 rest = a;
  uint128 quotient = 0;
  for (int i = 0; i < 2; ++i) {
    // One 64-bit digit: estimated from the upper half of b, at most two too large (Knuth vol. 2, 4.3.1).
    const uint64_t hi = static_cast<uint64_t>(rest >> 64);
    uint64_t digit = ~uint64_t{0};
    uint128 r = rest - uint128{digit} * b1;
    if (hi < b1) {
      uint64_t remainder;
      digit = divide_128(hi, static_cast<uint64_t>(rest), b1, remainder);
      r = remainder;
    }
    while ((r >> 64) == 0 && uint128{digit} * b0 > r << 64) {
      --digit;
      r += b1;
    }
    rest = (r << 64) - uint128{digit} * b0;
    quotient = quotient << 64 | digit;
  }
  return quotient;
}

}  // namespace detail

namespace {

// pi, ln 2 and log2 e: significands of Reals.
constexpr Real kPiReal{false, 1, wide_constant(0xc90fdaa22168c234, 0xc4c6628b80dc1cd1)};
constexpr Real kHalfPiReal{false, 0, kPiReal.significand};
constexpr Real kLn2{false, -1, wide_constant(0xb17217f7d1cf79ab, 0xc9e3b39803f2f6af)};
constexpr Real kTwiceLog2E{false, 1, wide_constant(0xb8aa3b295c17f0bb, 0xbe87fed0691d3e88)};

// pi / 2 as the CPU has it, in units of 2^-65.
constexpr uint128 kHalfPi66 = wide_constant(0x3, 0x243f6a8885a308d3);

constexpr unsigned kTerms = 32;
using Series = std::array<uint128, kTerms>;  // coefficients in units of 2^-127, positive

// 1 / (first + k * step)! for the exponential series (1, 1), sine (1, 2) and cosine (0, 2).
constexpr Series inverse_factorials(unsigned first, unsigned step) {
  Series series{};
  uint128 value = kOneQ127;
  unsigned n = 0;
  for (unsigned k = 0; k < kTerms; ++k) {
    for (; n < first + k * step; ++n) value /= n + 1;
    series[k] = value;
  }
  return series;
}

// 1 / (2 k + 1): atanh and atan.
constexpr Series inverse_odd_numbers() {
  Series series{};
  for (unsigned k = 0; k < kTerms; ++k) series[k] = kOneQ127 / (2 * k + 1);
  return series;
}

constexpr Series kExponential = inverse_factorials(1, 1);
constexpr Series kSine = inverse_factorials(1, 2);
constexpr Series kCosine = inverse_factorials(0, 2);
constexpr Series kOddNumbers = inverse_odd_numbers();

// Sum of c[k] * (+-z)^k, z in units of 2^-128; the sum must be below 2. Never exactly 1: a function that is below its
// argument stays so under every rounding mode.
Real sum_series(const Series& c, uint128 z, bool alternating) {
  const unsigned zeros = static_cast<unsigned>(leading_zeros(z));
  unsigned k = zeros == 0 ? kTerms - 1 : 128 / zeros + 1;
  if (k > kTerms - 1) k = kTerms - 1;
  uint128 sum = c[k];
  while (k-- > 0) {
    const uint128 product = multiply_high(sum, z);
    sum = alternating ? c[k] - product : c[k] + product;
  }
  if (alternating && sum == kOneQ127) --sum;
  return make_real(false, 0, sum);
}

Real square(const Real& v) { return multiply(v, v); }

// log2((1 + s) / (1 - s)) for |s| < 0.18.
Real log2_of_ratio(const Real& s) {
  return multiply(multiply(s, kTwiceLog2E), sum_series(kOddNumbers, to_fraction(square(s)), false));
}

Real integer_real(int32_t n) {
  const uint32_t magnitude = n < 0 ? 0 - static_cast<uint32_t>(n) : static_cast<uint32_t>(n);
  return make_real(n < 0, 127, magnitude);
}

// log2 of a positive number.
Real log2_real(const Real& v) {
  // sqrt(2): keeps the logarithm of the significand between -1/2 and 1/2.
  constexpr uint128 kSqrt2 = wide_constant(0xb504f333f9de6484, 0x597d89b3754abe9f);
  int32_t n = v.exponent;
  // m is the significand in units of 2^-126, or of 2^-127 when halved, so that m + 1 does not overflow.
  Real difference;
  Real total;
  if (v.significand > kSqrt2) {
    ++n;
    difference = make_real(true, -1, 0 - v.significand);
    total = make_real(false, 0, (v.significand >> 1) + kOneQ127);
  } else {
    difference = make_real(false, 0, v.significand - kOneQ127);
    total = make_real(false, 1, (v.significand >> 1) + (kOneQ127 >> 1));
  }
  const Real whole = integer_real(n);
  if (difference.significand == 0) return whole;
  return add(whole, log2_of_ratio(divide(difference, total)));
}

// The logarithm is +infinity.
Float80 times_infinity(Float80 y, Context& context) {
  if (is_zero(y)) return invalid(context);
  stopped_by_denormal(y, context);
  return make_infinity(sign_of(y));
}

}  // namespace

Float80 exp2_minus_1(Float80 x, Context& context) {
  Float80 result;
  if (decided_by_nan(x, result, context)) return result;
  if (is_infinity(x)) return sign_of(x) != 0 ? Float80{kIntegerBit, kSignBit | kExponentBias} : x;
  if (is_zero(x)) return x;
  if (stopped_by_denormal(x, context)) return result;
  if (exponent_of(x) >= kExponentBias) {
    context.raise(kPrecision);
    // Beyond 1 the instruction is not defined; CPUs leave the operand.
    const bool minus_1 = x == Float80{kIntegerBit, kSignBit | kExponentBias};
    return minus_1 ? Float80{kIntegerBit, kSignBit | (kExponentBias - 1)} : x;
  }
  const Real y = multiply(to_real(x), kLn2);
  return round_irrational(multiply(y, sum_series(kExponential, to_fraction(y), y.negative)), context);
}

Float80 y_log2(Float80 y, Float80 x, Context& context) {
  Float80 result;
  if (decided_by_nan(x, y, result, context)) return result;
  if (is_zero(x)) {
    if (is_zero(y)) return invalid(context);
    if (!is_infinity(y)) context.raise(kZeroDivide);
    return make_infinity(sign_of(y) ^ kSignBit);
  }
  if (sign_of(x) != 0) return invalid(context);
  if (is_infinity(x)) return times_infinity(y, context);
  const Wide w = normalize(x);
  const bool below_1 = w.exponent < kExponentBias;
  const bool is_1 = w.exponent == kExponentBias && w.hi == kIntegerBit;
  if (is_infinity(y)) {
    if (is_1) return invalid(context);
    if (stopped_by_denormal(x, context)) return result;
    return make_infinity(sign_of(y) ^ (below_1 ? kSignBit : 0));
  }
  if (stopped_by_denormal(x, y, context)) return result;
  if (is_zero(y) || is_1) return make_zero(sign_of(y) ^ (below_1 ? kSignBit : 0));
  const Real product = multiply(to_real(y), log2_real(to_real(x)));
  if (w.hi == kIntegerBit) {
    // The logarithm is an integer and the product exact; CPUs report PE, and UE if it is tiny, nevertheless.
    result = round_exact(product, context);
    context.raise(is_denormal(result) ? kPrecision | kUnderflow : kPrecision);
    return result;
  }
  return round_irrational(product, context);
}

Float80 y_log2_plus_1(Float80 y, Float80 x, Context& context) {
  Float80 result;
  if (decided_by_nan(x, y, result, context)) return result;
  const bool negative = sign_of(x) != 0;
  if (is_infinity(x)) return negative ? invalid(context) : times_infinity(y, context);
  if (is_infinity(y)) {
    if (is_zero(x)) return invalid(context);
    if (stopped_by_denormal(x, context)) return result;
    return make_infinity(sign_of(y) ^ sign_of(x));
  }
  if (stopped_by_denormal(x, y, context)) return result;
  if (is_zero(x) || is_zero(y)) return make_zero(sign_of(x) ^ sign_of(y));
  const Real v = to_real(x);
  constexpr Real kOneReal{false, 0, kOneQ127};
  if (negative && exponent_of(x) >= kExponentBias) {  // there is no logarithm; CPUs return the operand
    context.raise(kPrecision);
    return x;
  }
  if (exponent_of(x) >= kExponentBias - 2) {
    return round_irrational(multiply(to_real(y), log2_real(add(v, kOneReal))), context);
  }
  // log2(1 + x) with s = x / (2 + x).
  constexpr Real kTwoReal{false, 1, kOneQ127};
  return round_irrational(multiply(to_real(y), log2_of_ratio(divide(v, add(v, kTwoReal)))), context);
}

namespace {

// Arctangents of k / 8 for k = 1 to 8, from the series of arctangent at compile time, are not precise enough for k
// near 8; these are the first 128 bits. In units of 2^-128.
constexpr uint128 kArctangents[9] = {
    0,
    wide_constant(0x1fd5ba9aac2f6dc6, 0x5912f313e7d111de),  // 1 / 8
    wide_constant(0x3eb6ebf25901bac5, 0x5b71e7bd7de885f9),  // 2 / 8
    wide_constant(0x5bd86507937bc239, 0xc55190916e7f2241),  // 3 / 8
    wide_constant(0x76b19c1586ed3da2, 0xb7f222f65e1d4681),  // 4 / 8
    wide_constant(0x8f005d5ef7f59f9b, 0x5c835e1665c43747),  // 5 / 8
    wide_constant(0xa4bc7d1934f70924, 0x19a87f2a457dac9e),  // 6 / 8
    wide_constant(0xb8053e2bc2319e73, 0xcb2da55210a4443d),  // 7 / 8
    wide_constant(0xc90fdaa22168c234, 0xc4c6628b80dc1cd1),  // 8 / 8
};

// arctan(y / x) for positive y <= x.
Real arctangent_of_ratio(const Real& y, const Real& x) {
  const Real ratio = divide(y, x);
  // The nearest k / 8; the rest (y - x k / 8) / (x + y k / 8) is below 1 / 16.
  unsigned steps = 8;
  if (ratio.exponent < 0) steps = (static_cast<unsigned>(to_fraction(ratio) >> 124) + 1) / 2;
  Real rest = ratio;
  if (steps != 0) {
    const Real eighths = make_real(false, 124, steps);
    const Real negative_eighths = make_real(true, 124, steps);
    rest = divide(add(y, multiply(x, negative_eighths)), add(x, multiply(y, eighths)));
  }
  if (rest.significand == 0) return make_real(false, -1, kArctangents[steps]);
  const Real small = multiply(rest, sum_series(kOddNumbers, to_fraction(square(rest)), true));
  return steps == 0 ? small : add(make_real(false, -1, kArctangents[steps]), small);
}

}  // namespace

Float80 arctangent(Float80 y, Float80 x, Context& context) {
  Float80 result;
  if (decided_by_nan(x, y, result, context)) return result;
  if (stopped_by_denormal(x, y, context)) return result;
  const bool left = sign_of(x) != 0;
  Real angle;
  if (is_infinity(y) || is_zero(x) || is_zero(y) || is_infinity(x)) {
    const bool flat = is_zero(y) || (is_infinity(x) && !is_infinity(y));
    if (flat && !left) return make_zero(sign_of(y));
    if (flat) {
      angle = kPiReal;
    } else if (!is_infinity(x) || !is_infinity(y)) {
      angle = kHalfPiReal;
    } else {
      angle = {false, -1, kPiReal.significand};
      if (left) angle = add(angle, kHalfPiReal);
    }
  } else {
    const Real v = to_real(absolute(y));
    const Real w = to_real(absolute(x));
    const bool steep = v.exponent > w.exponent || (v.exponent == w.exponent && v.significand > w.significand);
    angle = steep ? arctangent_of_ratio(w, v) : arctangent_of_ratio(v, w);
    const bool subtracted = steep != left;
    if (steep || left) {
      angle.negative = subtracted;
      angle = add(steep ? kHalfPiReal : kPiReal, angle);
    }
  }
  angle.negative = sign_of(y) != 0;
  return round_irrational(angle, context);
}

namespace {

// An angle reduced to at most pi / 4 in magnitude, and how many quarter turns were taken away.
struct Angle {
  Real rest;
  unsigned quadrant;
};

Angle reduce(Float80 x) {
  Real v = to_real(absolute(x));
  unsigned quadrant = 0;
  bool negative = sign_of(x) != 0;
  // pi / 4 has exponent -1.
  if (v.exponent >= -1) {
    // In units of 2^-65: below 2^128, because |x| < 2^63.
    uint128 rest = shift_right(v.significand, static_cast<unsigned>(62 - v.exponent));
    int shift = leading_zeros(kHalfPi66) - leading_zeros(rest);
    uint128 multiple = shift >= 0 ? shift_left(kHalfPi66, static_cast<unsigned>(shift)) : 0;
    for (; shift >= 0; --shift, multiple >>= 1) {
      quadrant <<= 1;
      if (rest >= multiple) {
        rest -= multiple;
        quadrant |= 1;
      }
    }
    if (rest > kHalfPi66 / 2) {
      rest = kHalfPi66 - rest;
      ++quadrant;
      v = make_real(true, 62, rest);
    } else {
      v = make_real(false, 62, rest);
    }
  }
  v.negative = v.negative != negative;
  return {v, negative ? 0 - quadrant : quadrant};
}

Real sine_of(const Real& v) { return multiply(v, sum_series(kSine, to_fraction(square(v)), true)); }
Real cosine_of(const Real& v) { return sum_series(kCosine, to_fraction(square(v)), true); }

// The sine of an angle that is `turns` quarter turns more.
Real sine_in_quadrant(const Angle& angle, unsigned turns) {
  const unsigned quadrant = angle.quadrant + turns;
  Real v = (quadrant & 1) != 0 ? cosine_of(angle.rest) : sine_of(angle.rest);
  if ((quadrant & 2) != 0) v.negative = !v.negative;
  return v;
}

constexpr Float80 kOneFloat{kIntegerBit, kExponentBias};

// From here down sine and tangent return their argument and the cosine is 1, under every rounding mode.
constexpr uint32_t kTinyAngle = kExponentBias - 69;

Float80 tiny_angle(Float80 x, Context& context) {
  const Wide w = normalize(x);
  const Float80 result = round_and_pack_64(w, context);
  context.raise(w.exponent < 1 ? kPrecision | kUnderflow : kPrecision);
  return result;
}

Float80 sine_of_nonzero(Float80 x, const Angle& angle, Context& context) {
  if (exponent_of(x) <= kTinyAngle) return tiny_angle(x, context);
  return round_irrational(sine_in_quadrant(angle, 0), context);
}

Float80 cosine_of_nonzero(Float80 x, const Angle& angle, Context& context) {
  if (exponent_of(x) <= kTinyAngle) {
    context.raise(kPrecision);
    return kOneFloat;
  }
  return round_irrational(sine_in_quadrant(angle, 1), context);
}

// Cases common to the four instructions: NaN, infinity, too large (C2), denormal; true if that was all.
bool trigonometric_special(Float80 x, Float80& result, Context& context) {
  if (decided_by_nan(x, result, context)) return true;
  if (is_infinity(x)) {
    result = invalid(context);
    return true;
  }
  if (exponent_of(x) >= kExponentBias + 63) {
    context.flags |= kC2;
    result = x;
    return true;
  }
  result = x;
  return stopped_by_denormal(x, context);
}

}  // namespace

Float80 sine(Float80 x, Context& context) {
  Float80 result;
  if (trigonometric_special(x, result, context) || is_zero(x)) return result;
  return sine_of_nonzero(x, reduce(x), context);
}

Float80 cosine(Float80 x, Context& context) {
  Float80 result;
  if (trigonometric_special(x, result, context)) return result;
  if (is_zero(x)) return kOneFloat;
  return cosine_of_nonzero(x, reduce(x), context);
}

Float80 sine_cosine(Float80 x, Float80& cosine, Context& context) {
  Float80 result;
  if (trigonometric_special(x, result, context)) {
    cosine = result;
    return result;
  }
  if (is_zero(x)) {
    cosine = kOneFloat;
    return x;
  }
  const Angle angle = reduce(x);
  result = sine_of_nonzero(x, angle, context);
  cosine = cosine_of_nonzero(x, angle, context);
  return result;
}

Float80 tangent(Float80 x, Float80& one, Context& context) {
  Float80 result;
  if (trigonometric_special(x, result, context)) {
    one = result;
    return result;
  }
  one = kOneFloat;
  if (is_zero(x)) return x;
  if (exponent_of(x) <= kTinyAngle) return tiny_angle(x, context);
  const Angle angle = reduce(x);
  return round_irrational(divide(sine_in_quadrant(angle, 0), sine_in_quadrant(angle, 1)), context);
}

}  // namespace phybin::runtime::x87
