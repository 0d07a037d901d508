// What the lifters of all instruction families share: one guest instruction and the means to read and write its
// operands. A lifter is a plain function `void lift_NAME(Lifter&)`; lift_table.cpp says which one serves which
// mnemonic.
//
// Order within an instruction: whatever may fault comes before the first write of guest state, so that a fault leaves
// the registers as they were.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "worker/translator/decode/instruction.h"
#include "worker/translator/helper_ids.h"
#include "worker/translator/host_features.h"
#include "worker/translator/ir/builder.h"

namespace phybin::lift {

using ir::kNoValue;
using ir::Opcode;
using ir::ValueId;

enum Gpr : uint8_t { kRax, kRcx, kRdx, kRbx, kRsp, kRbp, kRsi, kRdi };

// An address as memory operations take it: base + (index << scale) + disp.
struct Address {
  ValueId base = kNoValue;
  ValueId index = kNoValue;
  uint8_t scale = 0;
  int64_t disp = 0;
};

class AlignmentFacts;

struct Lifter {
  ir::Builder& b;
  AlignmentFacts& alignment;  // of the block so far
  const decode::Instruction& in;
  uint64_t address;  // of the instruction
  const CodeOptions& options;
  const HostFeatures& host;

  uint64_t next() const { return address + in.length; }
  const decode::Operand& operand(unsigned i) const { return in.operands[i]; }
  uint8_t width(unsigned i) const { return static_cast<uint8_t>(in.operands[i].size * 8); }  // bits

  bool is_memory(unsigned i) const { return in.operands[i].kind == decode::OperandKind::kMemory; }
  Address memory_address();
  // The address as one value (LEA, atomics).
  ValueId address_value(const Address& address);

  ValueId load(const Address& address, uint8_t width_bits);
  void store(const Address& address, ValueId value, uint8_t width_bits);
  ValueId load_vec(const Address& address, uint8_t width_bits);
  void store_vec(const Address& address, ValueId value, uint8_t width_bits);

  // Integer operand i: registers as they are (bits above the width undefined, but for high byte registers), memory
  // zero-extended, immediates as constants.
  ValueId read(unsigned i) {
    const decode::Operand& o = in.operands[i];
    if (o.kind == decode::OperandKind::kMemory) return load_operand(static_cast<uint8_t>(o.size * 8));
    if (o.kind == decode::OperandKind::kImmediate) return b.constant(in.imm);
    return read_gpr(o);
  }
  ValueId read_gpr(const decode::Operand& operand) {
    return operand.size == 1 ? read_byte_gpr(operand) : b.get_gpr(operand.reg);
  }
  // The same for a register that the instruction will also write: looks through the zero extension of an earlier
  // write, which nobody needs then (`mov eax, ebx; add eax, ecx`).
  ValueId read_updated_gpr(const decode::Operand& operand);
  // Writes a register operand with x86 rules: 32 bits clear the upper half, 8 and 16 bits merge.
  void write_gpr(const decode::Operand& operand, ValueId value) {
    if (operand.size == 8)
      b.set_gpr(operand.reg, value);
    else if (operand.size == 4)
      b.set_gpr(operand.reg, b.zero_extend_32(value));
    else
      write_part_of_gpr(operand, value);
  }
  void write_gpr(unsigned reg, uint8_t width_bits, ValueId value) {
    write_gpr({decode::OperandKind::kGpr, static_cast<uint8_t>(reg), static_cast<uint8_t>(width_bits / 8)}, value);
  }
  // Register or memory.
  void write(unsigned i, ValueId value) {
    const decode::Operand& o = in.operands[i];
    if (o.kind == decode::OperandKind::kMemory)
      store_operand(value, static_cast<uint8_t>(o.size * 8));
    else
      write_gpr(o, value);
  }

  // A memory or register vector operand; `width_bits` as for load_vec when it is memory.
  ValueId read_vec(unsigned i, uint8_t width_bits);

  void trap(ir::TrapKind kind, int64_t imm = 0);

 private:
  ValueId load_operand(uint8_t width_bits);
  void store_operand(ValueId value, uint8_t width_bits);
  ValueId read_byte_gpr(const decode::Operand& operand);
  void write_part_of_gpr(const decode::Operand& operand, ValueId value);
};

using LiftFunction = void (*)(Lifter&);

// Where control goes after an instruction.
enum class Flow : uint8_t {
  kNext,
  kBranch,     // to the next one or a target
  kJump,       // to a target
  kCall,       // returns to the next one
  kNextBlock,  // to the next one, which is to start a block
  kEnd,        // elsewhere, or nowhere
};

struct Lifting {
  LiftFunction function = nullptr;
  Flow flow = Flow::kNext;
};

// lift_table.cpp; null for those of MMX, SSE and x87, which are in tables of their own, and for what is not
// implemented, where the guest gets SIGILL.
[[gnu::visibility("hidden")]] extern const std::array<Lifting, decode::kMnemonicCount> kLiftings;
Lifting lifting_of_other_table(decode::Mnemonic mnemonic);
inline Lifting lifting_of(decode::Mnemonic mnemonic) {
  const Lifting lifting = kLiftings[static_cast<std::size_t>(mnemonic)];
  if (lifting.function == nullptr) [[unlikely]]
    return lifting_of_other_table(mnemonic);
  return lifting;
}

}  // namespace phybin::lift
