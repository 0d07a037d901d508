// Snippets: the code that a case runs, and what the initial state must be for it to make sense.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/differential/form.h"
#include "tests/differential/random.h"

namespace phybin::difftest {

enum Gpr : uint8_t { kRax, kRcx, kRdx, kRbx, kRsp, kRbp, kRsi, kRdi };

// One encoded instruction. Displacements that depend on where it lies are filled in by place().
struct Instruction {
  const Form* form = nullptr;  // null for the scaffolding around a tested instruction
  std::array<uint8_t, 24> bytes{};
  uint8_t length = 0;
  int id = 0;              // its position when it was generated; branch targets refer to it
  int unit = 0;            // instructions of one unit are kept or removed together
  int8_t rip_offset = -1;  // of a RIP-relative displacement
  uint64_t rip_target = 0;
  int rip_label = -1;  // id of the instruction that the displacement refers to, instead of rip_target
  int8_t branch_offset = -1;
  uint8_t branch_size = 0;
  int branch_target = -1;  // id
  uint64_t immediate = 0;
  bool has_memory = false;
  uint64_t address = 0;  // of the memory operand
  uint16_t address_registers = 0;
  int8_t rm = -1;   // register number when the operand is a register; 16 to 19 are ah ch dh bh
  int8_t reg = -1;  // of the reg field or the opcode
  int8_t vvvv = -1;
  int8_t index = -1;  // vector register of a gather
  bool locked = false;
  uint8_t repeat = 0;  // F2 or F3 of a string instruction
  bool address_32 = false;

  void append(uint64_t value, unsigned size) {
    for (unsigned i = 0; i < size; i++) bytes[length++] = uint8_t(value >> (8 * i));
  }
};

// Bits of the general registers that the initial state must have.
struct Constraints {
  std::array<uint64_t, 16> value{};
  std::array<uint64_t, 16> mask{};
  void fix(unsigned reg, uint64_t v, uint64_t m = ~uint64_t(0)) {
    value[reg] = (value[reg] & ~m) | (v & m);
    mask[reg] |= m;
  }
  bool known(unsigned reg) const { return ~mask[reg] == 0; }
};

struct Snippet {
  std::vector<Instruction> code;
  unsigned number = 0;  // of a sequence
  int main = 0;         // index of the instruction under test, -1 in a sequence
  std::string name;     // of a flag pair
  Constraints constraints;
  bool faults = false;
};

// Which registers the generator may use for what.
struct RegisterPools {
  uint16_t general = 0xffff;  // operands
  uint16_t base = 0xffff;     // of memory operands
  uint16_t index = 0xffef;
  bool faults = false;  // memory operands mostly outside the arena, across its end, or misaligned
};

struct FlagEffects {
  uint32_t read = 0;
  uint32_t written = 0;    // defined afterwards whatever they were
  uint32_t undefined = 0;  // afterwards, or possibly so
};
// `count` is the value of CL if it is known, else negative.
FlagEffects flag_effects(const Instruction& instruction, int count);

// Chooses operands for one instruction of a form. Adds what it needs of the state to `constraints`.
Instruction build_instruction(const Form& form, const RegisterPools& pools, Constraints& constraints, Random& random);

// The snippet that tests a form alone, with operands that let it fault if `faults`. `id`s start at 0.
Snippet build_single(const Form& form, bool faults, Random& random);
// A random sequence of instructions of the given forms; some of them fault if `faults`.
Snippet build_sequence(const std::vector<const Form*>& forms, bool faults, Random& random);

// The bytes of a snippet at an address, with the jump back to the runner.
std::vector<uint8_t> place(const std::vector<Instruction>& code, uint64_t address);

inline int pick_register(uint16_t pool, Random& random) {
  for (;;) {
    const unsigned reg = random.below(16);
    if (pool >> reg & 1) return int(reg);
  }
}

}  // namespace phybin::difftest
