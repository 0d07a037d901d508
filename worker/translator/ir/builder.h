// Builds the IR of one region, block by block.
//
// Guest registers are forwarded within a block: a read after a write yields the value written, a second read yields
// the first one's value, so lifters may read a register as often as they like. A write that another one overtakes
// before anything could observe it (a fault, a helper, the end of the block) is dropped.
#pragma once

#include <array>
#include <cstdint>

#include "worker/translator/ir/ir.h"

namespace phybin::ir {

// Flags that x86 condition code `cc` (0 = O ... 15 = G) reads.
FlagMask condition_flags(uint8_t cc);

struct Operands {
  ValueId a = kNoValue, b = kNoValue, c = kNoValue;
};

class Builder {
 public:
  explicit Builder(Region& region) : region_(region) {
    if (region_.ops.empty()) region_.ops.emplace_back();
  }

  void begin_block(uint64_t address);
  void end_block(uint64_t fallthrough);
  void begin_instruction(uint16_t index) { instruction_ = index; }

  // Appends an operation; the result is its value (kNoValue when the opcode defines none).
  ValueId op(Opcode code, uint8_t width, ValueId a = kNoValue, ValueId b = kNoValue, ValueId c = kNoValue,
             int64_t imm = 0, uint8_t aux = 0, uint8_t aux2 = 0, FlagMask flags_def = 0) {
    Op& o = append(code, width);
    o.a = a;
    o.b = b;
    o.c = c;
    o.imm = imm;
    o.aux = aux;
    o.aux2 = aux2;
    o.flags_def = flags_def;
    return last();
  }
  // The same with an immediate in place of operand b.
  ValueId op_imm(Opcode code, uint8_t width, ValueId a, int64_t imm, FlagMask flags_def = 0) {
    return op(code, width, a, kNoValue, kNoValue, imm, 0, 0, flags_def);
  }
  // The operation just appended, for what the calls above do not set.
  Op& last_op() { return region_.ops.back(); }
  const Op& at(ValueId value) const { return region_.ops[value]; }

  // The same pure operation if it was made already, not far back, and is still in reach; or kNoValue.
  ValueId find(Opcode code, ValueId a, ValueId b = kNoValue, int64_t imm = 0, uint8_t aux = 0) const;

  ValueId constant(int64_t imm) { return op(Opcode::kConst, 64, kNoValue, kNoValue, kNoValue, imm); }
  bool is_constant(ValueId v) const { return at(v).code == Opcode::kConst; }
  ValueId guest_address(uint64_t address) {
    return op(Opcode::kGuestAddress, 64, kNoValue, kNoValue, kNoValue, static_cast<int64_t>(address));
  }

  ValueId get_gpr(unsigned reg);
  void set_gpr(unsigned reg, ValueId value);
  ValueId get_vec(unsigned reg);
  void set_vec(unsigned reg, ValueId value);

  void push(ValueId value, uint8_t width = 64) {
    op(Opcode::kPush, width, value);
    gpr_[4] = kNoValue;
  }
  ValueId pop(uint8_t width = 64) {
    const ValueId value = op(Opcode::kPop, width);
    gpr_[4] = kNoValue;
    return value;
  }

  // An operation that reads flags: condition `cc` in aux.
  ValueId op_condition(Opcode code, uint8_t width, uint8_t cc, ValueId a = kNoValue, ValueId b = kNoValue);
  void set_pf(ValueId result) { op(Opcode::kSetPf, 0, result, kNoValue, kNoValue, 0, 0, 0, kP); }
  // AF of the result that the next set_pf names. Comes before the operation, whose result may overwrite a.
  void set_af(AfKind kind, ValueId a, ValueId b, int64_t imm = 0) {
    op(Opcode::kSetAf, 64, a, b, kNoValue, imm, 0, static_cast<uint8_t>(kind), kA);
  }

  // True when the bits of `value` from `width` on are known to be zero.
  bool is_narrow(ValueId value, unsigned width) const { return ir::is_narrow(region_, value, width); }
  // True when the upper 32 bits of `value` are known to be zero.
  bool is_zero_extended(ValueId value) const;
  // `value` with its upper 32 bits cleared.
  ValueId zero_extend_32(ValueId value) { return is_zero_extended(value) ? value : op(Opcode::kMov, 32, value); }

  bool block_ended() const { return ended_; }

 private:
  Op& append(Opcode code, uint8_t width);
  ValueId last() const {
    return info(region_.ops.back().code).result == ResultClass::kNone ? kNoValue
                                                                      : static_cast<ValueId>(region_.ops.size() - 1);
  }

  Region& region_;
  uint16_t instruction_ = 0;
  bool ended_ = true;
  std::array<ValueId, 16> gpr_{};
  // SetGpr of each register that nothing has been able to observe yet, 0 if there is none.
  std::array<uint16_t, 16> unseen_write_{};
  std::array<ValueId, 16> vec_{};
};

}  // namespace phybin::ir
