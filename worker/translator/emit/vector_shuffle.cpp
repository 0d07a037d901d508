// Shuffles with a constant pattern, by the shortest sequence of NEON permutations.
//
// PSHUFD: a table made by the compiler holds for each of the 256 patterns one or two instructions, found by trying
// all pairs. The few patterns that two permutations cannot do take TBL with its indexes in the literal pool.
#include <array>

#include "worker/translator/emit/emitter.h"

namespace phybin::emit {

using a64::kB;
using a64::kD;
using a64::kS;
using a64::Vec;
using ir::Op;

namespace {

// Permutations of four elements in one instruction.
enum class Step : uint8_t {
  kNone,
  kDup0,
  kDup1,
  kDup2,
  kDup3,
  kDupLow,
  kDupHigh,
  kSwapNeighbours,
  kZip1,
  kZip2,
  kUzp1,
  kUzp2,
  kTrn1,
  kTrn2,
  kExt1,
  kExt2,
  kExt3,
  kInsert,  // second step only: element `to` = element `from` of the source
  kTable,
  kCount
};

// Element i of the result is element pattern[i] of the operand.
using Pattern = std::array<uint8_t, 4>;
constexpr Pattern kPatterns[] = {{0, 1, 2, 3}, {0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}, {0, 1, 0, 1},
                                 {2, 3, 2, 3}, {1, 0, 3, 2}, {0, 0, 1, 1}, {2, 2, 3, 3}, {0, 2, 0, 2}, {1, 3, 1, 3},
                                 {0, 0, 2, 2}, {1, 1, 3, 3}, {1, 2, 3, 0}, {2, 3, 0, 1}, {3, 0, 1, 2}};
constexpr unsigned kPermutations = std::size(kPatterns);

struct Plan {
  Step first = Step::kTable, second = Step::kNone;
  uint8_t to = 0, from = 0;  // kInsert
};

constexpr Pattern pattern_of(unsigned imm) {
  return {static_cast<uint8_t>(imm & 3), static_cast<uint8_t>(imm >> 2 & 3), static_cast<uint8_t>(imm >> 4 & 3),
          static_cast<uint8_t>(imm >> 6 & 3)};
}

constexpr Plan plan_of(unsigned imm) {
  const Pattern wanted = pattern_of(imm);
  for (unsigned i = 0; i < kPermutations; ++i) {
    if (kPatterns[i] == wanted) return {static_cast<Step>(i), Step::kNone, 0, 0};
  }
  for (unsigned i = 0; i < kPermutations; ++i) {
    unsigned differences = 0;
    uint8_t place = 0;
    for (uint8_t k = 0; k < 4; ++k) {
      if (kPatterns[i][k] == wanted[k]) continue;
      ++differences;
      place = k;
    }
    if (differences == 1) return {static_cast<Step>(i), Step::kInsert, place, wanted[place]};
  }
  for (unsigned i = 1; i < kPermutations; ++i) {
    for (unsigned j = 1; j < kPermutations; ++j) {
      bool same = true;
      for (unsigned k = 0; k < 4; ++k) same &= kPatterns[i][kPatterns[j][k]] == wanted[k];
      if (same) return {static_cast<Step>(i), static_cast<Step>(j), 0, 0};
    }
  }
  return {};
}

constexpr std::array<Plan, 256> make_plans() {
  std::array<Plan, 256> plans{};
  for (unsigned i = 0; i < 256; ++i) plans[i] = plan_of(i);
  return plans;
}
constexpr std::array<Plan, 256> kPlans = make_plans();

void permute(Emitter& e, Step step, Vec d, Vec n) {
  a64::Assembler& a = e.a;
  switch (step) {
    case Step::kDup0:
    case Step::kDup1:
    case Step::kDup2:
    case Step::kDup3:
      return a.vdup_elem(true, kS, d, n, static_cast<unsigned>(step) - static_cast<unsigned>(Step::kDup0));
    case Step::kDupLow:
      return a.vdup_elem(true, kD, d, n, 0);
    case Step::kDupHigh:
      return a.vdup_elem(true, kD, d, n, 1);
    case Step::kSwapNeighbours:
      return a.vrev64(true, kS, d, n);
    case Step::kZip1:
      return a.vzip1(true, kS, d, n, n);
    case Step::kZip2:
      return a.vzip2(true, kS, d, n, n);
    case Step::kUzp1:
      return a.vuzp1(true, kS, d, n, n);
    case Step::kUzp2:
      return a.vuzp2(true, kS, d, n, n);
    case Step::kTrn1:
      return a.vtrn1(true, kS, d, n, n);
    case Step::kTrn2:
      return a.vtrn2(true, kS, d, n, n);
    case Step::kExt1:
    case Step::kExt2:
    case Step::kExt3:
      return a.vext(true, d, n, n, 4 * (static_cast<unsigned>(step) - static_cast<unsigned>(Step::kExt1) + 1));
    default:
      if (d != n) a.vmov(true, d, n);
  }
}

uint64_t repeated_byte_indexes(unsigned element, unsigned bytes) {
  uint64_t r = 0;
  for (unsigned i = 0; i < bytes; ++i) r |= uint64_t{element * bytes + i} << 8 * i;
  return r;
}

// TBL indexes that move elements of 4 bytes as `imm` says, elements 2 and 3 of the result coming from the table's
// byte `second` on.
void load_indexes_32(Emitter& e, unsigned imm, unsigned second, Vec into) {
  const Pattern p = pattern_of(imm);
  const auto element = [&](unsigned i) { return repeated_byte_indexes(p[i] + (i >= 2 ? second / 4 : 0), 4); };
  e.a.ldr_literal128_v(into, element(0) | element(1) << 32, element(2) | element(3) << 32);
}

void shuffle_32(Emitter& e, unsigned imm, Vec d, Vec n) {
  const Plan& plan = kPlans[imm];
  if (plan.first == Step::kTable) {
    load_indexes_32(e, imm, 0, kVecScratch0);
    e.a.vtbl(true, 1, d, n, kVecScratch0);
  } else if (plan.second == Step::kInsert) {
    const Vec step = d == n ? kVecScratch0 : d;
    permute(e, plan.first, step, n);
    e.a.ins_elem(kS, step, plan.to, n, plan.from);
    if (step != d) e.a.vmov(true, d, step);
  } else {
    permute(e, plan.first, d, n);
    if (plan.second != Step::kNone) permute(e, plan.second, d, d);
  }
}

// One half of SHUFPS: elements i, j of n, to be had in the low (0), high (1) or both halves of a register.
struct Half {
  Step step = Step::kTable;
  bool low = false, high = false;
};

constexpr Half half_of(unsigned i, unsigned j) {
  for (unsigned k = 0; k < kPermutations; ++k) {
    const Pattern& p = kPatterns[k];
    const bool low = p[0] == i && p[1] == j;
    const bool high = p[2] == i && p[3] == j;
    if (low || high) return {static_cast<Step>(k), low, high};
  }
  return {};
}

}  // namespace

void emit_VecShuffle32(Emitter& e, const Op& op) {
  const Vec a = e.use_vec(op.a);
  const Vec d = e.def_vec(op);
  shuffle_32(e, static_cast<unsigned>(op.imm), d, a);
}

void emit_VecShuffle16(Emitter& e, const Op& op) {
  const Vec a = e.use_vec(op.a);
  const Vec d = e.def_vec(op);
  const Pattern p = pattern_of(static_cast<unsigned>(op.imm));
  uint64_t halves[2] = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
  uint64_t moved = 0;
  for (unsigned i = 0; i < 4; ++i) moved |= repeated_byte_indexes(p[i] + 4u * op.aux2, 2) << 16 * i;
  halves[op.aux2] = moved;
  if (op.width == 64) {
    e.a.ldr_literal64_v(kVecScratch0, halves[0]);
    e.a.vtbl(false, 1, d, a, kVecScratch0);
  } else {
    e.a.ldr_literal128_v(kVecScratch0, halves[0], halves[1]);
    e.a.vtbl(true, 1, d, a, kVecScratch0);
  }
}

void emit_VecShufflePair(Emitter& e, const Op& op) {
  const Vec a = e.use_vec(op.a), b = e.use_vec(op.b);
  const Vec d = e.def_vec(op);
  const auto imm = static_cast<unsigned>(op.imm);
  if (a == b) return shuffle_32(e, imm, d, a);
  // In one instruction.
  switch (imm) {
    case 0x88:
      return e.a.vuzp1(true, kS, d, a, b);
    case 0xdd:
      return e.a.vuzp2(true, kS, d, a, b);
    case 0x4e:
      return e.a.vext(true, d, a, b, 8);
    case 0x44:
      return e.a.vzip1(true, kD, d, a, b);
    case 0xee:
      return e.a.vzip2(true, kD, d, a, b);
    default:
      break;
  }
  const Pattern p = pattern_of(imm);
  const Half low = half_of(p[0], p[1]), high = half_of(p[2], p[3]);
  if (low.step == Step::kTable || high.step == Step::kTable) {
    e.a.vmov(true, kVecScratch0, a);
    e.a.vmov(true, kVecScratch1, b);
    load_indexes_32(e, imm, 16, kVecScratch2);
    e.a.vtbl(true, 2, d, kVecScratch0, kVecScratch2);
    return;
  }
  Vec x = a, y = b;
  if (low.step != Step::kNone) {
    x = kVecScratch0;
    permute(e, low.step, x, a);
  }
  if (high.step != Step::kNone) {
    y = kVecScratch1;
    permute(e, high.step, y, b);
  }
  // Identity (kNone) offers its low half for 0, 1; elements 2, 3 in place are its high half.
  if (low.low && high.low) {
    e.a.vzip1(true, kD, d, x, y);
  } else if (low.high && high.high) {
    e.a.vzip2(true, kD, d, x, y);
  } else if (low.high) {
    e.a.vext(true, d, x, y, 8);
  } else if (d == y && d != x) {
    e.a.ins_elem(kD, d, 0, x, 0);
  } else {
    if (d != x) e.a.vmov(true, d, x);
    e.a.ins_elem(kD, d, 1, y, 1);
  }
}

// The index is the low four bits; the top bit asks for zero, which TBL gives for whatever is beyond its table.
void emit_VecTable(Emitter& e, const Op& op) {
  const Vec a = e.use_vec(op.a), b = e.use_vec(op.b);
  const Vec d = e.def_vec(op);
  if (op.width == 128) {
    e.a.movi(true, kB, kVecScratch0, 0x8f);
    e.a.vand(true, kVecScratch0, b, kVecScratch0);
    e.a.vtbl(true, 1, d, a, kVecScratch0);
  } else {
    e.a.movi(false, kB, kVecScratch0, 0x87);
    e.a.vand(false, kVecScratch0, b, kVecScratch0);
    e.a.vtbl(false, 1, d, a, kVecScratch0);
  }
}

}  // namespace phybin::emit
