// Corner values of every type, mixed with random ones.
#include <cstring>

#include "tests/differential/state.h"

namespace phybin::difftest {
namespace {

// A floating-point number from parts; `bits` and `fraction` are the widths of the format.
uint64_t make_float(Random& random, unsigned exponent_bits, unsigned fraction_bits) {
  const uint64_t sign = random.one_in(2) ? uint64_t(1) << (exponent_bits + fraction_bits) : 0;
  const uint64_t fraction_mask = (uint64_t(1) << fraction_bits) - 1;
  const uint64_t quiet = uint64_t(1) << (fraction_bits - 1);
  const uint64_t max_exponent = (uint64_t(1) << exponent_bits) - 1;
  const uint64_t bias = max_exponent >> 1;
  const uint64_t any = random.next() & fraction_mask;
  auto with = [&](uint64_t biased, uint64_t fraction) { return sign | biased << fraction_bits | fraction; };
  uint64_t exponent = 0;
  switch (random.below(24)) {
    case 0:
      return with(0, 0);
    case 1:
      return with(0, random.one_in(2) ? 1 : any);
    case 2:
      return with(0, fraction_mask);
    case 3:
      return with(1, random.one_in(2) ? 0 : any);
    case 4:
      return with(max_exponent, 0);
    case 5:
      return with(max_exponent, quiet | (any & (quiet - 1)));
    case 6:
      return with(max_exponent, quiet);
    case 7:
      return with(max_exponent, (any & (quiet - 1)) | 1);
    case 8:
      return with(max_exponent - 1, random.one_in(2) ? fraction_mask : any);
    case 9:
    case 10:
      return with(bias, 0);
    case 11:
      return with(bias + random.below(4), quiet);  // halves
    case 12:
      return with(bias - 1, 0);
    case 13:
      return with(bias + random.below(70), any);  // around the limits of integers
    case 14:
      exponent = bias + 31 - random.below(2);
      return with(exponent, random.one_in(2) ? 0 : fraction_mask);
    case 15:
      exponent = bias + 63 - random.below(2);
      return with(exponent, random.one_in(2) ? 0 : fraction_mask);
    case 16:
      exponent = bias + random.below(12);
      return with(exponent, any & ~(fraction_mask >> random.below(12)));  // small integers
    case 17:
      return with(bias, 1 + random.below(3));
    case 18:
    case 19:
      return with(bias - 8 + random.below(16), any);
    case 20:
      return with(bias / 2 + random.below(4), any);  // products near the smallest
    case 21:
      return with(bias + bias / 2 + random.below(4), any);  // products near the largest
    default:
      return random.next() & (sign | (with(max_exponent, fraction_mask)));
  }
}

}  // namespace

uint64_t integer_value(Random& random, unsigned bits) {
  const uint64_t mask = bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1;
  const uint64_t top = uint64_t(1) << (bits - 1);
  switch (random.below(16)) {
    case 0:
      return 0;
    case 1:
      return 1;
    case 2:
      return mask;
    case 3:
      return top;
    case 4:
      return top - 1;
    case 5:
      return random.below(32);
    case 6:
      return (0 - uint64_t(random.below(32))) & mask;
    case 7:
      return uint64_t(1) << random.below(bits);
    case 8:
      return ((uint64_t(1) << random.below(bits)) - 1) & mask;
    case 9:
      return ((uint64_t(1) << random.below(bits)) + 1) & mask;
    default:
      return random.next() & mask;
  }
}

uint32_t float32_value(Random& random) { return uint32_t(make_float(random, 8, 23)); }
uint64_t float64_value(Random& random) { return make_float(random, 11, 52); }

void float80_value(Random& random, uint8_t* out) {
  const uint64_t top = uint64_t(1) << 63;
  uint64_t significand = random.next() | top;
  uint32_t exponent = 0;
  switch (random.below(16)) {
    case 0:
      exponent = 0, significand = 0;
      break;
    case 1:
      exponent = 0, significand &= ~top;
      break;
    case 2:
      exponent = 0x7fff, significand = top;
      break;
    case 3:
      exponent = 0x7fff, significand |= top >> 1;
      break;
    case 4:
      exponent = 0x7fff, significand = (significand & ~(top >> 1)) | 1;
      break;
    case 5:
      exponent = 0x3fff, significand = top;
      break;
    case 6:
      exponent = 0x3fff + random.below(68), significand &= ~(~uint64_t(0) >> random.below(63) >> 1);
      break;
    case 7:
      exponent = 0x3fff - 8 + random.below(16);
      break;
    case 8:
      exponent = 0x7ffe;
      break;
    case 9:
      exponent = 1 + random.below(64);
      break;
    case 10:
      exponent = 0x3fff + 1023 - 2 + random.below(4);
      break;  // around the limits of double
    case 11:
      exponent = 0x3fff - 1022 + 2 - random.below(60);
      break;
    case 12:
      exponent = 0x3fff + 127 - 2 + random.below(4);
      break;
    case 13:
      exponent = 0x3fff + random.below(68);
      break;
    case 14:
      exponent = 0x3fff + random.below(3), significand = top | top >> 1;
      break;
    default:
      exponent = random.below(0x7fff) | 1;
      break;
  }
  if (random.one_in(2)) exponent |= 0x8000;
  std::memcpy(out, &significand, 8);
  std::memcpy(out + 8, &exponent, 2);
}

void fill_lanes(Random& random, Hint hint, uint8_t* out, size_t size) {
  if (hint == Hint::kNone) hint = Hint(1 + random.below(6));
  auto fill = [&](unsigned lane, auto value) {
    for (size_t i = 0; i + lane <= size; i += lane) {
      const uint64_t v = value();
      std::memcpy(out + i, &v, lane);
    }
  };
  switch (hint) {
    case Hint::kI8:
      fill(1, [&] { return integer_value(random, 8); });
      break;
    case Hint::kI16:
      fill(2, [&] { return integer_value(random, 16); });
      break;
    case Hint::kI32:
      fill(4, [&] { return integer_value(random, 32); });
      break;
    case Hint::kF32:
      fill(4, [&] { return float32_value(random); });
      break;
    case Hint::kF64:
      fill(8, [&] { return float64_value(random); });
      break;
    // Counts of vector shifts, which are the low half of the operand.
    case Hint::kCount:
      fill(8, [&] { return random.one_in(2) ? uint64_t(random.below(70)) : integer_value(random, 64); });
      break;
    default:
      fill(8, [&] { return integer_value(random, 64); });
      break;
  }
}

}  // namespace phybin::difftest
