// Every load, store, exclusive and atomic against the GNU assembler.
#include <gtest/gtest.h>

#include "tests/unit/gnu_assembler.h"

namespace phybin::a64 {
namespace {

constexpr int kUnscaled[] = {0, 1, 8, -1, -8, 127, -128, 255, -256};

std::string extension(Extend extend, bool scaled, unsigned size) {
  const std::string amount = scaled ? " " + std::to_string(size) : "";
  return extend == Extend::UXTX ? scaled ? "lsl" + amount : "" : name_of(extend) + amount;
}

// "[xN, xM, lsl 3]"
std::string indexed(unsigned rn, unsigned rm, Extend extend, bool scaled, unsigned size) {
  const std::string index = r((static_cast<unsigned>(extend) & 1) != 0, rm);
  const std::string how = extension(extend, scaled, size);
  return how.empty() ? memory(sp(true, rn), index) : memory({sp(true, rn), index, how});
}

// Base registers with writeback differ from what is moved.
unsigned other_than(unsigned reg, unsigned a, unsigned b = 99) {
  while (reg == a || reg == b) reg = (reg + 1) % 31;
  return reg;
}

constexpr Extend kIndexExtends[] = {Extend::UXTW, Extend::UXTX, Extend::SXTW, Extend::SXTX};

void by_mem_op(GnuAssembler& judge) {
  const struct {
    MemOp op;
    std::string scaled, unscaled;
    char kind;
  } ops[] = {
#define X(name, scaled, unscaled, kind, op) {MemOp::name, scaled, unscaled, kind},
      PHYBIN_A64_MEM_OPS(X)
#undef X
  };
  for (const auto& op : ops) {
    const bool vector = op.kind != 'w' && op.kind != 'x';
    for (unsigned step = 0; step < 32; ++step) {
      const Registers g(step);
      const std::string t = vector ? op.kind + std::to_string(g.d) : r(op.kind == 'x', g.d);
      const unsigned size = mem_size_log2(op.op);
      const uint32_t scaled = (step * 131) % 4096 << size;
      const int unscaled = kUnscaled[step % 9];
      EXPECT_FORM(judge, mem, (op.op, g.d, g.n, scaled), op.scaled, t, memory(sp(true, g.n), scaled));
      EXPECT_FORM(judge, mem, (op.op, g.d, g.n, 4095u << size), op.scaled, t, memory(sp(true, g.n), 4095u << size));
      EXPECT_FORM(judge, mem_unscaled, (op.op, g.d, g.n, unscaled), op.unscaled, t, memory(sp(true, g.n), unscaled));
      EXPECT_FORM(judge, mem_at, (op.op, g.d, Assembler::at_scaled(g.n, scaled >> size)), op.scaled, t,
                  memory(sp(true, g.n), scaled));
      EXPECT_FORM(judge, mem_at, (op.op, g.d, Assembler::at_unscaled(g.n, unscaled)), op.unscaled, t,
                  memory(sp(true, g.n), unscaled));
      for (const bool shift : {false, true}) {
        if (shift && size == 0) continue;
        EXPECT_FORM(judge, mem_at, (op.op, g.d, Assembler::at_index(g.n, g.m, shift)), op.scaled, t,
                    indexed(g.n, g.m, Extend::UXTX, shift, size));
      }
      const auto base = static_cast<Gpr>(vector ? g.n : other_than(g.n, g.d));
      EXPECT_FORM(judge, mem_post, (op.op, g.d, base, unscaled), op.scaled, t, memory(sp(true, base)), unscaled);
      EXPECT_FORM(judge, mem_pre, (op.op, g.d, base, unscaled), op.scaled, t, memory(sp(true, base), unscaled) + "!");
      for (const Extend extend : kIndexExtends) {
        for (const bool shift : {false, true}) {
          if (shift && size == 0) continue;  // the same address; the text has no plain form for it
          EXPECT_FORM(judge, mem_reg, (op.op, g.d, g.n, g.m, extend, shift), op.scaled, t,
                      indexed(g.n, g.m, extend, shift, size));
        }
      }
    }
  }
}

void by_name(GnuAssembler& judge) {
  for (unsigned step = 0; step < 32; ++step) {
    const Registers g(step);
    const int unscaled = kUnscaled[step % 9];
    const auto base = static_cast<Gpr>(other_than(g.n, g.d));
    const Extend extend = kIndexExtends[step % 4];
#define X(name, unscaled_name, op_x, op_w)                                                                         \
  for (const bool is64 : {false, true}) {                                                                          \
    const unsigned size = mem_size_log2(is64 ? MemOp::op_x : MemOp::op_w);                                         \
    const std::string t = r(is64, g.d);                                                                            \
    EXPECT_FORM(judge, name, (is64, g.d, g.n), #name, t, memory(sp(true, g.n)));                                   \
    EXPECT_FORM(judge, name, (is64, g.d, g.n, step * 8), #name, t, memory(sp(true, g.n), step * 8));               \
    EXPECT_FORM(judge, unscaled_name, (is64, g.d, g.n, unscaled), #unscaled_name, t,                               \
                memory(sp(true, g.n), unscaled));                                                                  \
    EXPECT_FORM(judge, name##_post, (is64, g.d, base, unscaled), #name, t, memory(sp(true, base)), unscaled);      \
    EXPECT_FORM(judge, name##_pre, (is64, g.d, base, unscaled), #name, t, memory(sp(true, base), unscaled) + "!"); \
    EXPECT_FORM(judge, name##_reg, (is64, g.d, g.n, g.m, extend, size != 0), #name, t,                             \
                indexed(g.n, g.m, extend, size != 0, size));                                                       \
  }
    PHYBIN_A64_MEM_SIZED(X)
#undef X
#define X(name, unscaled_name, op)                                                                               \
  {                                                                                                              \
    const unsigned size = mem_size_log2(MemOp::op);                                                              \
    const std::string t = r(MemOp::op == MemOp::LDRSW, g.d);                                                     \
    EXPECT_FORM(judge, name, (g.d, g.n, step * 4), #name, t, memory(sp(true, g.n), step * 4));                   \
    EXPECT_FORM(judge, unscaled_name, (g.d, g.n, unscaled), #unscaled_name, t, memory(sp(true, g.n), unscaled)); \
    EXPECT_FORM(judge, name##_post, (g.d, base, unscaled), #name, t, memory(sp(true, base)), unscaled);          \
    EXPECT_FORM(judge, name##_pre, (g.d, base, unscaled), #name, t, memory(sp(true, base), unscaled) + "!");     \
    EXPECT_FORM(judge, name##_reg, (g.d, g.n, g.m, extend, size != 0), #name, t,                                 \
                indexed(g.n, g.m, extend, size != 0, size));                                                     \
  }
    PHYBIN_A64_MEM_FIXED(X)
#undef X
    for (unsigned log2 = 0; log2 < 5; ++log2) {
      const Size size = log2;
      const std::string t = fp(size, g.d);
      EXPECT_FORM(judge, ldr_v, (size, g.d, g.n, step << log2), "ldr", t, memory(sp(true, g.n), step << log2));
      EXPECT_FORM(judge, str_v, (size, g.d, g.n, step << log2), "str", t, memory(sp(true, g.n), step << log2));
      EXPECT_FORM(judge, ldur_v, (size, g.d, g.n, unscaled), "ldur", t, memory(sp(true, g.n), unscaled));
      EXPECT_FORM(judge, stur_v, (size, g.d, g.n, unscaled), "stur", t, memory(sp(true, g.n), unscaled));
      EXPECT_FORM(judge, ldr_v_reg, (size, g.d, g.n, g.m, extend, log2 != 0), "ldr", t,
                  indexed(g.n, g.m, extend, log2 != 0, log2));
      EXPECT_FORM(judge, str_v_reg, (size, g.d, g.n, g.m, extend, log2 != 0), "str", t,
                  indexed(g.n, g.m, extend, log2 != 0, log2));
    }
    const struct {
      Prefetch what;
      const char* name;
    } prefetches[] = {{Prefetch::PLDL1KEEP, "pldl1keep"}, {Prefetch::PLDL1STRM, "pldl1strm"},
                      {Prefetch::PLDL2KEEP, "pldl2keep"}, {Prefetch::PLDL3KEEP, "pldl3keep"},
                      {Prefetch::PSTL1KEEP, "pstl1keep"}, {Prefetch::PSTL1STRM, "pstl1strm"}};
    for (const auto& prefetch : prefetches) {
      EXPECT_FORM(judge, prfm, (prefetch.what, g.n, step * 8), "prfm", prefetch.name,
                  memory(sp(true, g.n), step * 8));
      EXPECT_FORM(judge, prfum, (prefetch.what, g.n, unscaled), "prfum", prefetch.name,
                  memory(sp(true, g.n), unscaled));
      EXPECT_FORM(judge, prfm_reg, (prefetch.what, g.n, g.m, extend, true), "prfm", prefetch.name,
                  indexed(g.n, g.m, extend, true, 3));
    }
  }
}

void pairs(GnuAssembler& judge) {
  const struct {
    PairOp op;
    const char* name;
    char kind;
    unsigned size;
  } ops[] = {
#define X(name, text, kind, size, op) {PairOp::name, text, kind, size},
      PHYBIN_A64_PAIR_OPS(X)
#undef X
  };
  for (const auto& op : ops) {
    const bool vector = op.kind != 'w' && op.kind != 'x';
    EXPECT_EQ(pair_size_log2(op.op), op.size);
    for (unsigned step = 0; step < 32; ++step) {
      const Registers g(step);
      const auto t2 = static_cast<uint8_t>(other_than(g.m, g.d));
      const std::string first = vector ? op.kind + std::to_string(g.d) : r(op.kind == 'x', g.d);
      const std::string second = vector ? op.kind + std::to_string(t2) : r(op.kind == 'x', t2);
      const int offset = (static_cast<int>(step * 37 % 128) - 64) * (1 << op.size);
      const auto base = static_cast<Gpr>(vector ? g.n : other_than(g.n, g.d, t2));
      EXPECT_FORM(judge, pair, (op.op, g.d, t2, g.n, offset), op.name, first, second, memory(sp(true, g.n), offset));
      EXPECT_FORM(judge, pair_post, (op.op, g.d, t2, base, offset), op.name, first, second, memory(sp(true, base)),
                  offset);
      EXPECT_FORM(judge, pair_pre, (op.op, g.d, t2, base, offset), op.name, first, second,
                  memory(sp(true, base), offset) + "!");
      if (op.kind == 'w' || (op.kind == 'x' && op.op != PairOp::LDPSW)) {
        const bool is64 = op.kind == 'x';
        if (op.name[0] == 'l') {
          EXPECT_FORM(judge, ldp, (is64, g.d, t2, g.n, offset), "ldp", first, second, memory(sp(true, g.n), offset));
        } else {
          EXPECT_FORM(judge, stp, (is64, g.d, t2, g.n, offset), "stp", first, second, memory(sp(true, g.n), offset));
        }
      } else if (!vector) {
        EXPECT_FORM(judge, ldpsw, (g.d, t2, g.n, offset), "ldpsw", first, second, memory(sp(true, g.n), offset));
      } else if (op.name[0] == 'l') {
        EXPECT_FORM(judge, ldp_v, (op.size, g.d, t2, g.n, offset), "ldp", first, second,
                    memory(sp(true, g.n), offset));
      } else {
        EXPECT_FORM(judge, stp_v, (op.size, g.d, t2, g.n, offset), "stp", first, second,
                    memory(sp(true, g.n), offset));
      }
    }
  }
}

void ordered_and_atomic(GnuAssembler& judge) {
  for (unsigned step = 0; step < 32; ++step) {
    const Registers g(step);
    const int offset = kUnscaled[step % 9];
    const std::string base = memory(sp(true, g.n));
    for (unsigned size = 0; size < 4; ++size) {
      const bool is64 = size == 3;
      const std::string suffix = size == 0 ? "b" : size == 1 ? "h" : "";
#define X(name, op) EXPECT_FORM(judge, name, (size, g.d, g.n), #name + suffix, r(is64, g.d), base);
      PHYBIN_A64_ORDERED(X)
#undef X
      const auto status = static_cast<Gpr>(other_than(g.m, g.d, g.n));
#define X(name, op) \
  EXPECT_FORM(judge, name, (size, status, g.d, g.n), #name + suffix, r(false, status), r(is64, g.d), base);
      PHYBIN_A64_STORE_EXCLUSIVE(X)
#undef X
#define X(name, op) \
  EXPECT_FORM(judge, name, (size, g.d, g.n, offset), #name + suffix, r(is64, g.d), memory(sp(true, g.n), offset));
      PHYBIN_A64_ORDERED_UNSCALED(X)
#undef X
#define X(name, op)                                                                                         \
  EXPECT_FORM(judge, name, (size, g.m, g.d, g.n), #name + suffix, r(is64, g.m), r(is64, g.d), base);        \
  EXPECT_FORM(judge, name##a, (size, g.m, g.d, g.n), #name "a" + suffix, r(is64, g.m), r(is64, g.d), base); \
  EXPECT_FORM(judge, name##l, (size, g.m, g.d, g.n), #name "l" + suffix, r(is64, g.m), r(is64, g.d), base); \
  EXPECT_FORM(judge, name##al, (size, g.m, g.d, g.n), #name "al" + suffix, r(is64, g.m), r(is64, g.d), base);
      PHYBIN_A64_ATOMIC(X)
#undef X
      EXPECT_FORM(judge, cas, (size, g.m, g.d, g.n), "cas" + suffix, r(is64, g.m), r(is64, g.d), base);
      EXPECT_FORM(judge, casal, (size, g.m, g.d, g.n), "casal" + suffix, r(is64, g.m), r(is64, g.d), base);
    }
    EXPECT_FORM(judge, ldapursw, (g.d, g.n, offset), "ldapursw", r(true, g.d), memory(sp(true, g.n), offset));
    for (const bool is64 : {false, true}) {
#define X(name, op) \
  EXPECT_FORM(judge, name, (is64, g.d, g.n, offset), #name, r(is64, g.d), memory(sp(true, g.n), offset));
      PHYBIN_A64_ORDERED_UNSCALED_SIGNED(X)
#undef X
      const auto t2 = static_cast<Gpr>(other_than(g.m, g.d));
#define X(name, op) EXPECT_FORM(judge, name, (is64, g.d, t2, g.n), #name, r(is64, g.d), r(is64, t2), base);
      PHYBIN_A64_LOAD_EXCLUSIVE_PAIR(X)
#undef X
      unsigned status = other_than(g.a, g.d, t2);
      if (status == g.n) status = other_than(status + 1, g.d, t2);
#define X(name, op)                                                                                               \
  EXPECT_FORM(judge, name, (is64, static_cast<Gpr>(status), g.d, t2, g.n), #name, r(false, status), r(is64, g.d), \
              r(is64, t2), base);
      PHYBIN_A64_STORE_EXCLUSIVE_PAIR(X)
#undef X
      const auto even = [&](unsigned reg) { return static_cast<Gpr>(reg % 30 & ~1u); };
      const Gpr s = even(g.m), t = even(g.d);
      EXPECT_FORM(judge, casp, (is64, s, t, g.n), "casp", r(is64, s), r(is64, s + 1u), r(is64, t), r(is64, t + 1u),
                  base);
      EXPECT_FORM(judge, caspal, (is64, s, t, g.n), "caspal", r(is64, s), r(is64, s + 1u), r(is64, t),
                  r(is64, t + 1u), base);
    }
  }
}

TEST(A64Memory, MatchesGnuAssembler) {
  GnuAssembler judge;
  by_mem_op(judge);
  by_name(judge);
  pairs(judge);
  ordered_and_atomic(judge);
  judge.expect_equal();
  judge.expect_covered("a64_memory.h");
}

TEST(A64Memory, OperationsBySize) {
  EXPECT_EQ(load_op(0), MemOp::LDRB);
  EXPECT_EQ(load_op(3), MemOp::LDR_X);
  EXPECT_EQ(store_op(1), MemOp::STRH);
  EXPECT_EQ(vector_load_op(4), MemOp::LDR_Q);
  EXPECT_EQ(vector_store_op(2), MemOp::STR_S);
  EXPECT_TRUE(fits_scaled(MemOp::LDR_Q, 4095 * 16));
  EXPECT_FALSE(fits_scaled(MemOp::LDR_Q, 4096 * 16));
  EXPECT_FALSE(fits_scaled(MemOp::LDR_X, 4));
  EXPECT_FALSE(fits_scaled(MemOp::LDR_X, -8));
  EXPECT_TRUE(fits_pair(3, -512));
  EXPECT_FALSE(fits_pair(3, 512));
  EXPECT_FALSE(fits_pair(3, 4));
}

}  // namespace
}  // namespace phybin::a64
