// Shifts and rotates. The IR operations carry x86's semantics (ir.h); here counts are masked and operands chosen.
#include "worker/translator/lift/lift_functions.h"

namespace phybin::lift {

using decode::OperandKind;
using ir::FlagMask;

namespace {

constexpr FlagMask kRotateFlags = ir::kC | ir::kV;
constexpr FlagMask kShiftFlags = ir::kAllFlags;
constexpr uint8_t kPfOfShift = ir::raw_flags(ir::kPfOfResult, ir::AfKind::kUndefined);

bool is_rotate(Opcode code) {
  return code == Opcode::kRol || code == Opcode::kRor || code == Opcode::kRcl || code == Opcode::kRcr;
}

// `compute` makes the new value of operand 0 out of the old one.
template <typename Compute>
void modify(Lifter& l, Compute compute) {
  if (l.is_memory(0)) {
    const Address m = l.memory_address();
    l.store(m, compute(l.load(m, l.width(0))), l.width(0));
  } else {
    l.write_gpr(l.operand(0), compute(l.read_updated_gpr(l.operand(0))));
  }
}

void shift(Lifter& l, Opcode code) {
  const uint8_t width = l.width(0);
  const bool carry_in = code == Opcode::kRcl || code == Opcode::kRcr;
  const FlagMask flags = is_rotate(code) ? kRotateFlags : kShiftFlags;
  if (l.operand(1).kind == OperandKind::kImmediate) {
    const int64_t count = l.in.imm & (width == 64 ? 63 : 31);
    if (count == 0) {
      // Nothing changes, but a 32-bit register's upper half is cleared, and memory is still accessed.
      modify(l, [](ValueId x) { return x; });
      return;
    }
    modify(l, [&](ValueId x) {
      const ValueId result = l.b.op_flags(code, width, x, kNoValue, count, flags, is_rotate(code) ? 0 : kPfOfShift);
      if (carry_in) l.b.last_op().flags_use = ir::kC;
      return result;
    });
    return;
  }
  // With a count of 0 PF stays as it was, so the operation writes it itself.
  const ValueId count = l.b.get_gpr(kRcx);
  modify(l, [&](ValueId x) {
    const ValueId result = l.b.op(code, width, x, count, kNoValue, 0, 0, 0, flags);
    if (carry_in) l.b.last_op().flags_use = ir::kC;
    return result;
  });
}

void double_shift(Lifter& l, Opcode code) {
  const uint8_t width = l.width(0);
  const ValueId y = l.read_gpr(l.operand(1));
  if (l.operand(2).kind == OperandKind::kImmediate) {
    const int64_t count = l.in.imm & (width == 64 ? 63 : 31);
    if (count == 0) {
      modify(l, [](ValueId x) { return x; });
      return;
    }
    modify(l, [&](ValueId x) { return l.b.op_flags(code, width, x, y, count, kShiftFlags, kPfOfShift); });
    return;
  }
  const ValueId count = l.b.get_gpr(kRcx);
  modify(l, [&](ValueId x) { return l.b.op(code, width, x, y, count, 0, 0, 0, kShiftFlags); });
}

}  // namespace

void lift_shl(Lifter& l) { shift(l, Opcode::kShl); }
void lift_shr(Lifter& l) { shift(l, Opcode::kShr); }
void lift_sar(Lifter& l) { shift(l, Opcode::kSar); }
void lift_rol(Lifter& l) { shift(l, Opcode::kRol); }
void lift_ror(Lifter& l) { shift(l, Opcode::kRor); }
void lift_rcl(Lifter& l) { shift(l, Opcode::kRcl); }
void lift_rcr(Lifter& l) { shift(l, Opcode::kRcr); }
void lift_shld(Lifter& l) { double_shift(l, Opcode::kShld); }
void lift_shrd(Lifter& l) { double_shift(l, Opcode::kShrd); }

}  // namespace phybin::lift
