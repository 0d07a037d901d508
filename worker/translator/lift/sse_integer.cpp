// MMX to SSE4.1: packed integer operations.
#include "worker/translator/lift/sse.h"

namespace phybin::lift {

namespace {

bool same_register(const Lifter& l) {
  return is_register(l, 1) && l.operand(0).kind == l.operand(1).kind && l.operand(0).reg == l.operand(1).reg;
}

}  // namespace

// PADDB ... PSADBW: element-wise, or whatever the operation says. `extra` 1: of a register with itself it is zero.
void lift_vec_binary(Lifter& l) {
  const SseForm& form = form_of(l);
  const uint8_t bits = vector_bits(l);
  if (form.extra == 1 && same_register(l)) return write_operand(l, 0, vec_zero(l));
  const bool low_halves = form.code == Opcode::kVecZipLow && form.element == 3;
  const ValueId b = low_halves ? read_scalar(l, 1, 3) : read_operand(l, 1);
  const ValueId a = low_halves ? read_scalar(l, 0, 3) : read_operand(l, 0);
  write_operand(l, 0, vec(l, form.code, bits, form.element, a, b));
}

// PANDN, ANDNPS: the complement is of the first operand.
void lift_vec_and_not(Lifter& l) {
  const uint8_t bits = vector_bits(l);
  const ValueId b = read_operand(l, 1);
  const ValueId a = read_operand(l, 0);
  write_operand(l, 0, vec(l, Opcode::kVecAndNot, bits, 0, b, a));
}

void lift_vec_unary(Lifter& l) {
  const SseForm& form = form_of(l);
  const uint8_t bits = vector_bits(l);
  write_operand(l, 0, vec(l, form.code, bits, form.element, read_operand(l, 1)));
}

// By an immediate or by the low 64 bits of a vector. Counts from the element size on: zeros, or sign bits.
void lift_vec_shift(Lifter& l) {
  const SseForm& form = form_of(l);  // code: the immediate's operation
  const uint8_t bits = vector_bits(l);
  if (l.operand(1).kind != decode::OperandKind::kImmediate) {
    const Opcode by_vector = form.code == Opcode::kVecShlImm   ? Opcode::kVecShl
                             : form.code == Opcode::kVecShrImm ? Opcode::kVecShr
                                                               : Opcode::kVecSar;
    const ValueId count = read_operand(l, 1);
    return write_operand(l, 0, vec(l, by_vector, bits, form.element, read_operand(l, 0), count));
  }
  const int64_t element_bits = int64_t{8} << form.element;
  int64_t count = l.in.imm & 0xff;
  ValueId value = read_operand(l, 0);
  if (count >= element_bits && form.code != Opcode::kVecSarImm) {
    value = vec_zero(l);
  } else if (count != 0) {
    if (count >= element_bits) count = element_bits - 1;
    value = vec(l, form.code, bits, form.element, value, kNoValue, count);
  }
  write_operand(l, 0, value);
}

// PSLLDQ, PSRLDQ.
void lift_vec_shift_bytes(Lifter& l) {
  const int64_t count = l.in.imm & 0xff;
  if (count == 0) return;
  write_operand(l, 0,
                count > 15 ? vec_zero(l) : vec(l, form_of(l).code, 128, 0, read_operand(l, 0), kNoValue, count));
}

// PHADDW, PHSUBSW ...: even elements with odd ones.
void lift_horizontal_integer(Lifter& l) {
  const SseForm& form = form_of(l);
  const uint8_t bits = vector_bits(l);
  const ValueId b = read_operand(l, 1);
  const ValueId a = read_operand(l, 0);
  const ValueId even = vec(l, Opcode::kVecUnzipEven, bits, form.element, a, b);
  const ValueId odd = vec(l, Opcode::kVecUnzipOdd, bits, form.element, a, b);
  write_operand(l, 0, vec(l, form.code, bits, form.element, even, odd));
}

// PSIGNB ...: the first operand, negated where the second is negative, zero where that is zero.
void lift_sign(Lifter& l) {
  const uint8_t element = form_of(l).element;
  const uint8_t bits = vector_bits(l);
  const ValueId b = read_operand(l, 1);
  const ValueId a = read_operand(l, 0);
  const ValueId negative = vec(l, Opcode::kVecSarImm, bits, element, b, kNoValue, (int64_t{8} << element) - 1);
  const ValueId zero = vec(l, Opcode::kVecCmpEq, bits, element, b, vec_zero(l));
  const ValueId flipped = vec(l, Opcode::kVecXor, bits, element, a, negative);
  const ValueId value = vec(l, Opcode::kVecSub, bits, element, flipped, negative);
  write_operand(l, 0, vec(l, Opcode::kVecAndNot, bits, element, value, zero));
}

// PMOVSXBW ... PMOVZXDQ: from size `element` to size `extra`.
void lift_extend(Lifter& l) {
  const SseForm& form = form_of(l);
  const ValueId source = l.is_memory(1) && l.width(1) == 16
                             ? l.b.op(Opcode::kVecFromInt, 32, l.load(l.memory_address(), 16))
                             : read_operand(l, 1);
  write_operand(l, 0, vec(l, form.code, 128, form.element, source, kNoValue, 0, form.extra));
}

void lift_ptest(Lifter& l) {
  const ValueId b = read_operand(l, 1);
  const ValueId a = read_operand(l, 0);
  const ValueId odd_parity = l.b.constant(1);
  l.b.set_af(ir::AfKind::kPlain, kNoValue, kNoValue);
  l.b.op(Opcode::kVecTest, 128, a, b, kNoValue, 0, 0, 0, ir::kNzcv);
  l.b.set_pf(odd_parity);
}

}  // namespace phybin::lift
