// x87 operations on the exponent and the integer part: FRNDINT, FSCALE, FXTRACT, FPREM, FPREM1.
#include "worker/runtime/helpers/x87_float80.h"
#include "worker/runtime/helpers/x87_rounding.h"

namespace phybin::runtime::x87 {

using namespace detail;

namespace {

// A pseudo-denormal as the normal number that it is.
Float80 canonical(Float80 v) {
  if (is_denormal(v) && (v.significand >> 63) != 0) v.sign_exponent |= 1;
  return v;
}

}  // namespace

Float80 round_to_integer(Float80 v, Context& context) {
  Float80 result;
  if (decided_by_nan(v, result, context)) return result;
  if (is_zero(v) || is_infinity(v)) return v;
  if (stopped_by_denormal(v, context)) return result;
  const Wide w = normalize(v);
  if (w.exponent >= kExponentBias + 63) return v;
  const uint32_t fraction_bits = static_cast<uint32_t>(kExponentBias + 63 - w.exponent);
  const uint128 shifted = shift_right_sticky(uint128{w.hi} << 64, fraction_bits);
  const Rounded rounded = round_significand(w.sign, static_cast<uint64_t>(shifted >> 64),
                                            static_cast<uint64_t>(shifted), 0, context.control);
  if (rounded.inexact) context.raise(kPrecision | (rounded.up ? kC1 : 0));
  if (rounded.significand == 0) return make_zero(w.sign);
  const int shift = __builtin_clzll(rounded.significand);
  return {rounded.significand << shift, static_cast<uint16_t>(w.sign | (kExponentBias + 63 - shift))};
}

Float80 scale(Float80 v, Float80 power, Context& context) {
  Float80 result;
  if (decided_by_nan(v, power, result, context)) return result;
  if (is_infinity(power)) {
    const bool down = sign_of(power) != 0;
    if (down ? is_infinity(v) : is_zero(v)) return invalid(context);
    if (stopped_by_denormal(v, power, context)) return result;
    return down ? make_zero(sign_of(v)) : make_infinity(sign_of(v));
  }
  if (stopped_by_denormal(v, power, context)) return result;
  if (is_infinity(v) || is_zero(v) || is_zero(power)) return canonical(v);
  // Beyond 2^16 the result over- or underflows whatever v is, with an adjusted exponent too.
  const uint32_t exponent = exponent_of(power);
  int32_t n = 0;
  if (exponent >= kExponentBias + 16) {
    n = 1 << 16;
  } else if (exponent >= kExponentBias) {
    n = static_cast<int32_t>(power.significand >> (kExponentBias + 63 - exponent));
  }
  Wide w = normalize(v);
  w.exponent += sign_of(power) != 0 ? -n : n;
  return round_and_pack_64(w, context);
}

Float80 extract(Float80 v, Float80& exponent, Context& context) {
  Float80 result;
  if (decided_by_nan(v, result, context)) {
    exponent = result;
    return result;
  }
  if (is_infinity(v)) {
    exponent = make_infinity(0);
    return v;
  }
  if (is_zero(v)) {
    context.raise(kZeroDivide);
    exponent = make_infinity(kSignBit);
    return v;
  }
  if (stopped_by_denormal(v, context)) return result;
  const Wide w = normalize(v);
  exponent = from_int64(w.exponent - kExponentBias);
  return {w.hi, static_cast<uint16_t>(w.sign | kExponentBias)};
}

Float80 remainder(Float80 a, Float80 b, bool nearest, Context& context) {
  Float80 result;
  if (decided_by_nan(a, b, result, context)) return result;
  if (is_infinity(a) || is_zero(b)) return invalid(context);
  if (stopped_by_denormal(a, b, context)) return result;
  context.conditions = kC0 | kC3;
  if (is_zero(a)) return a;
  if (is_infinity(b)) return canonical(a);
  const Wide x = normalize(a);
  const Wide y = normalize(b);
  const int32_t distance = x.exponent - y.exponent;
  if (distance < -1) return round_and_pack_64(x, context);

  // Long division of x by y. The SDM leaves the length of an incomplete reduction open; Intel's CPUs do this one.
  int32_t steps = distance;
  int32_t left_over = 0;
  if (distance >= 64) {
    steps = 32 + (distance & 31);
    left_over = distance - steps;
  }
  // With distance -1 the unit is x's and y is twice as long.
  const uint128 divisor = uint128{y.hi} << (distance < 0 ? 1 : 0);
  const int32_t exponent = distance < 0 ? x.exponent : y.exponent + left_over;
  uint128 rest = x.hi;
  uint64_t quotient = 0;
  for (; steps >= 0; --steps) {
    quotient <<= 1;
    if (rest >= divisor) {
      rest -= divisor;
      quotient |= 1;
    }
    if (steps != 0) rest <<= 1;
  }
  uint16_t sign = x.sign;
  if (left_over != 0) {
    context.flags |= kC2;
  } else {
    if (nearest && (rest > divisor - rest || (rest == divisor - rest && (quotient & 1) != 0))) {
      rest = divisor - rest;
      ++quotient;
      sign ^= kSignBit;
    }
    if ((quotient & 4) != 0) context.flags |= kC0;
    if ((quotient & 2) != 0) context.flags |= kC3;
    if ((quotient & 1) != 0) context.flags |= kC1;
  }
  if (rest == 0) return make_zero(x.sign);
  const uint64_t significand = static_cast<uint64_t>(rest);
  const int shift = __builtin_clzll(significand);
  return round_and_pack_64({sign, exponent - shift, significand << shift, 0}, context);
}

}  // namespace phybin::runtime::x87
