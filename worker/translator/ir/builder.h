// Builds the IR of one region, block by block.
//
// Guest registers are forwarded within a block: a read after a write yields the value written, a second read yields
// the first one's value, so lifters may read a register as often as they like. A write that another one overtakes
// before anything could observe it (a fault, a helper, the end of the block) is dropped.
#pragma once

#include <array>
#include <cstddef>
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
  // The length of Region::ops is right when the builder is gone.
  explicit Builder(Region& region) : region_(region) {
    if (region.ops.empty()) *region.ops.add() = Op{};
    size_ = region.ops.size();
    make_room();
  }
  ~Builder() { region_.ops.set_size(size_); }
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  void begin_block(uint64_t address);
  void end_block(uint64_t fallthrough);
  void begin_instruction(uint16_t index) {
    if (size_ > most_) [[unlikely]]
      make_room();
    instruction_bits_ = uint64_t{index} << 48;
  }

  // Appends an operation; the result is its value (kNoValue when the opcode defines none).
  [[gnu::always_inline]] ValueId op(Opcode code, uint8_t width, ValueId a = kNoValue, ValueId b = kNoValue,
                                    ValueId c = kNoValue, int64_t imm = 0, uint8_t aux = 0, uint8_t aux2 = 0,
                                    FlagMask flags_def = 0) {
    // Op as four words: most of it is known to the compiler.
    static_assert(offsetof(Op, width) == 2 && offsetof(Op, aux) == 3 && offsetof(Op, aux2) == 4 &&
                  offsetof(Op, flags_def) == 5 && offsetof(Op, a) == 8 && offsetof(Op, b) == 10 &&
                  offsetof(Op, c) == 12 && offsetof(Op, instruction) == 14 && offsetof(Op, uses) == 16 &&
                  offsetof(Op, home) == 18 && offsetof(Op, where) == 20 && offsetof(Op, imm) == 24);
    const auto id = static_cast<ValueId>(size_);
    using Word [[gnu::may_alias]] = uint64_t;
    auto* const words = reinterpret_cast<Word*>(ops_ + size_++);
    words[0] = static_cast<uint64_t>(code) | uint64_t{width} << 16 | uint64_t{aux} << 24 | uint64_t{aux2} << 32 |
               uint64_t{flags_def} << 40;
    words[1] = uint64_t{a} | uint64_t{b} << 16 | uint64_t{c} << 32 | instruction_bits_;
    words[2] = uint64_t{0xff} << 16;  // home
    words[3] = static_cast<uint64_t>(imm);
    const unsigned properties = traits(code);
    if ((properties & (kCanFault | kStateBarrier)) != 0) unseen_ = 0;
    if ((properties & kStateBarrier) != 0) forget_registers();
    if ((properties & kTerminator) != 0) ended_ = true;
    return (properties & kDefinesValue) != 0 ? id : kNoValue;
  }
  // The same with an immediate in place of operand b.
  ValueId op_imm(Opcode code, uint8_t width, ValueId a, int64_t imm, FlagMask flags_def = 0) {
    return op(code, width, a, kNoValue, kNoValue, imm, 0, 0, flags_def);
  }
  // The operation just appended, for what the calls above do not set.
  Op& last_op() { return ops_[size_ - 1]; }
  const Op& at(ValueId value) const { return ops_[value]; }

  // The same pure operation if it was made already, not far back, and is still in reach; or kNoValue.
  ValueId find(Opcode code, ValueId a, ValueId b = kNoValue, int64_t imm = 0, uint8_t aux = 0) const;

  ValueId constant(int64_t imm) { return op(Opcode::kConst, 64, kNoValue, kNoValue, kNoValue, imm); }
  bool is_constant(ValueId v) const { return at(v).code == Opcode::kConst; }
  ValueId guest_address(uint64_t address) {
    return op(Opcode::kGuestAddress, 64, kNoValue, kNoValue, kNoValue, static_cast<int64_t>(address));
  }

  ValueId get_gpr(unsigned reg) {
    const ValueId known = gpr_[reg];
    return known != kNoValue ? known : read_gpr(reg);
  }
  // The value of a register, if the block has read or written it.
  ValueId known_gpr(unsigned reg) const { return gpr_[reg]; }
  void set_gpr(unsigned reg, ValueId value);
  ValueId get_vec(unsigned reg);
  void set_vec(unsigned reg, ValueId value);

  // `result` of an operation on a and b (which may be absent), with x86's NaN.
  ValueId fix_nan(uint8_t width, ValueId result, ValueId a, ValueId b, uint8_t element) {
    region_.has_nan_checks = true;
    return op(Opcode::kFFixNan, width, result, a, b, 0, element);
  }

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
  // An operation whose flags_def includes PF: `raw` says of what (raw_flags).
  ValueId op_flags(Opcode code, uint8_t width, ValueId a, ValueId b, int64_t imm, FlagMask flags_def, uint8_t raw) {
    return op(code, width, a, b, kNoValue, imm, 0, raw, flags_def);
  }
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
  void forget_registers();
  ValueId read_gpr(unsigned reg);
  void make_room();

  // More than a lifter makes for one instruction, with what ends a block.
  static constexpr std::size_t kMostOps = 512;

  // The operations in Region::ops; there is room for kMostOps more while there are at most `most_`.
  Op* ops_ = nullptr;
  std::size_t size_ = 0;
  std::size_t most_ = 0;
  uint64_t instruction_bits_ = 0;  // Op::instruction in its place
  Region& region_;
  bool ended_ = true;
  std::array<ValueId, 16> gpr_{};
  // SetGpr of each register in `unseen_`: nothing has been able to observe it yet.
  std::array<uint16_t, 16> unseen_write_{};
  uint32_t unseen_ = 0;
  std::array<ValueId, 16> vec_{};
};

}  // namespace phybin::ir
