// Compares the x87 helpers with the CPU this runs on, instruction by instruction: a random state is given to both
// (FRSTOR for the CPU), one instruction is executed, and registers, tags, control and status word, EFLAGS and memory
// operand must agree to the last bit. Elsewhere than on x86_64 there is nothing to compare with.
#include <cpuid.h>
#include <gtest/gtest.h>

#include "worker/runtime/helpers/x87_ops.h"

#if defined(__x86_64__)

#include <sys/mman.h>

#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace phybin::runtime::x87 {
namespace {

constexpr uint64_t kSeed = 0x9e3779b97f4a7c15;

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {  // splitmix64
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  uint64_t below(uint64_t bound) { return next() % bound; }

 private:
  uint64_t state_;
};

struct alignas(16) Image {
  uint8_t bytes[112];
};

// An instruction between FRSTOR and FNSAVE. Memory operands are addressed by RSI; EFLAGS go in and out.
class Native {
 public:
  explicit Native(const std::string& instruction) {
    // frstor [rdi]; push rdx; popf; INSTRUCTION; pushf; pop rax; fnsave [rdi]; ret
    const std::string code =
        std::string("\xdd\x27\x52\x9d", 4) + instruction + std::string("\x9c\x58\xdd\x37\xc3", 5);
    page_ = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memcpy(page_, code.data(), code.size());
    mprotect(page_, 4096, PROT_READ | PROT_EXEC);
  }
  ~Native() { munmap(page_, 4096); }
  Native(const Native&) = delete;
  Native& operator=(const Native&) = delete;

  uint64_t operator()(Image& image, void* memory, uint64_t flags) const {
    return reinterpret_cast<uint64_t (*)(void*, void*, uint64_t)>(page_)(&image, memory, flags);
  }

 private:
  void* page_;
};

// Operands of all classes; significands mostly with few bits set or cleared, exponents near one another or at the
// ends.
Float80 random_operand(Random& random) {
  uint64_t significand = random.next();
  switch (random.below(8)) {
    case 0:
      significand = 0;
      break;
    case 1:
      significand = ~uint64_t{0} << random.below(64);
      break;
    case 2:
      significand = ~uint64_t{0} >> random.below(64);
      break;
    case 3:
      significand = uint64_t{1} << random.below(64);
      break;
    case 4:
      significand &= ~uint64_t{0} << random.below(64);
      break;
    case 5:
      significand = (significand & 3) - 1;
      break;
    default:
      break;
  }
  uint32_t exponent = static_cast<uint32_t>(random.next()) & 0x7fff;
  const uint32_t small = static_cast<uint32_t>(random.below(140));
  switch (random.below(12)) {
    case 0:
      exponent = 0;
      break;
    case 1:
      exponent = 0x7fff;
      break;
    case 2:
      exponent = small;
      break;
    case 3:
      exponent = 0x7fff - small;
      break;
    case 4:
      exponent = 16383 - 1022 - small / 2;
      break;  // near the ends of float64 and float32
    case 5:
      exponent = 16383 + 1020 + small / 16;
      break;
    case 6:
      exponent = 16383 - 126 + 4 - small / 4;
      break;
    case 7:
      exponent = 16383 + 120 + small / 10;
      break;
    case 8:
    case 9:
      exponent = 16383 - 4 + small / 2;
      break;
    case 10:
      exponent = 16383 - 1 + small / 60;
      break;
    default:
      break;
  }
  if (random.below(8) != 0 && exponent != 0) significand |= kIntegerBit;
  if (random.below(16) == 0) {
    significand = 0;
    exponent = 0;
  }
  return {significand, static_cast<uint16_t>(exponent | (random.next() & kSignBit))};
}

uint64_t random_memory_float(Random& random, unsigned exponent_bits, unsigned fraction_bits) {
  uint64_t fraction = random.next();
  if (random.below(3) == 0) fraction &= ~uint64_t{0} << random.below(64);
  uint64_t exponent = random.next();
  const uint64_t bias = (uint64_t{1} << (exponent_bits - 1)) - 1;
  switch (random.below(5)) {
    case 0:
      exponent = 0;
      break;
    case 1:
      exponent = ~uint64_t{0};
      break;
    case 2:
      exponent = bias + random.below(70) - 3;
      break;
    default:
      break;
  }
  if (random.below(8) == 0) fraction = 0;
  fraction &= (uint64_t{1} << fraction_bits) - 1;
  exponent &= (uint64_t{1} << exponent_bits) - 1;
  return fraction | exponent << fraction_bits | (random.next() & 1) << (exponent_bits + fraction_bits);
}

struct StateOptions {
  bool unmasked = false;
  bool all_occupied = false;
};

X87State random_state(Random& random, const StateOptions& options) {
  X87State state{};
  for (Float80& v : state.registers) v = random_operand(random);
  // Pairs that are close to one another are the interesting ones for addition and comparison.
  for (unsigned i = 1; i < 8; ++i) {
    if (random.below(3) != 0) continue;
    Float80& v = state.registers[i];
    v.sign_exponent = static_cast<uint16_t>(state.registers[0].sign_exponent + random.below(5) - 2);
    if (random.below(4) == 0) v.significand = state.registers[0].significand;
  }
  const uint16_t mode = static_cast<uint16_t>(random.next());
  state.control_word = static_cast<uint16_t>(0x7f | (mode & 0x0f00));
  if (random.below(2) == 0) state.control_word = 0x37f;
  if (options.unmasked) state.control_word &= static_cast<uint16_t>(~0x3fu | random.next());
  state.control_word |= 0x40;
  // No exception is pending before the instruction.
  state.status_word = static_cast<uint16_t>(random.next() & kConditionMask) |
                      static_cast<uint16_t>(random.next() & random.next() & (kExceptionMask | kStackFault) &
                                            (state.control_word | kStackFault));
  state.top = static_cast<uint8_t>(random.below(8));
  state.occupied = options.all_occupied ? 0xff : static_cast<uint8_t>(random.next() | random.next());
  return state;
}

struct Memory {
  uint64_t low = 0;
  uint64_t high = 0;

  bool operator==(const Memory&) const = default;
};

enum class Fill { kNone, kFloat32, kFloat64, kBits };

struct Case {
  std::string name;
  std::string bytes;
  std::function<void(X87State&, Memory&, uint64_t& flags)> helper;
  Fill fill = Fill::kNone;
  bool prefers_free_slot = false;  // pushes
  bool last_bit_may_differ = false;
  // Intel's CPUs and others deliver different results and flags with an unmasked exception; ours are Intel's.
  bool vendors_differ = false;
};

std::string describe(const X87State& state) {
  char line[96];
  std::snprintf(line, sizeof line, "cw %04x sw %04x top %u occupied %02x\n", state.control_word, state.status_word,
                state.top, state.occupied);
  std::string text = line;
  for (unsigned i = 0; i < 8; ++i) {
    const Float80 v = state.registers[(state.top + i) & 7];
    std::snprintf(line, sizeof line, "  st%u %04x %016llx%s\n", i, v.sign_exponent,
                  static_cast<unsigned long long>(v.significand), is_empty(state, i) ? " empty" : "");
    text += line;
  }
  return text;
}

std::string describe(const Memory& memory, uint64_t flags) {
  char line[96];
  std::snprintf(line, sizeof line, "  memory %016llx %016llx flags %llx\n",
                static_cast<unsigned long long>(memory.low), static_cast<unsigned long long>(memory.high),
                static_cast<unsigned long long>(flags));
  return line;
}

bool same(const X87State& a, const X87State& b) {
  return std::memcmp(&a.registers, &b.registers, sizeof a.registers) == 0 && a.control_word == b.control_word &&
         a.status_word == b.status_word && a.top == b.top && a.occupied == b.occupied;
}

// Gives `ours` the registers of the CPU where they are neighbours of its own, and C1, which then can differ too; UE
// as well if that neighbour is the smallest normal number.
void forgive_last_bit(const X87State& cpu, X87State& ours) {
  uint32_t forgiven = (cpu.status_word & kPrecision) != 0 ? kC1 : 0;
  for (unsigned i = 0; i < 8; ++i) {
    const Float80 v = cpu.registers[i];
    const Float80 w = ours.registers[i];
    const auto position = [](Float80 of) {
      return uint128{of.sign_exponent} << 63 | (of.significand & ~kIntegerBit);
    };
    const uint128 a = position(v);
    const uint128 b = position(w);
    const Float80 smallest{kIntegerBit, 1};
    const bool border = v != w && (absolute(v) == smallest || absolute(w) == smallest);
    if (border || (v == w && absolute(v) == smallest)) forgiven |= kUnderflow;
    if (border || (a > b ? a - b : b - a) <= 1) ours.registers[i] = v;
  }
  ours.status_word = static_cast<uint16_t>((ours.status_word & ~forgiven) | (cpu.status_word & forgiven));
}

constexpr uint64_t kArithmeticFlags = 0x8d5;

// Runs one case `count` times; stops after a few differences.
void compare_with_cpu(const Case& test, Random& random, unsigned count, const StateOptions& options) {
  const Native native(test.bytes);
  unsigned differences = 0;
  for (unsigned i = 0; i < count && differences < 3; ++i) {
    X87State before = random_state(random, options);
    if (test.prefers_free_slot && random.below(4) != 0)
      before.occupied &= static_cast<uint8_t>(~(1u << ((before.top + 7) & 7)));
    Memory memory_before{random.next(), random.next()};
    if (test.fill == Fill::kFloat32) memory_before.low = random_memory_float(random, 8, 23);
    if (test.fill == Fill::kFloat64) memory_before.low = random_memory_float(random, 11, 52);
    if (test.fill == Fill::kBits && random.below(2) == 0) {
      const Float80 v = random_operand(random);
      memory_before = {v.significand, v.sign_exponent};
    }
    const uint64_t flags_before = 0x202 | (random.next() & kArithmeticFlags);

    Image image{};
    X87State scratch = before;
    phybin_x87_fnsave(&scratch, reinterpret_cast<uint64_t>(image.bytes), 0);
    Memory memory_cpu = memory_before;
    const uint64_t flags_cpu = native(image, &memory_cpu, flags_before) & kArithmeticFlags;
    X87State cpu{};
    phybin_x87_frstor(&cpu, reinterpret_cast<uint64_t>(image.bytes), 0);

    X87State ours = before;
    Memory memory_ours = memory_before;
    uint64_t flags_ours = flags_before & kArithmeticFlags;
    test.helper(ours, memory_ours, flags_ours);
    // The stored image has the status word as it was; reading it back recomputes ES from the masks, as FRSTOR does.
    uint16_t status_cpu;
    std::memcpy(&status_cpu, image.bytes + 4, 2);
    if (test.last_bit_may_differ) forgive_last_bit(cpu, ours);
    const bool agrees = same(cpu, ours) && memory_cpu == memory_ours && flags_cpu == flags_ours &&
                        status_cpu == full_status_word(ours);
    if (agrees) continue;
    ++differences;
    ADD_FAILURE() << test.name << "\nbefore " << describe(before) << describe(memory_before, flags_before)
                  << "cpu    " << describe(cpu) << describe(memory_cpu, flags_cpu) << "ours   " << describe(ours)
                  << describe(memory_ours, flags_ours);
  }
}

using Function = uint64_t (*)(X87State*, uint64_t, uint64_t);

std::string opcode(unsigned first, unsigned second) { return {static_cast<char>(first), static_cast<char>(second)}; }

// An instruction with a memory operand [rsi].
std::string memory_opcode(unsigned first, unsigned reg) { return opcode(first, reg << 3 | 6); }

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

bool on_intel() {
  unsigned highest, b, c, d;
  return __get_cpuid(0, &highest, &b, &c, &d) != 0 && b == signature_INTEL_ebx;
}

void run(const std::vector<Case>& cases, unsigned count) {
  for (const Case& test : cases) {
    // A seed of its own for each, so that a failure can be repeated alone.
    Random random(kSeed);
    compare_with_cpu(test, random, count, {});
    compare_with_cpu(test, random, count, {.unmasked = false, .all_occupied = true});
    if (test.vendors_differ && !on_intel()) continue;
    compare_with_cpu(test, random, count / 2, {.unmasked = true, .all_occupied = false});
    compare_with_cpu(test, random, count / 2, {.unmasked = true, .all_occupied = true});
  }
}

constexpr unsigned kCount = 4000;

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

// The instructions that store or load whole images, executed between FRSTOR and FNSAVE too.
TEST(X87, Images) {
  struct alignas(16) Buffer {
    uint8_t bytes[512];
  };
  struct Row {
    const char* name;
    std::string bytes;
    Function function;
    uint64_t variant;
    unsigned stored;  // bytes
    bool loads;
  };
  const std::string size16 = "\x66";
  const std::string wide = "\x48";
  const Row rows[] = {
      {"fnstenv", memory_opcode(0xd9, 6), phybin_x87_fnstenv, 0, kEnvironment32, false},
      {"fnstenv 16", size16 + memory_opcode(0xd9, 6), phybin_x87_fnstenv, 1, kEnvironment16, false},
      {"fldenv", memory_opcode(0xd9, 4), phybin_x87_fldenv, 0, 0, true},
      {"fldenv 16", size16 + memory_opcode(0xd9, 4), phybin_x87_fldenv, 1, 0, true},
      {"fnsave", memory_opcode(0xdd, 6), phybin_x87_fnsave, 0, kEnvironment32 + kRegistersImage, false},
      {"fnsave 16", size16 + memory_opcode(0xdd, 6), phybin_x87_fnsave, 1, kEnvironment16 + kRegistersImage, false},
      {"frstor", memory_opcode(0xdd, 4), phybin_x87_frstor, 0, 0, true},
      {"frstor 16", size16 + memory_opcode(0xdd, 4), phybin_x87_frstor, 1, 0, true},
      {"fxsave", std::string("\x0f\xae\x06", 3), phybin_x87_fxsave, 0, kFxsaveX87, false},
      {"fxsave64", wide + std::string("\x0f\xae\x06", 3), phybin_x87_fxsave, 1, kFxsaveX87, false},
      {"fxrstor", std::string("\x0f\xae\x0e", 3), phybin_x87_fxrstor, 0, 0, true},
      {"fxrstor64", wide + std::string("\x0f\xae\x0e", 3), phybin_x87_fxrstor, 1, 0, true},
  };
  for (const Row& row : rows) {
    Random random(kSeed);
    const Native native(row.bytes);
    for (unsigned i = 0; i < kCount / 4 && !HasFailure(); ++i) {
      X87State before = random_state(random, {.unmasked = i % 2 == 0, .all_occupied = false});
      before.last_instruction = random.next() & 0xffffffff;
      before.last_data = random.next() & 0xffffffff;
      Buffer memory_before{};
      for (uint8_t& byte : memory_before.bytes) byte = static_cast<uint8_t>(random.next());
      // Whatever is loaded, MXCSR must be legal.
      const uint32_t mxcsr = 0x1f80;
      if (row.function == phybin_x87_fxrstor) std::memcpy(memory_before.bytes + 24, &mxcsr, 4);

      Image image{};
      X87State scratch = before;
      phybin_x87_fnsave(&scratch, reinterpret_cast<uint64_t>(image.bytes), 0);
      Buffer memory_cpu = memory_before;
      native(image, &memory_cpu, 0x202);
      Image image_ours{};
      X87State ours = before;
      Buffer memory_ours = memory_before;
      row.function(&ours, reinterpret_cast<uint64_t>(memory_ours.bytes), row.variant);
      phybin_x87_fnsave(&ours, reinterpret_cast<uint64_t>(image_ours.bytes), 0);
      if (row.function == phybin_x87_fxsave) std::memcpy(memory_ours.bytes + 24, memory_cpu.bytes + 24, 8);
      // The last opcode is kept only by CPUs that are told to.
      image.bytes[18] = image_ours.bytes[18] = image.bytes[19] = image_ours.bytes[19] = 0;
      if (!on_intel()) {
        // Where the last instruction and its operand were: others keep the selectors, which Intel's CPUs store as
        // zero, and FXSAVE and FXRSTOR leave all of it out when no exception is pending.
        std::memcpy(image.bytes + 12, image_ours.bytes + 12, 16);
        if (row.function == phybin_x87_fxsave) std::memcpy(memory_ours.bytes + 6, memory_cpu.bytes + 6, 18);
      }
      for (unsigned byte = 0; byte < row.stored; ++byte) {
        ASSERT_EQ(memory_cpu.bytes[byte], memory_ours.bytes[byte]) << row.name << " stores at " << byte;
      }
      for (unsigned byte = 0; byte < kEnvironment32 + kRegistersImage; ++byte) {
        ASSERT_EQ(image.bytes[byte], image_ours.bytes[byte]) << row.name << " leaves at " << byte;
      }
    }
  }
}

}  // namespace
}  // namespace phybin::runtime::x87

#else

TEST(X87, ComparisonWithCpu) { GTEST_SKIP() << "needs an x86_64 CPU to compare with"; }

#endif
