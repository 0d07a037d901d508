// Every floating-point and vector form against the GNU assembler.
#include <gtest/gtest.h>

#include "tests/unit/gnu_assembler.h"

namespace phybin::a64 {
namespace {

constexpr unsigned kSetSD = kSetS | kSetD;

// Calls body(q, size, registers, step) for every arrangement of the element sizes in the set.
template <typename Body>
void for_each_shape(unsigned sizes, Body body) {
  for (unsigned size = 0; size < 4; ++size) {
    if ((sizes >> size & 1) == 0) continue;
    for (const bool q : {false, true}) {
      if (size == 3 && !q) continue;
      for (unsigned step = 0; step < 32; ++step) body(q, size, Registers(step), step);
    }
  }
}
template <typename Body>
void for_each_size(unsigned sizes, Body body) {
  for (unsigned size = 0; size < 4; ++size) {
    if ((sizes >> size & 1) == 0) continue;
    for (unsigned step = 0; step < 32; ++step) body(size, Registers(step), step);
  }
}

std::string second_if(bool q, const char* name) { return q ? std::string(name) + "2" : name; }

void scalar_float(GnuAssembler& judge) {
  for_each_size(kSetSD, [&](unsigned size, Registers g, unsigned step) {
    const std::string d = fp(size, g.d), n = fp(size, g.n), m = fp(size, g.m), a = fp(size, g.a);
    const auto cond = static_cast<Cond>(step % 15);
#define X(name, op) EXPECT_FORM(judge, name, (size, g.d, g.n, g.m), #name, d, n, m);
    PHYBIN_A64_FP_TWO_SOURCE(X)
#undef X
#define X(name, op) EXPECT_FORM(judge, name, (size, g.d, g.n), #name, d, n);
    PHYBIN_A64_FP_ONE_SOURCE(X)
#undef X
#define X(name, op) EXPECT_FORM(judge, name, (size, g.d, g.n, g.m, g.a), #name, d, n, m, a);
    PHYBIN_A64_FP_THREE_SOURCE(X)
#undef X
#define X(name, op)                                        \
  EXPECT_FORM(judge, name, (size, g.n, g.m), #name, n, m); \
  EXPECT_FORM(judge, name##_zero, (size, g.n), #name, n, "#0.0");
    PHYBIN_A64_FP_COMPARE(X)
#undef X
#define X(name, op) EXPECT_FORM(judge, name, (size, g.n, g.m, step / 2, cond), #name, n, m, step / 2, cond);
    PHYBIN_A64_FP_COND_COMPARE(X)
#undef X
    for (const bool is64 : {false, true}) {
#define X(name, op) EXPECT_FORM(judge, name, (is64, size, g.d, g.n), #name, r(is64, g.d), n);
      PHYBIN_A64_FP_TO_INT(X)
#undef X
#define X(name, op) EXPECT_FORM(judge, name, (is64, size, g.d, g.n), #name, d, r(is64, g.n));
      PHYBIN_A64_FP_FROM_INT(X)
#undef X
      EXPECT_FORM(judge, fmov_to_gpr, (is64, g.d, g.n), "fmov", r(is64, g.d), fp(is64 ? kD : kS, g.n));
      EXPECT_FORM(judge, fmov_from_gpr, (is64, g.d, g.n), "fmov", fp(is64 ? kD : kS, g.d), r(is64, g.n));
    }
    EXPECT_FORM(judge, fcsel, (size, g.d, g.n, g.m, cond), "fcsel", d, n, m, cond);
    for (unsigned from = 1; from < 4; ++from) {
      if (from != size) EXPECT_FORM(judge, fcvt, (size, from, g.d, g.n), "fcvt", d, fp(from, g.n));
    }
    EXPECT_FORM(judge, fcvt, (kH, size, g.d, g.n), "fcvt", fp(kH, g.d), n);
    for (unsigned imm8 = step; imm8 < 256; imm8 += 32) {
      // -1^a * (16 + efgh) / 16 * 2^(bcd), as the manual's VFPExpandImm
      const int exponent = static_cast<int>((imm8 >> 4 & 7) ^ 4) - 3;
      const double value = (imm8 & 0x80 ? -1.0 : 1.0) * (16 + (imm8 & 15)) / 16.0 * __builtin_ldexp(1.0, exponent);
      char text[32];
      snprintf(text, sizeof text, "%.8f", value);
      EXPECT_FORM(judge, fmov_imm, (size, g.d, imm8), "fmov", d, text);
      for (const bool q : {false, true}) {
        if (size == 3 && !q) continue;
        EXPECT_FORM(judge, vfmov_imm, (q, size, g.d, imm8), "fmov", v(q, size, g.d), text);
      }
      uint32_t encoded = 0;
      const auto single = static_cast<float>(value);
      EXPECT_TRUE(encode_fp64_imm(std::bit_cast<uint64_t>(value), encoded));
      EXPECT_EQ(encoded, imm8);
      EXPECT_TRUE(encode_fp32_imm(std::bit_cast<uint32_t>(single), encoded));
      EXPECT_EQ(encoded, imm8);
      EXPECT_FALSE(encode_fp64_imm(std::bit_cast<uint64_t>(value * 1024), encoded));
      EXPECT_FALSE(encode_fp32_imm(std::bit_cast<uint32_t>(single / 1024), encoded));
      EXPECT_FALSE(encode_fp64_imm(std::bit_cast<uint64_t>(value) + 1, encoded));
      EXPECT_FALSE(encode_fp32_imm(std::bit_cast<uint32_t>(single) + 1, encoded));
    }
    EXPECT_FORM(judge, fmov_high_to_gpr, (g.d, g.n), "fmov", r(true, g.d), "v" + std::to_string(g.n) + ".d[1]");
    EXPECT_FORM(judge, fmov_high_from_gpr, (g.d, g.n), "fmov", "v" + std::to_string(g.d) + ".d[1]", r(true, g.n));
  });
}

void scalar_in_vector(GnuAssembler& judge) {
#define X(name, text, op, sizes)                                                                        \
  for_each_size(sizes, [&](unsigned size, Registers g, unsigned) {                                      \
    EXPECT_FORM(judge, name, (size, g.d, g.n, g.m), text, fp(size, g.d), fp(size, g.n), fp(size, g.m)); \
  });
  PHYBIN_A64_SCALAR_THREE(X)
#undef X
  for_each_size(kSetSD, [&](unsigned size, Registers g, unsigned) {
    const std::string d = fp(size, g.d), n = fp(size, g.n), m = fp(size, g.m);
#define X(name, text, op) EXPECT_FORM(judge, name, (size, g.d, g.n, g.m), text, d, n, m);
    PHYBIN_A64_SCALAR_FP_THREE(X)
#undef X
#define X(name, text, op) EXPECT_FORM(judge, name, (size, g.d, g.n), text, d, n);
    PHYBIN_A64_SCALAR_FP_TWO(X)
#undef X
#define X(name, text, op) \
  EXPECT_FORM(judge, name, (size, g.d, g.n), text, d, "v" + std::to_string(g.n) + (size == 3 ? ".2d" : ".2s"));
    PHYBIN_A64_SCALAR_FP_PAIR(X)
#undef X
  });
  for (unsigned step = 0; step < 32; ++step) {
    const Registers g(step);
    const std::string d = fp(kD, g.d), n = fp(kD, g.n);
#define X(name, text, zero, op) EXPECT_FORM(judge, name, (g.d, g.n), text, d, n + zero);
    PHYBIN_A64_SCALAR_D_TWO(X)
#undef X
#define X(name, text, op) EXPECT_FORM(judge, name, (g.d, g.n, step * 2 + 1), text, d, n, step * 2 + 1);
    PHYBIN_A64_SCALAR_SHIFT_LEFT(X)
    PHYBIN_A64_SCALAR_SHIFT_RIGHT(X)
#undef X
    EXPECT_FORM(judge, shl_scalar, (g.d, g.n, 0), "shl", d, n, 0);
    EXPECT_FORM(judge, sshr_scalar, (g.d, g.n, 64), "sshr", d, n, 64);
    EXPECT_FORM(judge, addp_scalar, (g.d, g.n), "addp", d, v(true, kD, g.n));
  }
}

void same_size(GnuAssembler& judge) {
#define X(name, text, op, sizes)                                                                                 \
  for_each_shape(sizes, [&](bool q, unsigned size, Registers g, unsigned) {                                      \
    EXPECT_FORM(judge, name, (q, size, g.d, g.n, g.m), text, v(q, size, g.d), v(q, size, g.n), v(q, size, g.m)); \
  });
  PHYBIN_A64_V_THREE_SAME(X)
#undef X
#define X(name, text, op, sizes)                                                           \
  for_each_shape(sizes, [&](bool q, unsigned size, Registers g, unsigned) {                \
    EXPECT_FORM(judge, name, (q, size, g.d, g.n), text, v(q, size, g.d), v(q, size, g.n)); \
  });
  PHYBIN_A64_V_TWO_REG(X)
#undef X
  for_each_shape(kSetB, [&](bool q, unsigned size, Registers g, unsigned step) {
    const std::string d = v(q, size, g.d), n = v(q, size, g.n), m = v(q, size, g.m);
#define X(name, text, op) EXPECT_FORM(judge, name, (q, g.d, g.n, g.m), text, d, n, m);
    PHYBIN_A64_V_LOGICAL(X)
#undef X
#define X(name, text, op) EXPECT_FORM(judge, name, (q, g.d, g.n), text, d, n);
    PHYBIN_A64_V_TWO_REG_BYTES(X)
#undef X
    EXPECT_FORM(judge, vmov, (q, g.d, g.n), "mov", d, n);
    EXPECT_FORM(judge, vext, (q, g.d, g.n, g.m, step % (q ? 16 : 8)), "ext", d, n, m, step % (q ? 16 : 8));
    for (unsigned count = 1; count <= 4; ++count) {
      std::string table;
      for (unsigned i = 0; i < count; ++i) table += (i == 0 ? "{" : ", ") + v(true, kB, (g.n + i) % 32);
      EXPECT_FORM(judge, vtbl, (q, count, g.d, g.n, g.m), "tbl", d, table + "}", m);
      EXPECT_FORM(judge, vtbx, (q, count, g.d, g.n, g.m), "tbx", d, table + "}", m);
    }
  });
  for_each_shape(kSetBHSD, [&](bool q, unsigned size, Registers g, unsigned step) {
    const std::string d = v(q, size, g.d), n = v(q, size, g.n);
    const unsigned bits = 8u << size;
#define X(name, text, op) EXPECT_FORM(judge, name, (q, size, g.d, g.n), text, d, n, 0);
    PHYBIN_A64_V_COMPARE_ZERO(X)
#undef X
    for (const unsigned amount : {step % bits, (step * 2 + 1) % bits, bits - 1, 0u}) {
#define X(name, text, op) EXPECT_FORM(judge, name, (q, size, g.d, g.n, amount), text, d, n, amount);
      PHYBIN_A64_V_SHIFT_LEFT(X)
#undef X
#define X(name, text, op) EXPECT_FORM(judge, name, (q, size, g.d, g.n, amount + 1), text, d, n, amount + 1);
      PHYBIN_A64_V_SHIFT_RIGHT(X)
#undef X
    }
  });
}

void vector_float(GnuAssembler& judge) {
  for_each_shape(kSetSD, [&](bool q, unsigned size, Registers g, unsigned step) {
    const std::string d = v(q, size, g.d), n = v(q, size, g.n), m = v(q, size, g.m);
#define X(name, text, op) EXPECT_FORM(judge, name, (q, size, g.d, g.n, g.m), text, d, n, m);
    PHYBIN_A64_V_FP_THREE_SAME(X)
#undef X
#define X(name, text, op) EXPECT_FORM(judge, name, (q, size, g.d, g.n), text, d, n);
    PHYBIN_A64_V_FP_TWO_REG(X)
#undef X
#define X(name, text, op) EXPECT_FORM(judge, name, (q, size, g.d, g.n), text, d, n, "#0.0");
    PHYBIN_A64_V_FP_COMPARE_ZERO(X)
#undef X
    const unsigned index = step % (16u >> size);
#define X(name, text, op) \
  EXPECT_FORM(judge, name, (q, size, g.d, g.n, g.m, index), text, d, n, lane(size, g.m, index));
    PHYBIN_A64_V_FP_BY_ELEMENT(X)
#undef X
  });
  for_each_shape(kSetHS, [&](bool q, unsigned size, Registers g, unsigned step) {
    const auto m = static_cast<Vec>(size == 1 ? g.m % 16 : g.m);
    const unsigned index = step % (16u >> size);
#define X(name, text, op)                                                                         \
  EXPECT_FORM(judge, name, (q, size, g.d, g.n, m, index), text, v(q, size, g.d), v(q, size, g.n), \
              lane(size, m, index));
    PHYBIN_A64_V_BY_ELEMENT(X)
#undef X
    // S with H, D with S
    const unsigned wide = size + 1;
    EXPECT_FORM(judge, vfcvtn, (q, wide, g.d, g.n), second_if(q, "fcvtn"), v(q, size, g.d), v(true, wide, g.n));
    EXPECT_FORM(judge, vfcvtl, (q, wide, g.d, g.n), second_if(q, "fcvtl"), v(true, wide, g.d), v(q, size, g.n));
    EXPECT_FORM(judge, vfcvtxn, (q, g.d, g.n), second_if(q, "fcvtxn"), v(q, kS, g.d), v(true, kD, g.n));
  });
}

void changing_size(GnuAssembler& judge) {
  for_each_shape(kSetBHS, [&](bool q, unsigned size, Registers g, unsigned step) {
    const unsigned wide = size + 1, bits = 8u << size;
    const std::string narrow_d = v(q, size, g.d), narrow_n = v(q, size, g.n), narrow_m = v(q, size, g.m);
    const std::string wide_d = v(true, wide, g.d), wide_n = v(true, wide, g.n), wide_m = v(true, wide, g.m);
#define X(name, text, op) EXPECT_FORM(judge, name, (q, size, g.d, g.n), text, v(q, wide, g.d), narrow_n);
    PHYBIN_A64_V_PAIR_LONG(X)
#undef X
#define X(name, text, op) EXPECT_FORM(judge, name, (q, size, g.d, g.n), second_if(q, text), narrow_d, wide_n);
    PHYBIN_A64_V_NARROW(X)
#undef X
#define X(name, text, op) \
  EXPECT_FORM(judge, name, (q, size, g.d, g.n, g.m), second_if(q, text), wide_d, wide_n, narrow_m);
    PHYBIN_A64_V_WIDE(X)
#undef X
#define X(name, text, op) \
  EXPECT_FORM(judge, name, (q, size, g.d, g.n, g.m), second_if(q, text), narrow_d, wide_n, wide_m);
    PHYBIN_A64_V_HIGH_NARROW(X)
#undef X
    for (const unsigned amount : {step % bits, bits - 1, 0u}) {
#define X(name, text, op) \
  EXPECT_FORM(judge, name, (q, size, g.d, g.n, amount + 1), second_if(q, text), narrow_d, wide_n, amount + 1);
      PHYBIN_A64_V_SHIFT_NARROW(X)
#undef X
#define X(name, text, op) \
  EXPECT_FORM(judge, name, (q, size, g.d, g.n, amount), second_if(q, text), wide_d, narrow_n, amount);
      PHYBIN_A64_V_SHIFT_LONG(X)
#undef X
    }
    EXPECT_FORM(judge, vshll, (q, size, g.d, g.n), second_if(q, "shll"), wide_d, narrow_n, bits);
    EXPECT_FORM(judge, vsxtl, (q, size, g.d, g.n), second_if(q, "sxtl"), wide_d, narrow_n);
    EXPECT_FORM(judge, vuxtl, (q, size, g.d, g.n), second_if(q, "uxtl"), wide_d, narrow_n);
    if (size == 2 && !q) return;
#define X(name, text, op) EXPECT_FORM(judge, name, (q, size, g.d, g.n), text, fp(size, g.d), narrow_n);
    PHYBIN_A64_V_ACROSS(X)
#undef X
#define X(name, text, op) EXPECT_FORM(judge, name, (q, size, g.d, g.n), text, fp(wide, g.d), narrow_n);
    PHYBIN_A64_V_ACROSS_LONG(X)
#undef X
  });
#define X(name, text, op, sizes)                                                                       \
  for (unsigned size = 0; size < 4; ++size) {                                                          \
    for (unsigned step = 0; step < 64 && ((sizes) >> size & 1) != 0; ++step) {                         \
      const Registers g(step / 2);                                                                     \
      const bool q = step & 1;                                                                         \
      const std::string wide = size == 3 ? "v" + std::to_string(g.d) + ".1q" : v(true, size + 1, g.d); \
      EXPECT_FORM(judge, name, (q, size, g.d, g.n, g.m), second_if(q, text), wide, v(q, size, g.n),    \
                  v(q, size, g.m));                                                                    \
    }                                                                                                  \
  }
  PHYBIN_A64_V_LONG(X)
#undef X
}

void elements_and_constants(GnuAssembler& judge) {
  for_each_shape(kSetBHSD, [&](bool q, unsigned size, Registers g, unsigned step) {
    const unsigned index = step % (16u >> size), other = (step * 7 + 3) % (16u >> size);
    const std::string d = v(q, size, g.d);
    EXPECT_FORM(judge, vdup_elem, (q, size, g.d, g.n, index), "dup", d, lane(size, g.n, index));
    EXPECT_FORM(judge, vdup_gpr, (q, size, g.d, g.n), "dup", d, r(size == 3, g.n));
    EXPECT_FORM(judge, dup_scalar, (size, g.d, g.n, index), "dup", fp(size, g.d), lane(size, g.n, index));
    EXPECT_FORM(judge, ins_elem, (size, g.d, index, g.n, other), "ins", lane(size, g.d, index),
                lane(size, g.n, other));
    EXPECT_FORM(judge, ins_gpr, (size, g.d, index, g.n), "ins", lane(size, g.d, index), r(size == 3, g.n));
    EXPECT_FORM(judge, umov, (size, g.d, g.n, index), "umov", r(size == 3, g.d), lane(size, g.n, index));
    if (size < 2)
      EXPECT_FORM(judge, smov, (false, size, g.d, g.n, index), "smov", r(false, g.d), lane(size, g.n, index));
    if (size < 3)
      EXPECT_FORM(judge, smov, (true, size, g.d, g.n, index), "smov", r(true, g.d), lane(size, g.n, index));
    const std::string one = "{v" + std::to_string(g.d) + "." + "bhsd"[size] + "}[" + std::to_string(index) + "]";
    EXPECT_FORM(judge, ld1_lane, (size, g.d, index, g.n), "ld1", one, memory(sp(true, g.n)));
    EXPECT_FORM(judge, st1_lane, (size, g.d, index, g.n), "st1", one, memory(sp(true, g.n)));
  });
  for (unsigned step = 0; step < 256; ++step) {
    const Registers g(step % 32);
    const unsigned imm8 = step;
    for (const bool q : {false, true}) {
      EXPECT_FORM(judge, movi, (q, kB, g.d, imm8), "movi", v(q, kB, g.d), imm8);
      for (const unsigned size : {1u, 2u}) {
        for (unsigned shift = 0; shift < 8u << size; shift += 8) {
          const std::string d = v(q, size, g.d), how = "lsl " + std::to_string(shift);
          EXPECT_FORM(judge, movi, (q, size, g.d, imm8, shift), "movi", d, imm8, how);
          EXPECT_FORM(judge, mvni, (q, size, g.d, imm8, shift), "mvni", d, imm8, how);
          EXPECT_FORM(judge, vorr_imm, (q, size, g.d, imm8, shift), "orr", d, imm8, how);
          EXPECT_FORM(judge, vbic_imm, (q, size, g.d, imm8, shift), "bic", d, imm8, how);
        }
      }
      for (const unsigned shift : {8u, 16u}) {
        const std::string how = "msl " + std::to_string(shift);
        EXPECT_FORM(judge, movi_msl, (q, g.d, imm8, shift), "movi", v(q, kS, g.d), imm8, how);
        EXPECT_FORM(judge, mvni_msl, (q, g.d, imm8, shift), "mvni", v(q, kS, g.d), imm8, how);
      }
      uint64_t mask = 0;
      for (unsigned bit = 0; bit < 8; ++bit) mask |= (imm8 >> bit & 1) * (uint64_t{0xff} << 8 * bit);
      EXPECT_FORM(judge, movi_mask, (q, g.d, imm8), "movi", q ? v(true, kD, g.d) : fp(kD, g.d), mask);
    }
  }
}

void structures(GnuAssembler& judge) {
  for (unsigned size = 0; size < 4; ++size) {
    for (unsigned step = 0; step < 64; ++step) {
      const Registers g(step / 2);
      const bool q = step & 1;
      const std::string element = size == 3 && !q ? ".1d" : v(q, size, 0).substr(2);
      const auto list = [&](unsigned count) {
        std::string text;
        for (unsigned i = 0; i < count; ++i)
          text += (i == 0 ? "{v" : ", v") + std::to_string((g.d + i) % 32) + element;
        return text + "}";
      };
      const std::string base = memory(sp(true, g.n));
#define X(name, text, count, op)                                          \
  EXPECT_FORM(judge, name, (q, size, g.d, g.n), text, list(count), base); \
  EXPECT_FORM(judge, name##_post, (q, size, g.d, g.n), text, list(count), base, (q ? 16u : 8u) * (count));
      PHYBIN_A64_V_STRUCTURES(X)
#undef X
      EXPECT_FORM(judge, ld1r, (q, size, g.d, g.n), "ld1r", list(1), base);
    }
  }
}

std::string formatted(const char* format, Registers g) {
  char text[64];
  snprintf(text, sizeof text, format, unsigned{g.d}, unsigned{g.n}, unsigned{g.m});
  return text;
}

void fixed_arrangements(GnuAssembler& judge) {
  for (unsigned step = 0; step < 32; ++step) {
    const Registers g(step);
#define X(name, text, op) EXPECT_FORM(judge, name, (g.d, g.n), #name, formatted(text, g));
    PHYBIN_A64_CRYPTO_TWO(X)
#undef X
#define X(name, text, op) EXPECT_FORM(judge, name, (g.d, g.n, g.m), #name, formatted(text, g));
    PHYBIN_A64_CRYPTO_THREE(X)
#undef X
#define X(name, text, op) EXPECT_FORM(judge, name, (g.d, g.n), text, fp(kS, g.d), v(true, kS, g.n));
    PHYBIN_A64_V_FP_ACROSS(X)
#undef X
  }
}

TEST(A64Vector, MatchesGnuAssembler) {
  GnuAssembler judge;
  scalar_float(judge);
  scalar_in_vector(judge);
  same_size(judge);
  vector_float(judge);
  changing_size(judge);
  elements_and_constants(judge);
  structures(judge);
  fixed_arrangements(judge);
  judge.expect_equal();
  judge.expect_covered("a64_float.h");
  judge.expect_covered("a64_vector.h");
}

}  // namespace
}  // namespace phybin::a64
