// BMI1, BMI2 and RDRAND.
//
// Flags that do not come out of one A64 instruction are put together as a number in RFLAGS layout; where nobody reads
// them, all of that is dead code.
#include "worker/translator/lift/lift_functions.h"

namespace phybin::lift {

using decode::Mnemonic;
using ir::AfKind;
using ir::kNzcv;

namespace {

uint8_t log2_of(uint8_t width) { return width == 16 ? 4 : width == 32 ? 5 : 6; }

ValueId zero_extended(Lifter& l, ValueId value, uint8_t width) {
  return width == 64 ? value : l.b.op(Opcode::kMov, width, value);
}

// 1 if the value (zero-extended, `width` 32 or 64) is 0, else 0.
ValueId is_zero(Lifter& l, ValueId value, uint8_t width) {
  return l.b.op_imm(Opcode::kShiftRight, width, l.b.op(Opcode::kCLZ, width, value), log2_of(width));
}

// SF and ZF of `result`, CF = `carry` (0 or 1), OF = 0; the others are undefined.
void set_flags(Lifter& l, ValueId result, uint8_t width, ValueId carry) {
  ValueId flags = l.b.op_imm(Opcode::kShiftRight, width, result, width - 1);
  flags = l.b.op_imm(Opcode::kShiftLeft, 32, flags, 1);
  flags = l.b.op(Opcode::kOr, 32, flags, is_zero(l, result, width));
  flags = l.b.op_imm(Opcode::kShiftLeft, 32, flags, 6);
  flags = l.b.op(Opcode::kOr, 32, flags, carry);
  l.b.op(Opcode::kSetNzcv, 32, flags, kNoValue, kNoValue, 0, 0, 0, kNzcv);
}

void compare_with_zero(Lifter& l, ValueId result, uint8_t width) {
  l.b.op(Opcode::kSub, width, result, kNoValue, kNoValue, 0, 0, 0, kNzcv);
}

// All ones if the value is 0 (64 bits), else all zeros.
ValueId all_ones_if_zero(Lifter& l, ValueId value) {
  const ValueId less = l.b.op_imm(Opcode::kSub, 64, value, 1);
  // Values are small: only 0 - 1 is negative.
  return l.b.op_imm(Opcode::kShiftRightSigned, 64, less, 63);
}

// The `count` lowest bits set, for counts of 0 to 255; all 64 from 64 on.
ValueId low_mask(Lifter& l, ValueId count) {
  const ValueId bit = l.b.op(Opcode::kShiftLeft, 64, l.b.constant(1), count);
  const ValueId mask = l.b.op_imm(Opcode::kSub, 64, bit, 1);
  const ValueId in_range = all_ones_if_zero(l, l.b.op_imm(Opcode::kShiftRight, 64, count, 6));
  return l.b.op(Opcode::kOr, 64, mask, l.b.op(Opcode::kNot, 64, in_range));
}

ValueId call_light(Lifter& l, LightHelper helper, ValueId a, ValueId b, ValueId c = kNoValue) {
  return l.b.op(Opcode::kCallHelper, 64, a, b, c, static_cast<int64_t>(helper));
}

}  // namespace

void lift_andn(Lifter& l) {
  const ValueId x = l.read_gpr(l.operand(1));
  const ValueId y = l.read(2);
  l.write_gpr(l.operand(0), l.b.op(Opcode::kAndNot, l.width(0), y, x, kNoValue, 0, 0, 0, kNzcv));
}

// BLSR, BLSMSK, BLSI.
void lift_lowest_bit(Lifter& l) {
  const uint8_t width = l.width(0);
  const ValueId x = zero_extended(l, l.read(1), width);
  ValueId carry = is_zero(l, x, width);
  ValueId result;
  if (l.in.mnemonic == Mnemonic::kBlsi) {
    result = l.b.op(Opcode::kAnd, width, x, l.b.op(Opcode::kNeg, width, x));
    carry = l.b.op_imm(Opcode::kXor, 32, carry, 1);
  } else {
    const ValueId less = l.b.op_imm(Opcode::kSub, width, x, 1);
    result = l.b.op(l.in.mnemonic == Mnemonic::kBlsr ? Opcode::kAnd : Opcode::kXor, width, x, less);
  }
  set_flags(l, result, width, carry);
  l.write_gpr(l.operand(0), result);
}

void lift_bextr(Lifter& l) {
  const uint8_t width = l.width(0);
  const ValueId x = zero_extended(l, l.read(1), width);
  const ValueId control = l.read_gpr(l.operand(2));
  const ValueId start = l.b.op(Opcode::kExtract, 8, control);
  const ValueId length = l.b.op(Opcode::kExtract, 8, control, kNoValue, kNoValue, 0, 8);
  const ValueId in_range = all_ones_if_zero(l, l.b.op_imm(Opcode::kShiftRight, 64, start, 6));
  ValueId result = l.b.op(Opcode::kAnd, 64, l.b.op(Opcode::kShiftRight, 64, x, start), in_range);
  result = l.b.op(Opcode::kAnd, width, result, low_mask(l, length));
  compare_with_zero(l, result, width);
  l.write_gpr(l.operand(0), result);
}

void lift_bzhi(Lifter& l) {
  const uint8_t width = l.width(0);
  const ValueId x = l.read(1);
  const ValueId index = l.b.op(Opcode::kExtract, 8, l.read_gpr(l.operand(2)));
  const ValueId result = l.b.op(Opcode::kAnd, width, x, low_mask(l, index));
  const ValueId above = l.b.op_imm(Opcode::kShiftRight, 64, index, log2_of(width));
  set_flags(l, result, width, l.b.op_imm(Opcode::kXor, 32, is_zero(l, above, 32), 1));
  l.write_gpr(l.operand(0), result);
}

void lift_mulx(Lifter& l) {
  const uint8_t width = l.width(0);
  const ValueId y = l.read(2);
  const ValueId x = l.b.get_gpr(kRdx);
  ValueId low, high;
  if (width == 64) {
    high = l.b.op(Opcode::kUMulHigh, 64, x, y);
    low = l.b.op(Opcode::kMul, 64, x, y);
  } else {
    const ValueId wide_x = zero_extended(l, x, 32);
    const ValueId wide_y = zero_extended(l, y, 32);
    const ValueId product = l.b.op(Opcode::kMul, 64, wide_x, wide_y);
    high = l.b.op_imm(Opcode::kShiftRight, 64, product, 32);
    low = l.b.op(Opcode::kMov, 32, product);
  }
  // With one register for both halves the high one stays.
  l.b.set_gpr(l.operand(1).reg, low);
  l.b.set_gpr(l.operand(0).reg, high);
}

// RORX, SARX, SHLX, SHRX: no flags, counts modulo the width.
void lift_shift_without_flags(Lifter& l) {
  const uint8_t width = l.width(0);
  const ValueId x = l.read(1);
  if (l.in.mnemonic == Mnemonic::kRorx) {
    l.write_gpr(l.operand(0), l.b.op_imm(Opcode::kRotateRight, width, x, l.in.imm & (width - 1)));
    return;
  }
  const Opcode code = l.in.mnemonic == Mnemonic::kSarx   ? Opcode::kShiftRightSigned
                      : l.in.mnemonic == Mnemonic::kShlx ? Opcode::kShiftLeft
                                                         : Opcode::kShiftRight;
  l.write_gpr(l.operand(0), l.b.op(code, width, x, l.read_gpr(l.operand(2))));
}

void lift_pdep_pext(Lifter& l) {
  const uint8_t width = l.width(0);
  const LightHelper helper = l.in.mnemonic == Mnemonic::kPdep ? LightHelper::k_pdep : LightHelper::k_pext;
  const ValueId mask = zero_extended(l, l.read(2), width);
  const ValueId x = zero_extended(l, l.read_gpr(l.operand(1)), width);
  l.write_gpr(l.operand(0), call_light(l, helper, x, mask));
}

// CF = 1: a random number is always there; the other flags become 0.
void lift_rdrand(Lifter& l) {
  const ValueId value = call_light(l, LightHelper::k_random, kNoValue, kNoValue);
  l.b.op(Opcode::kSetNzcv, 32, l.b.constant(1), kNoValue, kNoValue, 0, 0, 0, kNzcv);
  l.b.set_af(AfKind::kPlain, kNoValue, kNoValue, 0);
  l.b.set_pf(l.b.constant(1));
  l.write_gpr(l.operand(0), value);
}

}  // namespace phybin::lift
