// BT, BTS, BTR, BTC, BSF, BSR, and the counting instructions POPCNT, LZCNT, TZCNT, CRC32.
#include "worker/translator/lift/lift_functions.h"

namespace phybin::lift {

using decode::OperandKind;
using ir::AtomicKind;

namespace {

enum class BitAction : uint8_t { kTest, kSet, kReset, kComplement };

ValueId act(Lifter& l, BitAction action, uint8_t width, ValueId x, ValueId mask) {
  switch (action) {
    case BitAction::kSet:
      return l.b.op(Opcode::kOr, width, x, mask);
    case BitAction::kReset:
      return l.b.op(Opcode::kAndNot, width, x, mask);
    case BitAction::kComplement:
      return l.b.op(Opcode::kXor, width, x, mask);
    case BitAction::kTest:
      break;
  }
  return x;
}

void bit_operation(Lifter& l, BitAction action) {
  const uint8_t width = l.width(0);
  const uint8_t wide = width == 64 ? 64 : 32;
  const bool immediate = l.operand(1).kind == OperandKind::kImmediate;
  const int64_t bit = l.in.imm & (width - 1);
  ValueId index = kNoValue;
  if (!immediate) index = l.b.get_gpr(l.operand(1).reg);
  const auto mask = [&]() -> ValueId {
    if (immediate) return l.b.constant(static_cast<int64_t>(uint64_t{1} << bit));
    const ValueId count = width == 16 ? l.b.op_imm(Opcode::kAnd, 32, index, 15) : index;
    return l.b.op(Opcode::kShiftLeft, wide, l.b.constant(1), count);
  };
  const auto test = [&](ValueId x) { l.b.op(Opcode::kBitTest, width, x, index, kNoValue, bit, 0, 0, ir::kC); };
  if (!l.is_memory(0)) {
    const ValueId x = l.b.get_gpr(l.operand(0).reg);
    test(x);
    if (action != BitAction::kTest) l.write_gpr(l.operand(0), act(l, action, width, x, mask()));
    return;
  }
  Address m = l.memory_address();
  if (!immediate) {
    // A register index reaches beyond the operand: the address moves by whole operands.
    ValueId offset = index;
    if (width < 64) offset = l.b.op(Opcode::kSignExtend, width, index, kNoValue, kNoValue, 0, 64);
    const uint8_t log2 = width == 16 ? 4 : width == 32 ? 5 : 6;
    offset = l.b.op_imm(Opcode::kShiftRightSigned, 64, offset, log2);
    const ValueId base = l.address_value(m);
    m = {base, offset, static_cast<uint8_t>(log2 - 3), 0};
  }
  if (l.in.has_prefix(decode::kPrefixLock)) {
    const ValueId address = l.address_value(m);
    ValueId operand = mask();
    AtomicKind kind = AtomicKind::kOr;
    if (action == BitAction::kReset) {
      operand = l.b.op(Opcode::kNot, wide, operand);
      kind = AtomicKind::kAnd;
    } else if (action == BitAction::kComplement) {
      kind = AtomicKind::kXor;
    }
    test(l.b.op(Opcode::kAtomicRmw, width, address, operand, kNoValue, 0, 0, static_cast<uint8_t>(kind)));
    return;
  }
  const ValueId x = l.load(m, width);
  if (action == BitAction::kTest) {
    test(x);
    return;
  }
  const ValueId result = act(l, action, width, x, mask());
  l.store(m, result, width);
  test(x);
}

// The source of a counting instruction, zero-extended.
ValueId counted(Lifter& l, uint8_t width) {
  const ValueId x = l.read(1);
  return width == 16 ? l.b.op(Opcode::kMov, 16, x) : x;
}

void write_count(Lifter& l, ValueId count) { l.write_gpr(l.operand(0), count); }

// LZCNT and TZCNT: CF is set when the source is 0, ZF when the result is; SDM leaves the others undefined.
void write_zero_count(Lifter& l, uint8_t width, ValueId x, ValueId count) {
  // CLZ is the width exactly for 0: its bit 5 or 6.
  const uint8_t wide = width == 64 ? 64 : 32;
  const ValueId carry = l.b.op_imm(Opcode::kShiftRight, 64, l.b.op(Opcode::kCLZ, wide, x), wide == 64 ? 6 : 5);
  const ValueId zero = l.b.op_imm(Opcode::kShiftRight, 64, l.b.op(Opcode::kCLZ, 32, count), 5);
  const ValueId flags = l.b.op(Opcode::kOr, 64, carry, l.b.op_imm(Opcode::kShiftLeft, 64, zero, 6));
  l.b.op(Opcode::kSetNzcv, 64, flags, kNoValue, kNoValue, 0, 0, 0, ir::kNzcv);
  write_count(l, count);
}

// ZF of the source; the destination keeps its value when the source is 0 (as all CPUs do).
void scan(Lifter& l, bool reverse) {
  const uint8_t width = l.width(0);
  const uint8_t wide = width == 64 ? 64 : 32;
  ValueId x = l.read(1);
  if (width == 16) x = l.b.op(Opcode::kMov, 16, x);
  ValueId found;
  if (reverse) {
    const ValueId zeros = l.b.op(Opcode::kCLZ, wide, x);
    found = l.b.op_imm(Opcode::kXor, wide, zeros, wide - 1);
  } else {
    found = l.b.op(Opcode::kCLZ, wide, l.b.op(Opcode::kRBit, wide, x));
  }
  l.b.op_flags(Opcode::kSub, wide, x, kNoValue, 0, ir::kAllFlags,
               ir::raw_flags(ir::kPfOfOperand, ir::AfKind::kUndefined));
  const ValueId old = l.read_gpr(l.operand(0));
  // With a 32-bit operand of 0 the upper half of the destination is kept, too.
  const ValueId value = l.b.op_condition(Opcode::kSelect, 64, 4, old, found);
  if (width == 16) {
    l.write_gpr(l.operand(0), value);
  } else {
    l.b.set_gpr(l.operand(0).reg, value);
  }
}

}  // namespace

void lift_bt(Lifter& l) { bit_operation(l, BitAction::kTest); }
void lift_bts(Lifter& l) { bit_operation(l, BitAction::kSet); }
void lift_btr(Lifter& l) { bit_operation(l, BitAction::kReset); }
void lift_btc(Lifter& l) { bit_operation(l, BitAction::kComplement); }
void lift_bsf(Lifter& l) { scan(l, false); }
void lift_bsr(Lifter& l) { scan(l, true); }

// ZF of the source, all other flags 0.
void lift_popcnt(Lifter& l) {
  const uint8_t width = l.width(0);
  const ValueId count = l.b.op(Opcode::kPopCount, width, counted(l, width));
  const ValueId odd = l.b.constant(1);
  l.b.set_af(ir::AfKind::kPlain, kNoValue, kNoValue, 0);
  l.b.op(Opcode::kSub, 32, count, kNoValue, kNoValue, 0, 0, 0, ir::kNzcv);
  l.b.set_pf(odd);
  write_count(l, count);
}

void lift_lzcnt(Lifter& l) {
  const uint8_t width = l.width(0);
  const ValueId x = counted(l, width);
  ValueId count = l.b.op(Opcode::kCLZ, width == 64 ? 64 : 32, x);
  if (width == 16) count = l.b.op_imm(Opcode::kSub, 32, count, 16);
  write_zero_count(l, width, x, count);
}

void lift_tzcnt(Lifter& l) {
  const uint8_t width = l.width(0);
  const uint8_t wide = width == 64 ? 64 : 32;
  const ValueId x = counted(l, width);
  const ValueId ended = width == 16 ? l.b.op_imm(Opcode::kOr, 32, x, 0x10000) : x;
  write_zero_count(l, width, x, l.b.op(Opcode::kCLZ, wide, l.b.op(Opcode::kRBit, wide, ended)));
}

// The host has the same polynomial; without the instruction CPUID does not announce SSE4.2.
void lift_crc32(Lifter& l) {
  if (!l.host.crc32) return l.trap(ir::TrapKind::kInvalidOpcode);
  const ValueId data = l.read(1);
  const ValueId sum = l.b.op(Opcode::kCrc32c, l.width(1), l.b.get_gpr(l.operand(0).reg), data);
  l.b.set_gpr(l.operand(0).reg, sum);
}

}  // namespace phybin::lift
