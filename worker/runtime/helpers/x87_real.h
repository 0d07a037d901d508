// Numbers with a 128-bit significand, for the inside of the transcendental instructions: precise enough that what is
// rounded to 64 bits in the end is nearly always what the exact value would be rounded to.
#pragma once

#include "worker/runtime/helpers/x87_rounding.h"

namespace phybin::runtime::x87::detail {

constexpr uint128 wide_constant(uint64_t hi, uint64_t lo) { return uint128{hi} << 64 | lo; }

inline constexpr uint128 kOneQ127 = uint128{1} << 127;

// (-1)^negative * significand * 2^(exponent - 127); the significand has its top bit set, or the number is zero.
struct Real {
  bool negative = false;
  int32_t exponent = 0;
  uint128 significand = 0;
};

// The upper half of a 256-bit product.
inline uint128 multiply_high(uint128 a, uint128 b) {
  const uint64_t a1 = static_cast<uint64_t>(a >> 64);
  const uint64_t a0 = static_cast<uint64_t>(a);
  const uint64_t b1 = static_cast<uint64_t>(b >> 64);
  const uint64_t b0 = static_cast<uint64_t>(b);
  const uint128 low = uint128{a0} * b0;
  const uint128 middle = uint128{a1} * b0 + (low >> 64);
  const uint128 other = uint128{a0} * b1 + static_cast<uint64_t>(middle);
  return uint128{a1} * b1 + (middle >> 64) + (other >> 64);
}

inline int leading_zeros(uint128 v) {
  const uint64_t hi = static_cast<uint64_t>(v >> 64);
  return hi != 0 ? __builtin_clzll(hi) : 64 + __builtin_clzll(static_cast<uint64_t>(v) | 1);
}

inline Real make_real(bool negative, int32_t exponent, uint128 v) {
  if (v == 0) return {negative, 0, 0};
  const int shift = leading_zeros(v);
  return {negative, exponent - shift, shift_left(v, static_cast<unsigned>(shift))};
}

inline Real to_real(Float80 finite) {
  const Wide w = normalize(finite);
  return {w.sign != 0, w.exponent - kExponentBias, uint128{w.hi} << 64};
}

inline Real multiply(const Real& a, const Real& b) {
  return make_real(a.negative != b.negative, a.exponent + b.exponent + 1,
                   multiply_high(a.significand, b.significand));
}

// floor(a * 2^128 / b) for a < b, b with its top bit set.
uint128 divide_fraction(uint128 a, uint128 b);

inline Real divide(const Real& a, const Real& b) {
  const bool negative = a.negative != b.negative;
  if (a.significand < b.significand) {
    return {negative, a.exponent - b.exponent - 1, divide_fraction(a.significand, b.significand)};
  }
  return {negative, a.exponent - b.exponent, divide_fraction(a.significand >> 1, b.significand)};
}

inline Real add(Real a, Real b) {
  if (a.significand == 0) return b;
  if (b.significand == 0) return a;
  if (a.exponent < b.exponent || (a.exponent == b.exponent && a.significand < b.significand)) {
    const Real swapped = a;
    a = b;
    b = swapped;
  }
  const int32_t distance = a.exponent - b.exponent;
  const uint128 aligned = shift_right(b.significand, static_cast<unsigned>(distance));
  if (a.negative != b.negative) return make_real(a.negative, a.exponent, a.significand - aligned);
  const uint128 sum = a.significand + aligned;
  if (sum >= aligned) return {a.negative, a.exponent, sum};
  return {a.negative, a.exponent + 1, sum >> 1 | kOneQ127};
}

// v as a fraction of 1 in units of 2^-128, for |v| < 1.
inline uint128 to_fraction(const Real& v) {
  const int32_t shift = -1 - v.exponent;
  return shift_right(v.significand, static_cast<unsigned>(shift));
}

inline Float80 round_exact(const Real& v, Context& context) {
  return round_and_pack_64({static_cast<uint16_t>(v.negative ? kSignBit : 0), v.exponent + kExponentBias,
                            static_cast<uint64_t>(v.significand >> 64), static_cast<uint64_t>(v.significand)},
                           context);
}

// Rounds an irrational value: always inexact.
inline Float80 round_irrational(Real v, Context& context) {
  v.significand |= 1;
  return round_exact(v, context);
}

}  // namespace phybin::runtime::x87::detail
