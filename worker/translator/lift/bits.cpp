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
  l.b.op(Opcode::kSub, wide, x, kNoValue, kNoValue, 0, 0, 0, ir::kNzcv);
  l.b.set_pf(x);
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

}  // namespace phybin::lift
