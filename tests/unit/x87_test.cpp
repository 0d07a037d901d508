// Compares the x87 helpers with the CPU this runs on, instruction by instruction. Elsewhere than on x86_64 there is
// nothing to compare with.
#include <gtest/gtest.h>

#include "tests/unit/x87_cpu.h"

#if defined(__x86_64__)

#include <cstdio>
#include <cstring>

namespace phybin::runtime::x87 {
namespace {

Case plain(std::string name, std::string bytes, Function function, uint64_t a = 0, uint64_t b = 0) {
  return {std::move(name), std::move(bytes), [=](X87State& s, Memory&, uint64_t&) { function(&s, a, b); }};
}

Case push(Case test) {
  test.prefers_free_slot = true;
  return test;
}

void store(X87State& state, Memory& memory, uint64_t bits, unsigned size) {
  if (state.result_suppressed == 0) std::memcpy(&memory.low, &bits, size);
}

TEST(X87, RegisterArithmetic) {
  RecordProperty("seed", std::to_string(kSeed));
  std::printf("seed %llx\n", static_cast<unsigned long long>(kSeed));
  std::vector<Case> cases;
  for (unsigned i : {0u, 1u, 5u}) {
    const std::string n = std::to_string(i);
    struct Row {
      const char* name;
      unsigned d8, dc;  // second opcode byte for ST(0) op ST(i), and for ST(i) op ST(0)
      Function function;
      bool reversed;
    };
    const Row rows[] = {
        {"fadd", 0xc0, 0xc0, phybin_x87_fadd, false}, {"fmul", 0xc8, 0xc8, phybin_x87_fmul, false},
        {"fsub", 0xe0, 0xe8, phybin_x87_fsub, false}, {"fsubr", 0xe8, 0xe0, phybin_x87_fsub, true},
        {"fdiv", 0xf0, 0xf8, phybin_x87_fdiv, false}, {"fdivr", 0xf8, 0xf0, phybin_x87_fdiv, true},
    };
    for (const Row& row : rows) {
      const std::string name = row.name;
      cases.push_back(plain(name + " st, st" + n, opcode(0xd8, row.d8 + i), row.function,
                            arithmetic_operands(0, i, row.reversed, false)));
      cases.push_back(plain(name + " st" + n + ", st", opcode(0xdc, row.dc + i), row.function,
                            arithmetic_operands(i, 0, row.reversed, false)));
      cases.push_back(plain(name + "p st" + n, opcode(0xde, row.dc + i), row.function,
                            arithmetic_operands(i, 0, row.reversed, true)));
    }
  }
  run(cases, kCount);
}

TEST(X87, MemoryArithmetic) {
  std::vector<Case> cases;
  struct Row {
    const char* name;
    unsigned first;
    MemoryKind kind;
    Fill fill;
    unsigned size;
  };
  const Row rows[] = {{"m32", 0xd8, kMemoryFloat32, Fill::kFloat32, 4},
                      {"m64", 0xdc, kMemoryFloat64, Fill::kFloat64, 8},
                      {"i32", 0xda, kMemoryInteger, Fill::kBits, 4},
                      {"i16", 0xde, kMemoryInteger, Fill::kBits, 2}};
  for (const Row& row : rows) {
    for (unsigned op = 0; op < 8; ++op) {
      const uint64_t a = memory_arithmetic(static_cast<MemoryOperation>(op), row.kind);
      cases.push_back({std::string("arithmetic ") + std::to_string(op) + " " + row.name, memory_opcode(row.first, op),
                       [=](X87State& s, Memory& memory, uint64_t&) {
                         uint64_t bits = memory.low;
                         if (row.kind == kMemoryInteger) {
                           bits = row.size == 2 ? static_cast<uint64_t>(int64_t{static_cast<int16_t>(bits)})
                                                : static_cast<uint64_t>(int64_t{static_cast<int32_t>(bits)});
                         }
                         phybin_x87_arithmetic_memory(&s, a, bits);
                       },
                       row.fill});
    }
  }
  run(cases, kCount);
}

TEST(X87, Loads) {
  std::vector<Case> cases;
  const auto load = [&](const char* name, std::string bytes, Fill fill, auto helper) {
    cases.push_back({name, std::move(bytes), [=](X87State& s, Memory& m, uint64_t&) { helper(&s, m); }, fill, true});
  };
  load("fld m32", memory_opcode(0xd9, 0), Fill::kFloat32,
       [](X87State* s, const Memory& m) { phybin_x87_fld_m32(s, m.low, 0); });
  load("fld m64", memory_opcode(0xdd, 0), Fill::kFloat64,
       [](X87State* s, const Memory& m) { phybin_x87_fld_m64(s, m.low, 0); });
  load("fld m80", memory_opcode(0xdb, 5), Fill::kBits,
       [](X87State* s, const Memory& m) { phybin_x87_fld_m80(s, m.low, m.high & 0xffff); });
  load("fild i16", memory_opcode(0xdf, 0), Fill::kBits, [](X87State* s, const Memory& m) {
    phybin_x87_fld_i64(s, static_cast<uint64_t>(int64_t{static_cast<int16_t>(m.low)}), 0);
  });
  load("fild i32", memory_opcode(0xdb, 0), Fill::kBits, [](X87State* s, const Memory& m) {
    phybin_x87_fld_i64(s, static_cast<uint64_t>(int64_t{static_cast<int32_t>(m.low)}), 0);
  });
  load("fild i64", memory_opcode(0xdf, 5), Fill::kBits,
       [](X87State* s, const Memory& m) { phybin_x87_fld_i64(s, m.low, 0); });
  load("fbld", memory_opcode(0xdf, 4), Fill::kNone,
       [](X87State* s, const Memory& m) { phybin_x87_fbld(s, m.low, m.high & 0xffff); });
  for (unsigned i = 0; i < 8; ++i) {
    cases.push_back(push(plain("fld st" + std::to_string(i), opcode(0xd9, 0xc0 + i), phybin_x87_fld_sti, i)));
  }
  for (unsigned i = 0; i < 7; ++i) {
    cases.push_back(push(plain("constant " + std::to_string(i), opcode(0xd9, 0xe8 + i), phybin_x87_fld_constant, i)));
  }
  run(cases, kCount);
}

TEST(X87, Stores) {
  std::vector<Case> cases;
  const auto store_case = [&](const char* name, std::string bytes, unsigned size, Function function, uint64_t a) {
    cases.push_back(
        {name, std::move(bytes), [=](X87State& s, Memory& m, uint64_t&) { store(s, m, function(&s, a, 0), size); }});
  };
  store_case("fst m32", memory_opcode(0xd9, 2), 4, phybin_x87_fst_m32, 0);
  store_case("fstp m32", memory_opcode(0xd9, 3), 4, phybin_x87_fst_m32, 1);
  store_case("fst m64", memory_opcode(0xdd, 2), 8, phybin_x87_fst_m64, 0);
  store_case("fstp m64", memory_opcode(0xdd, 3), 8, phybin_x87_fst_m64, 1);
  store_case("fist i16", memory_opcode(0xdf, 2), 2, phybin_x87_fist, 16);
  store_case("fistp i16", memory_opcode(0xdf, 3), 2, phybin_x87_fist, 16 | kStorePop);
  store_case("fist i32", memory_opcode(0xdb, 2), 4, phybin_x87_fist, 32);
  store_case("fistp i32", memory_opcode(0xdb, 3), 4, phybin_x87_fist, 32 | kStorePop);
  store_case("fistp i64", memory_opcode(0xdf, 7), 8, phybin_x87_fist, 64 | kStorePop);
  store_case("fisttp i16", memory_opcode(0xdf, 1), 2, phybin_x87_fist, 16 | kStorePop | kStoreTruncate);
  store_case("fisttp i32", memory_opcode(0xdb, 1), 4, phybin_x87_fist, 32 | kStorePop | kStoreTruncate);
  store_case("fisttp i64", memory_opcode(0xdd, 1), 8, phybin_x87_fist, 64 | kStorePop | kStoreTruncate);
  const auto two_part = [&](const char* name, std::string bytes, Function low, Function high) {
    cases.push_back({name, std::move(bytes), [=](X87State& s, Memory& m, uint64_t&) {
                       const uint64_t first = low(&s, 0, 0);
                       const uint64_t second = high(&s, 1, 0);
                       if (s.result_suppressed == 0) m = {first, (m.high & ~uint64_t{0xffff}) | second};
                     }});
  };
  two_part("fstp m80", memory_opcode(0xdb, 7), phybin_x87_fst_m80_significand, phybin_x87_fst_m80_sign_exponent);
  two_part("fbstp", memory_opcode(0xdf, 6), phybin_x87_fbst_low, phybin_x87_fbst_high);
  for (unsigned i : {0u, 1u, 6u}) {
    cases.push_back(plain("fst st" + std::to_string(i), opcode(0xdd, 0xd0 + i), phybin_x87_fst_sti, i, 0));
    cases.push_back(plain("fstp st" + std::to_string(i), opcode(0xdd, 0xd8 + i), phybin_x87_fst_sti, i, 1));
  }
  run(cases, kCount);
}

TEST(X87, Comparison) {
  std::vector<Case> cases;
  const auto with_flags = [&](const char* name, std::string bytes, uint64_t a) {
    cases.push_back({name, std::move(bytes), [=](X87State& s, Memory&, uint64_t& flags) {
                       const uint64_t result = phybin_x87_fcomi(&s, a, 0);
                       if (s.result_suppressed == 0) flags = result;
                     }});
  };
  for (unsigned i : {0u, 1u, 3u}) {
    cases.push_back(plain("fcom", opcode(0xd8, 0xd0 + i), phybin_x87_fcom, i));
    cases.push_back(plain("fcomp", opcode(0xd8, 0xd8 + i), phybin_x87_fcom, i | kComparePop));
    cases.push_back(plain("fucom", opcode(0xdd, 0xe0 + i), phybin_x87_fcom, i | kCompareQuiet));
    cases.push_back(plain("fucomp", opcode(0xdd, 0xe8 + i), phybin_x87_fcom, i | kCompareQuiet | kComparePop));
    with_flags("fcomi", opcode(0xdb, 0xf0 + i), i);
    with_flags("fucomi", opcode(0xdb, 0xe8 + i), i | kCompareQuiet);
    with_flags("fcomip", opcode(0xdf, 0xf0 + i), i | kComparePop);
    with_flags("fucomip", opcode(0xdf, 0xe8 + i), i | kCompareQuiet | kComparePop);
  }
  cases.push_back(plain("fcompp", opcode(0xde, 0xd9), phybin_x87_fcom, 1 | kComparePopTwice));
  cases.push_back(plain("fucompp", opcode(0xda, 0xe9), phybin_x87_fcom, 1 | kCompareQuiet | kComparePopTwice));
  cases.push_back(plain("ftst", opcode(0xd9, 0xe4), phybin_x87_operation, kFtst));
  cases.push_back(plain("fxam", opcode(0xd9, 0xe5), phybin_x87_operation, kFxam));
  run(cases, kCount);
}

TEST(X87, OneOperand) {
  std::vector<Case> cases = {
      plain("fchs", opcode(0xd9, 0xe0), phybin_x87_fchs),
      plain("fabs", opcode(0xd9, 0xe1), phybin_x87_fabs),
      plain("fsqrt", opcode(0xd9, 0xfa), phybin_x87_operation, kFsqrt),
      plain("frndint", opcode(0xd9, 0xfc), phybin_x87_operation, kFrndint),
      plain("fscale", opcode(0xd9, 0xfd), phybin_x87_operation, kFscale),
      push(plain("fxtract", opcode(0xd9, 0xf4), phybin_x87_operation, kFxtract)),
      plain("fprem", opcode(0xd9, 0xf8), phybin_x87_operation, kFprem),
      plain("fprem1", opcode(0xd9, 0xf5), phybin_x87_operation, kFprem1),
  };
  for (Case& test : cases) test.vendors_differ = test.name == "fscale" || test.name.starts_with("fprem");
  run(cases, 4 * kCount);
}

TEST(X87, Transcendental) {
  std::vector<Case> cases = {
      plain("f2xm1", opcode(0xd9, 0xf0), phybin_x87_operation, kF2xm1),
      plain("fyl2x", opcode(0xd9, 0xf1), phybin_x87_operation, kFyl2x),
      plain("fyl2xp1", opcode(0xd9, 0xf9), phybin_x87_operation, kFyl2xp1),
      push(plain("fptan", opcode(0xd9, 0xf2), phybin_x87_operation, kFptan)),
      plain("fpatan", opcode(0xd9, 0xf3), phybin_x87_operation, kFpatan),
      plain("fsin", opcode(0xd9, 0xfe), phybin_x87_operation, kFsin),
      plain("fcos", opcode(0xd9, 0xff), phybin_x87_operation, kFcos),
      push(plain("fsincos", opcode(0xd9, 0xfb), phybin_x87_operation, kFsincos)),
  };
  for (Case& test : cases) test.last_bit_may_differ = test.vendors_differ = true;
  run(cases, 4 * kCount);
}

TEST(X87, StackAndControl) {
  std::vector<Case> cases = {
      plain("fincstp", opcode(0xd9, 0xf7), phybin_x87_fincstp),
      plain("fdecstp", opcode(0xd9, 0xf6), phybin_x87_fdecstp),
      plain("ffree", opcode(0xdd, 0xc3), phybin_x87_ffree, 3, 0),
      plain("ffreep", opcode(0xdf, 0xc3), phybin_x87_ffree, 3, 1),
      plain("fninit", opcode(0xdb, 0xe3), phybin_x87_fninit),
      plain("fnclex", opcode(0xdb, 0xe2), phybin_x87_fnclex),
      plain("emms", opcode(0x0f, 0x77), phybin_x87_emms),
  };
  for (unsigned i : {0u, 1u, 7u}) cases.push_back(plain("fxch", opcode(0xd9, 0xc8 + i), phybin_x87_fxch, i));
  struct Row {
    const char* name;
    unsigned first, second;
    uint64_t mask;
    bool negated;
  };
  const Row rows[] = {{"fcmovb", 0xda, 0xc0, 0x01, false},  {"fcmove", 0xda, 0xc8, 0x40, false},
                      {"fcmovbe", 0xda, 0xd0, 0x41, false}, {"fcmovu", 0xda, 0xd8, 0x04, false},
                      {"fcmovnb", 0xdb, 0xc0, 0x01, true},  {"fcmovnu", 0xdb, 0xd8, 0x04, true}};
  for (const Row& row : rows) {
    cases.push_back({row.name, opcode(row.first, row.second + 2), [=](X87State& s, Memory&, uint64_t& flags) {
                       phybin_x87_fcmov(&s, 2, ((flags & row.mask) != 0) != row.negated);
                     }});
  }
  cases.push_back({"fldcw", memory_opcode(0xd9, 5),
                   [](X87State& s, Memory& m, uint64_t&) { phybin_x87_fldcw(&s, m.low & 0xffff, 0); }});
  cases.push_back({"fnstcw", memory_opcode(0xd9, 7),
                   [](X87State& s, Memory& m, uint64_t&) { store(s, m, phybin_x87_fnstcw(&s, 0, 0), 2); }});
  cases.push_back({"fnstsw", memory_opcode(0xdd, 7),
                   [](X87State& s, Memory& m, uint64_t&) { store(s, m, phybin_x87_fnstsw(&s, 0, 0), 2); }});
  // paddd mm2, mm2
  cases.push_back({"mmx", std::string("\x0f\xfe\xd2", 3), [](X87State& s, Memory&, uint64_t&) {
                     phybin_x87_enter_mmx(&s, 0, 0);
                     const uint64_t v = s.registers[2].significand;
                     s.registers[2] = {((v & 0xffffffff) * 2 & 0xffffffff) | (v >> 32) * 2 << 32, 0xffff};
                   }});
  run(cases, kCount);
}

}  // namespace
}  // namespace phybin::runtime::x87

#else

TEST(X87, ComparisonWithCpu) { GTEST_SKIP() << "needs an x86_64 CPU to compare with"; }

#endif
