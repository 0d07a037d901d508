// See x87_cpu.h.
#include "tests/unit/x87_cpu.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace phybin::runtime::x87 {
namespace {

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
  return std::ranges::equal(a.registers, b.registers) && a.control_word == b.control_word &&
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

}  // namespace

Native::Native(const std::string& instruction) {
  // frstor [rdi]; push rdx; popf; INSTRUCTION; pushf; pop rax; fnsave [rdi]; ret
  const std::string code = std::string("\xdd\x27\x52\x9d", 4) + instruction + std::string("\x9c\x58\xdd\x37\xc3", 5);
  page_ = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memcpy(page_, code.data(), code.size());
  mprotect(page_, 4096, PROT_READ | PROT_EXEC);
}

Native::~Native() { munmap(page_, 4096); }

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

}  // namespace phybin::runtime::x87

#endif
