// Compares the x87 instructions that store or load whole images with the CPU this runs on, executed between FRSTOR
// and FNSAVE as those of x87_test.cpp are.
#include <gtest/gtest.h>

#include "tests/unit/x87_cpu.h"

#if defined(__x86_64__)

#include <cstring>

namespace phybin::runtime::x87 {
namespace {

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
      Image image_ours{};
      X87State ours = before;
      Buffer memory_ours = memory_before;
      row.function(&ours, reinterpret_cast<uint64_t>(memory_ours.bytes), row.variant);
      phybin_x87_fnsave(&ours, reinterpret_cast<uint64_t>(image_ours.bytes), 0);
      // Where the kernel switches to another process in between, AMD's CPUs forget the last instruction, unless an
      // exception is pending: then once more.
      const Image image_before = image;
      Buffer memory_cpu{};
      for (unsigned attempt = 0; attempt < 8; ++attempt) {
        image = image_before;
        memory_cpu = memory_before;
        native(image, &memory_cpu, 0x202);
        if (on_intel() || std::memcmp(memory_cpu.bytes, memory_ours.bytes, row.stored) == 0) break;
      }
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

#endif
