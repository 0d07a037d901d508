// MUL, IMUL, DIV, IDIV.
#include "worker/translator/lift/lift_functions.h"

namespace phybin::lift {

namespace {

constexpr ir::FlagMask kProductFlags = ir::kNzcv;  // SF and ZF are undefined

// RDX:RAX (or AX) = accumulator * operand.
void wide_multiply(Lifter& l, bool is_signed) {
  const uint8_t width = l.width(0);
  const ValueId y = l.read(0);
  const ValueId x = l.b.get_gpr(kRax);
  const auto overflow = [&](ValueId high, ValueId low) {
    l.b.op(Opcode::kMulOverflow, width, high, low, kNoValue, 0, is_signed ? 1 : 0, 0, kProductFlags);
  };
  const auto extend = [&](ValueId v) {
    return is_signed ? l.b.op(Opcode::kSignExtend, width, v, kNoValue, kNoValue, 0, width == 32 ? 64 : 32)
                     : l.b.op(Opcode::kMov, width, v);
  };
  if (width == 64) {
    const ValueId high = l.b.op(is_signed ? Opcode::kSMulHigh : Opcode::kUMulHigh, 64, x, y);
    const ValueId low = l.b.op(Opcode::kMul, 64, x, y);
    overflow(high, low);
    l.b.set_gpr(kRdx, high);
    l.b.set_gpr(kRax, low);
    return;
  }
  if (width == 32) {
    const ValueId wide_x = extend(x), wide_y = extend(y);
    const ValueId product = l.b.op(Opcode::kMul, 64, wide_x, wide_y);
    const ValueId high = l.b.op_imm(Opcode::kShiftRight, 64, product, 32);
    const ValueId low = l.b.op(Opcode::kMov, 32, product);
    overflow(high, low);
    l.b.set_gpr(kRdx, high);
    l.b.set_gpr(kRax, low);
    return;
  }
  const ValueId wide_x = extend(x), wide_y = extend(y);
  const ValueId product = l.b.op(Opcode::kMul, 32, wide_x, wide_y);
  overflow(product, kNoValue);
  if (width == 16) {
    l.write_gpr(kRdx, 16, l.b.op_imm(Opcode::kShiftRight, 32, product, 16));
    l.write_gpr(kRax, 16, product);
  } else {
    l.write_gpr(kRax, 16, product);
  }
}

}  // namespace

void lift_mul(Lifter& l) { wide_multiply(l, false); }

void lift_imul(Lifter& l) {
  if (l.in.operand_count == 1) {
    wide_multiply(l, true);
    return;
  }
  const uint8_t width = l.width(0);
  if (l.in.operand_count == 3) {
    const ValueId x = l.read(1);
    l.write_gpr(l.operand(0), l.b.op_imm(Opcode::kMul, width, x, l.in.imm, kProductFlags));
    return;
  }
  const ValueId y = l.read(1);
  const ValueId x = l.read_updated_gpr(l.operand(0));
  l.write_gpr(l.operand(0), l.b.op(Opcode::kMul, width, x, y, kNoValue, 0, 0, 0, kProductFlags));
}

void lift_div(Lifter& l) {
  const ValueId divisor = l.read(0);
  l.b.op(Opcode::kDivide, l.width(0), divisor, kNoValue, kNoValue, 0, 0, 0, ir::kAllFlags);
}

void lift_idiv(Lifter& l) {
  const ValueId divisor = l.read(0);
  l.b.op(Opcode::kDivide, l.width(0), divisor, kNoValue, kNoValue, 0, 1, 0, ir::kAllFlags);
}

}  // namespace phybin::lift
