// Every integer and system form against the GNU assembler.
#include <gtest/gtest.h>

#include "tests/unit/gnu_assembler.h"

namespace phybin::a64 {
namespace {

constexpr Cond kConds[] = {Cond::EQ, Cond::NE, Cond::CS, Cond::CC, Cond::MI, Cond::PL, Cond::VS,
                           Cond::VC, Cond::HI, Cond::LS, Cond::GE, Cond::LT, Cond::GT, Cond::LE};
constexpr uint32_t kImm12[] = {0, 1, 2, 0x555, 0x7ff, 0x800, 0xffe, 0xfff};

// Calls body(is64, registers, step) for both widths and every register number.
template <typename Body>
void for_all(Body body) {
  for (const bool is64 : {false, true}) {
    for (unsigned step = 0; step < 32; ++step) body(is64, Registers(step), step);
  }
}

// Shift amounts and bit numbers worth trying.
std::vector<unsigned> amounts(bool is64) {
  if (is64) return {0, 1, 7, 8, 15, 16, 31, 32, 33, 47, 62, 63};
  return {0, 1, 7, 8, 15, 16, 24, 30, 31};
}

void add_subtract(GnuAssembler& judge) {
#define X(name, op)                                                                                               \
  for_all([&](bool is64, Registers g, unsigned step) {                                                            \
    const bool flags = (op)&0x20000000;                                                                           \
    const std::string d_or_sp = flags ? r(is64, g.d) : sp(is64, g.d);                                             \
    EXPECT_FORM(judge, name, (is64, g.d, g.n, g.m), #name, r(is64, g.d), r(is64, g.n), r(is64, g.m));             \
    for (const Shift shift : {LSL, LSR, ASR}) {                                                                   \
      const unsigned amount = amounts(is64)[step % amounts(is64).size()];                                         \
      EXPECT_FORM(judge, name##_shifted, (is64, g.d, g.n, g.m, shift, amount), #name, r(is64, g.d), r(is64, g.n), \
                  r(is64, g.m), name_of(shift) + " " + std::to_string(amount));                                   \
    }                                                                                                             \
    for (unsigned kind = 0; kind < 8; ++kind) {                                                                   \
      const auto extend = static_cast<Extend>(kind);                                                              \
      const bool x_index = is64 && (kind & 3) == 3;                                                               \
      EXPECT_FORM(judge, name##_extended, (is64, g.d, g.n, g.m, extend, step % 5), #name, d_or_sp, sp(is64, g.n), \
                  r(x_index, g.m), name_of(extend) + " " + std::to_string(step % 5));                             \
    }                                                                                                             \
    const uint32_t imm = kImm12[step % 8];                                                                        \
    EXPECT_FORM(judge, name##_imm, (is64, g.d, g.n, imm), #name, d_or_sp, sp(is64, g.n), imm);                    \
    EXPECT_FORM(judge, name##_imm, (is64, g.d, g.n, imm, true), #name, d_or_sp, sp(is64, g.n), imm, "lsl 12");    \
  });
  PHYBIN_A64_ADD_SUB(X)
#undef X
}

// All values that are bitmask immediates: a run of ones in an element, rotated, repeated.
std::vector<uint64_t> bitmask_values(bool is64) {
  std::vector<uint64_t> values;
  for (unsigned size = 2; size <= (is64 ? 64 : 32); size *= 2) {
    for (unsigned ones = 1; ones < size; ++ones) {
      for (unsigned rotation = 0; rotation < size; ++rotation) {
        uint64_t value = 0;
        for (unsigned bit = 0; bit < ones; ++bit) {
          for (unsigned at = (bit + rotation) % size; at < (is64 ? 64 : 32); at += size) value |= uint64_t{1} << at;
        }
        values.push_back(value);
      }
    }
  }
  return values;
}

void logical(GnuAssembler& judge) {
#define X(name, stem, op)                                                                                         \
  for_all([&](bool is64, Registers g, unsigned step) {                                                            \
    EXPECT_FORM(judge, name, (is64, g.d, g.n, g.m), #stem, r(is64, g.d), r(is64, g.n), r(is64, g.m));             \
    for (const Shift shift : {LSL, LSR, ASR, ROR}) {                                                              \
      const unsigned amount = amounts(is64)[step % amounts(is64).size()];                                         \
      EXPECT_FORM(judge, stem##_shifted, (is64, g.d, g.n, g.m, shift, amount), #stem, r(is64, g.d), r(is64, g.n), \
                  r(is64, g.m), name_of(shift) + " " + std::to_string(amount));                                   \
    }                                                                                                             \
  });
  PHYBIN_A64_LOGICAL(X)
#undef X
#define X(stem, op)                                                                                 \
  for (const bool is64 : {false, true}) {                                                           \
    unsigned step = 0;                                                                              \
    const bool flags = (op) == 0x72000000;                                                          \
    for (const uint64_t value : bitmask_values(is64)) {                                             \
      const Registers g(step++ % 32);                                                               \
      uint32_t encoded = 0;                                                                         \
      ASSERT_TRUE(encode_bitmask(value, is64, encoded)) << std::hex << value;                       \
      const std::string d = flags ? r(is64, g.d) : sp(is64, g.d);                                   \
      EXPECT_FORM(judge, stem##_bitmask, (is64, g.d, g.n, encoded), #stem, d, r(is64, g.n), value); \
      EXPECT_FORM(judge, stem##_imm, (is64, g.d, g.n, value), #stem, d, r(is64, g.n), value);       \
    }                                                                                               \
  }
  PHYBIN_A64_LOGICAL_IMM(X)
#undef X
}

// A value is accepted exactly if it is one of the encodable ones.
TEST(A64Integer, BitmaskRefusesOthers) {
  for (const bool is64 : {false, true}) {
    std::vector<uint64_t> values = bitmask_values(is64);
    const std::set<uint64_t> good(values.begin(), values.end());
    EXPECT_EQ(good.size(), is64 ? 5334u : 1302u);
    std::vector<uint64_t> tries = {0, ~uint64_t{0}, 0xffffffff, 5, 0x1234567812345678, 0xf0f0f0f0f0f0f0f1};
    for (const uint64_t value : values) {
      for (unsigned bit = 0; bit < (is64 ? 64 : 32); bit += 3) tries.push_back(value ^ uint64_t{1} << bit);
    }
    for (uint64_t value : tries) {
      if (!is64) value &= 0xffffffff;
      uint32_t encoded;
      ASSERT_EQ(encode_bitmask(value, is64, encoded), good.contains(value)) << std::hex << value;
    }
  }
}

void data_processing(GnuAssembler& judge) {
#define X(name, op)                                                                                   \
  for_all([&](bool is64, Registers g, unsigned) {                                                     \
    EXPECT_FORM(judge, name, (is64, g.d, g.n, g.m), #name, r(is64, g.d), r(is64, g.n), r(is64, g.m)); \
  });
  PHYBIN_A64_TWO_SOURCE(X)
#undef X
#define X(name, kd, kn, km, op)                                                                    \
  for (unsigned step = 0; step < 32; ++step) {                                                     \
    const Registers g(step);                                                                       \
    EXPECT_FORM(judge, name, (g.d, g.n, g.m), #name, r(#kd[0] == 'x', g.d), r(#kn[0] == 'x', g.n), \
                r(#km[0] == 'x', g.m));                                                            \
  }
  PHYBIN_A64_TWO_SOURCE_FIXED(X)
#undef X
#define X(name, op)                                                                \
  for_all([&](bool is64, Registers g, unsigned) {                                  \
    EXPECT_FORM(judge, name, (is64, g.d, g.n), #name, r(is64, g.d), r(is64, g.n)); \
  });
  PHYBIN_A64_ONE_SOURCE(X)
#undef X
#define X(name, op)                                                                                       \
  for_all([&](bool is64, Registers g, unsigned) {                                                         \
    EXPECT_FORM(judge, name, (is64, g.d, g.n, g.m, g.a), #name, r(is64, g.d), r(is64, g.n), r(is64, g.m), \
                r(is64, g.a));                                                                            \
  });
  PHYBIN_A64_THREE_SOURCE(X)
#undef X
#define X(name, op)                                                                                                  \
  for (unsigned step = 0; step < 32; ++step) {                                                                       \
    const Registers g(step);                                                                                         \
    EXPECT_FORM(judge, name, (g.d, g.n, g.m, g.a), #name, r(true, g.d), r(false, g.n), r(false, g.m), r(true, g.a)); \
  }
  PHYBIN_A64_THREE_SOURCE_LONG(X)
#undef X
#define X(name, op)                                                                                                 \
  for_all([&](bool is64, Registers g, unsigned step) {                                                              \
    for (const Cond cond : kConds) {                                                                                \
      EXPECT_FORM(judge, name, (is64, g.d, g.n, g.m, cond), #name, r(is64, g.d), r(is64, g.n), r(is64, g.m), cond); \
    }                                                                                                               \
    (void)step;                                                                                                     \
  });
  PHYBIN_A64_SELECT(X)
#undef X
#define X(name, op)                                                                                                  \
  for_all([&](bool is64, Registers g, unsigned step) {                                                               \
    const Cond cond = kConds[step % 14];                                                                             \
    EXPECT_FORM(judge, name, (is64, g.n, g.m, step % 16, cond), #name, r(is64, g.n), r(is64, g.m), step % 16, cond); \
    EXPECT_FORM(judge, name##_imm, (is64, g.n, step, step / 2, cond), #name, r(is64, g.n), step, step / 2, cond);    \
  });
  PHYBIN_A64_COND_COMPARE(X)
#undef X
#define X(name, op)                                                                       \
  for_all([&](bool is64, Registers g, unsigned step) {                                    \
    for (unsigned position = 0; position < (is64 ? 4 : 2); ++position) {                  \
      const uint32_t imm = step == 0 ? 0 : step == 1 ? 0xffff : (step * 0x9e37) & 0xffff; \
      EXPECT_FORM(judge, name, (is64, g.d, imm, position), #name, r(is64, g.d), imm,      \
                  "lsl " + std::to_string(16 * position));                                \
    }                                                                                     \
  });
  PHYBIN_A64_MOVE_WIDE(X)
#undef X
  for_all([&](bool is64, Registers g, unsigned step) {
    EXPECT_FORM(judge, rev, (is64, g.d, g.n), "rev", r(is64, g.d), r(is64, g.n));
    EXPECT_FORM(judge, rev32, (g.d, g.n), "rev32", r(true, g.d), r(true, g.n));
    EXPECT_FORM(judge, extr, (is64, g.d, g.n, g.m, step), "extr", r(is64, g.d), r(is64, g.n), r(is64, g.m), step);
    if (is64)
      EXPECT_FORM(judge, extr, (is64, g.d, g.n, g.m, step + 32), "extr", r(is64, g.d), r(is64, g.n), r(is64, g.m),
                  step + 32);
    EXPECT_FORM(judge, mov, (is64, g.d, g.m), "mov", r(is64, g.d), r(is64, g.m));
    EXPECT_FORM(judge, mov_sp, (is64, kSp, g.n), "mov", sp(is64, kSp), sp(is64, g.n));
    EXPECT_FORM(judge, mov_sp, (is64, g.d, kSp), "mov", sp(is64, g.d), sp(is64, kSp));
    EXPECT_FORM(judge, mvn, (is64, g.d, g.m), "mvn", r(is64, g.d), r(is64, g.m));
    EXPECT_FORM(judge, neg, (is64, g.d, g.m), "neg", r(is64, g.d), r(is64, g.m));
    EXPECT_FORM(judge, negs, (is64, g.d, g.m), "negs", r(is64, g.d), r(is64, g.m));
    EXPECT_FORM(judge, ngc, (is64, g.d, g.m), "ngc", r(is64, g.d), r(is64, g.m));
    EXPECT_FORM(judge, ngcs, (is64, g.d, g.m), "ngcs", r(is64, g.d), r(is64, g.m));
    EXPECT_FORM(judge, cmp, (is64, g.n, g.m), "cmp", r(is64, g.n), r(is64, g.m));
    EXPECT_FORM(judge, cmn, (is64, g.n, g.m), "cmn", r(is64, g.n), r(is64, g.m));
    EXPECT_FORM(judge, tst, (is64, g.n, g.m), "tst", r(is64, g.n), r(is64, g.m));
    EXPECT_FORM(judge, cmp_imm, (is64, g.n, kImm12[step % 8]), "cmp", sp(is64, g.n), kImm12[step % 8]);
    EXPECT_FORM(judge, cmn_imm, (is64, g.n, kImm12[step % 8], true), "cmn", sp(is64, g.n), kImm12[step % 8],
                "lsl 12");
    EXPECT_FORM(judge, tst_imm, (is64, g.n, 0x7f), "tst", r(is64, g.n), 0x7f);
    const Cond cond = kConds[step % 14];
    EXPECT_FORM(judge, cset, (is64, g.d, cond), "cset", r(is64, g.d), cond);
    EXPECT_FORM(judge, csetm, (is64, g.d, cond), "csetm", r(is64, g.d), cond);
    EXPECT_FORM(judge, cinc, (is64, g.d, g.n, cond), "cinc", r(is64, g.d), r(is64, g.n), cond);
    EXPECT_FORM(judge, cinv, (is64, g.d, g.n, cond), "cinv", r(is64, g.d), r(is64, g.n), cond);
    EXPECT_FORM(judge, cneg, (is64, g.d, g.n, cond), "cneg", r(is64, g.d), r(is64, g.n), cond);
    EXPECT_FORM(judge, sxtb, (is64, g.d, g.n), "sxtb", r(is64, g.d), r(false, g.n));
    EXPECT_FORM(judge, sxth, (is64, g.d, g.n), "sxth", r(is64, g.d), r(false, g.n));
    EXPECT_FORM(judge, sxtw, (g.d, g.n), "sxtw", r(true, g.d), r(false, g.n));
    EXPECT_FORM(judge, uxtb, (g.d, g.n), "uxtb", r(false, g.d), r(false, g.n));
    EXPECT_FORM(judge, uxth, (g.d, g.n), "uxth", r(false, g.d), r(false, g.n));
    EXPECT_FORM(judge, uxtw, (g.d, g.n), "mov", r(false, g.d), r(false, g.n));
    EXPECT_FORM(judge, mov_imm, (is64, g.d, step * 3), "mov", r(false, g.d), step * 3);
  });
}

void bit_fields_and_shifts(GnuAssembler& judge) {
  for_all([&](bool is64, Registers g, unsigned step) {
    const unsigned bits = is64 ? 64 : 32;
    const std::string d = r(is64, g.d), n = r(is64, g.n);
    for (const unsigned a : amounts(is64)) {
      EXPECT_FORM(judge, lsl_imm, (is64, g.d, g.n, a), "lsl", d, n, a);
      EXPECT_FORM(judge, lsr_imm, (is64, g.d, g.n, a), "lsr", d, n, a);
      EXPECT_FORM(judge, asr_imm, (is64, g.d, g.n, a), "asr", d, n, a);
      EXPECT_FORM(judge, ror_imm, (is64, g.d, g.n, a), "ror", d, n, a);
      for (const unsigned width : {1u, 2u, 8u, 16u, 31u, bits - a}) {
        if (a + width > bits) continue;
#define X(name, base) EXPECT_FORM(judge, name, (is64, g.d, g.n, a, width), #name, d, n, a, width);
        PHYBIN_A64_EXTRACT(X)
        PHYBIN_A64_INSERT(X)
#undef X
      }
#define X(name, op) EXPECT_FORM(judge, name, (is64, g.d, g.n, a, step), #name, d, n, a, step);
      PHYBIN_A64_BITFIELD(X)
#undef X
    }
  });
}

void system_forms(GnuAssembler& judge) {
#define X(name, op) EXPECT_FORM(judge, name, (), #name);
  PHYBIN_A64_PLAIN(X)
#undef X
  for (unsigned step = 0; step < 32; ++step) {
    const Registers g(step);
#define X(name, text, op, position) \
  if (step < 31) EXPECT_FORM(judge, name, (g.d), text + std::to_string(g.d));
    PHYBIN_A64_ONE_REGISTER(X)
#undef X
#define X(name, op, position) EXPECT_FORM(judge, name, (step * 2114), #name, step * 2114);
    PHYBIN_A64_EXCEPTION(X)
#undef X
    EXPECT_FORM(judge, rmif, (g.n, step * 2, step & 15), "rmif", r(true, g.n), step * 2, step & 15);
    const int64_t far = (static_cast<int64_t>(step) - 16) * 0x7fff4;
    EXPECT_FORM(judge, b_offset, (far), "b", ". + " + std::to_string(far));
    EXPECT_FORM(judge, bl_offset, (far), "bl", ". + " + std::to_string(far));
    const int64_t near = (static_cast<int64_t>(step) - 16) * 0xffff;
    EXPECT_FORM(judge, adr_offset, (g.d, near), "adr", r(true, g.d), ". + " + std::to_string(near));
    const struct {
      SystemRegister reg;
      const char* name;
      bool writable;
    } registers[] = {{SystemRegister::NZCV, "nzcv", true},
                     {SystemRegister::FPCR, "fpcr", true},
                     {SystemRegister::FPSR, "fpsr", true},
                     {SystemRegister::TPIDR_EL0, "tpidr_el0", true},
                     {SystemRegister::CTR_EL0, "ctr_el0", false},
                     {SystemRegister::DCZID_EL0, "dczid_el0", false},
                     {SystemRegister::CNTFRQ_EL0, "cntfrq_el0", false},
                     {SystemRegister::CNTVCT_EL0, "cntvct_el0", false}};
    for (const auto& system : registers) {
      EXPECT_FORM(judge, mrs, (g.d, system.reg), "mrs", r(true, g.d), system.name);
      if (system.writable) EXPECT_FORM(judge, msr, (system.reg, g.d), "msr", system.name, r(true, g.d));
    }
  }
  const struct {
    Barrier barrier;
    const char* name;
  } barriers[] = {{Barrier::ISHLD, "ishld"}, {Barrier::ISHST, "ishst"}, {Barrier::ISH, "ish"},
                  {Barrier::LD, "ld"},       {Barrier::ST, "st"},       {Barrier::SY, "sy"}};
  for (const auto& barrier : barriers) {
    EXPECT_FORM(judge, dmb, (barrier.barrier), "dmb", barrier.name);
    EXPECT_FORM(judge, dsb, (barrier.barrier), "dsb", barrier.name);
  }
  // ADRP has no text without a relocation: its word follows from the manual's fields.
  EXPECT_FORM(judge, adrp, (7, 5), ".inst 0x90000000 | 7 | 1 << 5 | 1 << 29");
  EXPECT_FORM(judge, adrp, (31, -1), ".inst 0x90ffffff | 3 << 29");
}

TEST(A64Integer, MatchesGnuAssembler) {
  GnuAssembler judge;
  add_subtract(judge);
  logical(judge);
  data_processing(judge);
  bit_fields_and_shifts(judge);
  system_forms(judge);
  judge.expect_equal();
  judge.expect_covered("a64_integer.h");
}

}  // namespace
}  // namespace phybin::a64
