// Constants in registers (a64_integer.h).
#include "worker/translator/emit/a64_integer.h"

#include <bit>

namespace phybin::a64 {
namespace {

// The halfwords of a constant that MOVZ (others are 0) or MOVN (others are 0xffff) leaves to be written.
struct WidePlan {
  unsigned zero_words;
  unsigned ones_words;
  bool use_ones() const { return ones_words < zero_words; }
  unsigned words() const {
    const unsigned needed = use_ones() ? ones_words : zero_words;
    return needed == 0 ? 1 : needed;
  }
};

WidePlan plan_wide(uint64_t value, unsigned halfwords) {
  WidePlan plan{0, 0};
  for (unsigned i = 0; i < halfwords; ++i) {
    const uint64_t half = value >> (16 * i) & 0xffff;
    plan.zero_words += half != 0;
    plan.ones_words += half != 0xffff;
  }
  return plan;
}

}  // namespace

// A value below 2^32 is made in the W register, which clears the rest: MOVN of 32 bits then reaches it too.
void IntegerForms::mov_imm(bool is64, Gpr rd, uint64_t value) {
  if (value < 0x10000) return movz(false, rd, static_cast<uint32_t>(value), 0);
  if (value >> 32 == 0) is64 = false;
  if (!is64) value &= 0xffffffff;
  const unsigned halfwords = is64 ? 4 : 2;
  const WidePlan plan = plan_wide(value, halfwords);
  uint32_t n_immr_imms;
  if (plan.words() > 1 && encode_bitmask(value, is64, n_immr_imms)) {
    orr_bitmask(is64, rd, kZr, n_immr_imms);
    return;
  }
  const uint32_t skipped = plan.use_ones() ? 0xffff : 0;
  if (plan.zero_words == 0 || plan.ones_words == 0) {
    plan.use_ones() ? movn(is64, rd, 0) : movz(is64, rd, 0);
    return;
  }
  bool first = true;
  for (unsigned i = 0; i < halfwords; ++i) {
    const auto half = static_cast<uint32_t>(value >> (16 * i) & 0xffff);
    if (half == skipped) continue;
    if (!first) {
      movk(is64, rd, half, i);
    } else if (plan.use_ones()) {
      movn(is64, rd, ~half, i);
    } else {
      movz(is64, rd, half, i);
    }
    first = false;
  }
}

bool IntegerForms::is_mov_imm(uint64_t value) {
  const auto in_one_halfword = [](uint64_t v) { return v >> (std::countr_zero(v) & 48) < 0x10000; };
  uint32_t n_immr_imms;
  if (value >> 32 == 0) {
    const auto word = static_cast<uint32_t>(value);
    if (in_one_halfword(word) || in_one_halfword(uint32_t{~word})) return true;
    // Where neighbouring bits differ: twice in a run of ones, more often only in a pattern that repeats.
    const uint32_t changes = word ^ std::rotr(word, 1), further = changes & (changes - 1);
    if ((further & (further - 1)) == 0) return true;
    return word == std::rotr(word, 16) && encode_bitmask(word, false, n_immr_imms);
  }
  if (in_one_halfword(value) || in_one_halfword(~value)) return true;
  const uint64_t changes = value ^ std::rotr(value, 1), further = changes & (changes - 1);
  if ((further & (further - 1)) == 0) return true;
  return value == std::rotr(value, 32) && encode_bitmask(value, true, n_immr_imms);
}

}  // namespace phybin::a64
