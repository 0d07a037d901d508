// Rounding, and the x87 basic operations outside their common path: special operands, denormals, other precisions and
// rounding modes, square root, comparison.
#include "worker/runtime/helpers/x87_float80.h"

#include <utility>

#include "worker/runtime/helpers/x87_rounding.h"

namespace phybin::runtime::x87 {

using namespace detail;

namespace {

// Bits of the significand that precision control leaves out; the reserved value 01 acts as 64 bits.
constexpr uint8_t kDroppedBits[4] = {40, 0, 11, 0};

constexpr int32_t kExponentAdjustment = 24576;

Float80 round_dropping(const Wide& v, unsigned dropped, Context& context) {
  const Format format{dropped, 1, static_cast<int32_t>(kExponentMask) - 1, kExponentAdjustment};
  const Packed packed = round_to_format(v, format, context);
  if (packed.infinite) return make_infinity(v.sign);
  const bool denormal = packed.exponent == 1 && (packed.significand >> 63) == 0;
  return {packed.significand, static_cast<uint16_t>(v.sign | (denormal ? 0 : packed.exponent))};
}

}  // namespace

namespace detail {

Packed round_to_format(const Wide& v, const Format& format, Context& context) {
  int32_t exponent = v.exponent;
  uint64_t hi = v.hi;
  uint64_t lo = v.lo;
  Rounded rounded = round_significand(v.sign, hi, lo, format.dropped, context.control);
  // Tiny means: below the smallest normal number after rounding with an unlimited exponent.
  if (exponent + static_cast<int32_t>(rounded.significand == 0) < format.smallest) {
    if (context.raise((context.control & kUnderflow) == 0 ? kUnderflow : 0)) {
      if (format.adjustment == 0) return {0, format.smallest, false};
      exponent += format.adjustment;
      if (exponent < format.smallest) {  // FSCALE only
        context.raise(kPrecision);
        return {0, format.smallest, false};
      }
    } else {
      const uint128 shifted =
          shift_right_sticky(uint128{hi} << 64 | lo, static_cast<uint32_t>(format.smallest - exponent));
      hi = static_cast<uint64_t>(shifted >> 64);
      lo = static_cast<uint64_t>(shifted);
      exponent = format.smallest;
      rounded = round_significand(v.sign, hi, lo, format.dropped, context.control);
      if (rounded.inexact) context.raise(kUnderflow | kPrecision | (rounded.up ? kC1 : 0));
      return {rounded.significand, exponent, false};
    }
  }
  if (rounded.significand == 0) {
    rounded.significand = kIntegerBit;
    ++exponent;
  }
  if (exponent > format.largest) {
    if (context.raise(kOverflow)) {
      if (format.adjustment == 0) return {0, format.smallest, false};
      exponent -= format.adjustment;
      if (exponent > format.largest) {  // FSCALE only
        context.raise(kPrecision | kC1);
        return {kIntegerBit, exponent, true};
      }
    } else {
      const uint32_t rounding = context.control & kRoundingControl;
      const bool infinite = rounding == kRoundNearest || rounding == (v.sign != 0 ? kRoundDown : kRoundUp);
      context.raise(kPrecision | (infinite ? kC1 : 0));
      return {~uint64_t{0} >> format.dropped << format.dropped, format.largest, infinite};
    }
  }
  if (rounded.inexact) context.raise(kPrecision | (rounded.up ? kC1 : 0));
  return {rounded.significand, exponent, false};
}

bool decided_by_nan(Float80 v, Float80& result, Context& context) {
  if (is_unsupported(v)) {
    result = invalid(context);
    return true;
  }
  if (!is_nan(v)) return false;
  if (is_signaling(v)) context.raise(kInvalid);
  result = quiet(v);
  return true;
}

bool decided_by_nan(Float80 a, Float80 b, Float80& result, Context& context) {
  if (is_unsupported(a) || is_unsupported(b)) {
    result = invalid(context);
    return true;
  }
  if (!is_nan(a)) return decided_by_nan(b, result, context);
  if (!is_nan(b)) return decided_by_nan(a, result, context);
  const bool signaling_a = is_signaling(a);
  const bool signaling_b = is_signaling(b);
  if (signaling_a || signaling_b) context.raise(kInvalid);
  if (signaling_a != signaling_b) {
    result = signaling_a ? b : a;
    return true;
  }
  // The larger significand wins; of equal ones the positive NaN.
  const bool first =
      a.significand != b.significand ? a.significand > b.significand : a.sign_exponent < b.sign_exponent;
  result = quiet(first ? a : b);
  return true;
}

}  // namespace detail

Float80 round_and_pack(const Wide& v, Context& context) {
  return round_dropping(v, kDroppedBits[(context.control & kPrecisionControl) >> 8], context);
}

Float80 round_and_pack_64(const Wide& v, Context& context) { return round_dropping(v, 0, context); }

uint32_t classify(Float80 v) {
  const uint32_t sign = v.sign_exponent & kSignBit ? kC1 : 0;
  if (is_unsupported(v)) return sign;
  if (is_nan(v)) return sign | kC0;
  if (is_infinity(v)) return sign | kC2 | kC0;
  if (is_zero(v)) return sign | kC3;
  return is_denormal(v) ? sign | kC3 | kC2 : sign | kC2;
}

namespace {

Float80 round_wide(uint16_t sign, int32_t exponent, uint128 v, Context& context) {
  return round_and_pack({sign, exponent, static_cast<uint64_t>(v >> 64), static_cast<uint64_t>(v)}, context);
}

// Exact zero from operands that are not both zeros of one sign.
Float80 cancelled(const Context& context) {
  return make_zero((context.control & kRoundingControl) == kRoundDown ? kSignBit : 0);
}

// a + b for significands with the integer bit set.
Float80 add_finite(Wide a, Wide b, Context& context) {
  if (a.exponent < b.exponent || (a.exponent == b.exponent && a.hi < b.hi)) std::swap(a, b);
  const uint128 x = uint128{a.hi} << 64;
  const uint128 y = shift_right_sticky(uint128{b.hi} << 64, static_cast<uint32_t>(a.exponent - b.exponent));
  if (a.sign == b.sign) {
    const uint128 sum = x + y;
    if (sum >= x) return round_wide(a.sign, a.exponent, sum, context);
    return round_wide(a.sign, a.exponent + 1, shift_right_sticky(sum, 1) | uint128{kIntegerBit} << 64, context);
  }
  const uint128 difference = x - y;
  if (difference == 0) return cancelled(context);
  const uint64_t hi = static_cast<uint64_t>(difference >> 64);
  const int shift = hi != 0 ? __builtin_clzll(hi) : 64 + __builtin_clzll(static_cast<uint64_t>(difference));
  return round_wide(a.sign, a.exponent - shift, difference << shift, context);
}

}  // namespace

Float80 add(Float80 a, Float80 b, Context& context) {
  Float80 result;
  if (decided_by_nan(a, b, result, context)) return result;
  if (is_infinity(a) && is_infinity(b)) return sign_of(a) == sign_of(b) ? a : invalid(context);
  if (stopped_by_denormal(a, b, context)) return result;
  if (is_infinity(a)) return a;
  if (is_infinity(b)) return b;
  if (is_zero(a) && is_zero(b)) return a == b ? a : cancelled(context);
  if (is_zero(a)) return round_and_pack(normalize(b), context);
  if (is_zero(b)) return round_and_pack(normalize(a), context);
  return add_finite(normalize(a), normalize(b), context);
}

Float80 subtract(Float80 a, Float80 b, Context& context) {
  // A NaN keeps its sign.
  return add(a, is_nan(b) ? b : negate(b), context);
}

Float80 multiply(Float80 a, Float80 b, Context& context) {
  Float80 result;
  if (decided_by_nan(a, b, result, context)) return result;
  const uint16_t sign = sign_of(a) ^ sign_of(b);
  if ((is_infinity(a) && is_zero(b)) || (is_zero(a) && is_infinity(b))) return invalid(context);
  if (stopped_by_denormal(a, b, context)) return result;
  if (is_infinity(a) || is_infinity(b)) return make_infinity(sign);
  if (is_zero(a) || is_zero(b)) return make_zero(sign);
  const Wide x = normalize(a);
  const Wide y = normalize(b);
  const uint128 product = uint128{x.hi} * y.hi;
  const int32_t exponent = x.exponent + y.exponent - (kExponentBias - 1);
  if ((product >> 127) == 0) return round_wide(sign, exponent - 1, product << 1, context);
  return round_wide(sign, exponent, product, context);
}

Float80 divide(Float80 a, Float80 b, Context& context) {
  Float80 result;
  if (decided_by_nan(a, b, result, context)) return result;
  const uint16_t sign = sign_of(a) ^ sign_of(b);
  if ((is_infinity(a) && is_infinity(b)) || (is_zero(a) && is_zero(b))) return invalid(context);
  if (is_zero(b) && !is_infinity(a)) {
    context.raise(kZeroDivide);
    return make_infinity(sign);
  }
  if (stopped_by_denormal(a, b, context)) return result;
  if (is_infinity(a)) return make_infinity(sign);
  if (is_infinity(b) || is_zero(a)) return make_zero(sign);
  const Wide x = normalize(a);
  const Wide y = normalize(b);
  Wide quotient{sign, x.exponent - y.exponent + kExponentBias, 0, 0};
  quotient.exponent -= divide_significands(x.hi, y.hi, quotient.hi, quotient.lo);
  return round_and_pack(quotient, context);
}

namespace {

// floor(sqrt(v)) and the rest, for a v with one of its top two bits set: bit by bit for half of the bits, then one
// division for the other half (Zimmermann, "Karatsuba Square Root"), and the same again for 128 bits.
uint32_t root_32(uint32_t v, uint32_t& rest) {
  uint32_t root = 0;
  for (uint32_t bit = 1u << 15; bit != 0; bit >>= 1) {
    const uint32_t trial = (2 * root + bit) * bit;
    if (trial > v) continue;
    v -= trial;
    root += bit;
  }
  rest = v;
  return root;
}

uint64_t root_64(uint64_t v, uint64_t& rest) {
  uint32_t half_rest;
  const uint64_t half = root_32(static_cast<uint32_t>(v >> 32), half_rest);
  const uint64_t divided = uint64_t{half_rest} << 16 | (v >> 16 & 0xffff);
  const uint64_t q = divided / (2 * half);
  const int64_t u = static_cast<int64_t>(divided - q * 2 * half);
  uint64_t root = (half << 16) + q;
  int64_t r = static_cast<int64_t>(static_cast<uint64_t>(u) << 16 | (v & 0xffff)) - static_cast<int64_t>(q * q);
  if (r < 0) {
    r += static_cast<int64_t>(2 * root - 1);
    --root;
  }
  rest = static_cast<uint64_t>(r);
  return root;
}

uint64_t root_128(uint64_t hi, uint64_t lo, bool& inexact) {
  uint64_t rest;
  const uint64_t half = root_64(hi, rest);
  const uint64_t divided = rest << 31 | lo >> 33;
  // (rest : upper half of lo) / (2 * half); rest can have 33 bits, which the shift by 31 just holds.
  uint64_t q = divided / half;
  const uint64_t u = (divided - q * half) << 1 | (lo >> 32 & 1);
  uint128 root = (uint128{half} << 32) + q;
  // rest = u * 2^32 + low - q^2, negative if the root is one too large.
  const uint128 plus = (uint128{u} << 32) + (lo & 0xffffffff);
  uint128 square = uint128{q} * q;
  if (plus < square) {
    --root;
    inexact = true;
    return static_cast<uint64_t>(root);
  }
  inexact = plus != square;
  return static_cast<uint64_t>(root);
}

}  // namespace

Float80 square_root(Float80 v, Context& context) {
  Float80 result;
  if (decided_by_nan(v, result, context)) return result;
  if (is_zero(v)) return v;
  if (sign_of(v) != 0) return invalid(context);
  if (stopped_by_denormal(v, context)) return result;
  if (is_infinity(v)) return v;
  const Wide w = normalize(v);
  const int32_t exponent = w.exponent - kExponentBias;
  // The radicand is 2^126 to 2^128 with an even exponent, so that its root has 64 bits.
  const bool odd = (exponent & 1) != 0;
  bool inexact;
  const uint64_t root = odd ? root_128(w.hi, 0, inexact) : root_128(w.hi >> 1, w.hi << 63, inexact);
  // What is below the last bit: root^2 + root < radicand decides whether it is more than one half.
  const uint128 radicand = odd ? uint128{w.hi} << 64 : uint128{w.hi} << 63;
  const uint128 rest = radicand - uint128{root} * root;
  const uint64_t low = !inexact ? 0 : rest > root ? kIntegerBit | 1 : 1;
  return round_and_pack({0, (exponent >> 1) + kExponentBias, root, low}, context);
}

uint32_t compare(Float80 a, Float80 b, bool quiet, Context& context) {
  constexpr uint32_t kUnordered = kC0 | kC2 | kC3;
  if (is_unsupported(a) || is_unsupported(b)) {
    context.raise(kInvalid);
    return kUnordered;
  }
  if (is_nan(a) || is_nan(b)) {
    if (!quiet || is_signaling(a) || is_signaling(b)) context.raise(kInvalid);
    return kUnordered;
  }
  if (is_denormal(a) || is_denormal(b) || context.source_denormal) context.raise(kDenormal);
  if (is_zero(a) && is_zero(b)) return kC3;
  if (sign_of(a) != sign_of(b)) return sign_of(a) != 0 ? kC0 : 0;
  // A pseudo-denormal has the value of a normal number with the same significand and exponent 1.
  const auto magnitude = [](Float80 v) {
    const uint32_t exponent = exponent_of(v);
    return uint128{exponent + (exponent == 0 ? 1 : 0)} << 64 | v.significand;
  };
  const uint128 x = magnitude(a);
  const uint128 y = magnitude(b);
  if (x == y) return kC3;
  return (x < y) != (sign_of(a) != 0) ? kC0 : 0;
}

}  // namespace phybin::runtime::x87
