// SSE to SSE4.1: floating-point arithmetic, comparison, rounding.
#include "worker/translator/lift/sse.h"

namespace phybin::lift {

namespace {

uint8_t scalar_bits(uint8_t element) { return static_cast<uint8_t>(8u << element); }

ValueId packed_arithmetic(Lifter& l, Opcode code, uint8_t element, ValueId a, ValueId b) {
  return with_x86_nan(l, 128, element, vec(l, code, 128, element, a, b), a, b);
}

}  // namespace

// ADDPS ... DIVPD.
void lift_float_packed(Lifter& l) {
  const SseForm& form = form_of(l);
  const ValueId b = read_operand(l, 1);
  write_operand(l, 0, packed_arithmetic(l, form.code, form.element, l.b.get_vec(l.operand(0).reg), b));
}

void lift_float_scalar(Lifter& l) {
  const SseForm& form = form_of(l);
  const uint8_t bits = scalar_bits(form.element);
  const ValueId b = read_scalar(l, 1, form.element);
  const ValueId a = read_scalar(l, 0, form.element);
  write_scalar(l, with_x86_nan(l, bits, form.element, vec(l, form.code, bits, form.element, a, b), a, b),
               form.element);
}

// SQRTPS, RSQRTPS, RCPPS ...: `extra` says that an invalid operation can make a NaN.
void lift_float_unary_packed(Lifter& l) {
  const SseForm& form = form_of(l);
  const ValueId a = read_operand(l, 1);
  ValueId r = vec(l, form.code, 128, form.element, a);
  if (form.extra != 0) r = with_x86_nan(l, 128, form.element, r, a);
  write_operand(l, 0, r);
}

void lift_float_unary_scalar(Lifter& l) {
  const SseForm& form = form_of(l);
  const uint8_t bits = scalar_bits(form.element);
  const ValueId a = read_scalar(l, 1, form.element);
  ValueId r = vec(l, form.code, bits, form.element, a);
  if (form.extra != 0) r = with_x86_nan(l, bits, form.element, r, a);
  write_scalar(l, r, form.element);
}

void lift_minmax_packed(Lifter& l) {
  const SseForm& form = form_of(l);
  const ValueId b = read_operand(l, 1);
  write_operand(l, 0, vec(l, form.code, 128, form.element, l.b.get_vec(l.operand(0).reg), b));
}

void lift_minmax_scalar(Lifter& l) {
  const SseForm& form = form_of(l);
  const ValueId b = read_scalar(l, 1, form.element);
  const ValueId a = read_scalar(l, 0, form.element);
  write_scalar(l, vec(l, form.code, scalar_bits(form.element), form.element, a, b), form.element);
}

void lift_compare_packed(Lifter& l) {
  const uint8_t element = form_of(l).element;
  const ValueId b = read_operand(l, 1);
  const ValueId a = l.b.get_vec(l.operand(0).reg);
  write_operand(l, 0, vec(l, Opcode::kFCompareMask, 128, element, a, b, 0, static_cast<uint8_t>(l.in.imm & 7)));
}

void lift_compare_scalar(Lifter& l) {
  const uint8_t element = form_of(l).element;
  const ValueId b = read_scalar(l, 1, element);
  const ValueId a = read_scalar(l, 0, element);
  write_scalar(
      l, vec(l, Opcode::kFCompareMask, scalar_bits(element), element, a, b, 0, static_cast<uint8_t>(l.in.imm & 7)),
      element);
}

// UCOMISD, COMISD (`extra` 1).
void lift_comis(Lifter& l) {
  const SseForm& form = form_of(l);
  const ValueId b = read_scalar(l, 1, form.element);
  const ValueId a = read_scalar(l, 0, form.element);
  l.b.op(Opcode::kFCompare, scalar_bits(form.element), a, b, kNoValue, 0, form.element, form.extra, ir::kAllFlags);
}

// HADDPS, HSUBPD ...: even elements with odd ones.
void lift_horizontal_float(Lifter& l) {
  const SseForm& form = form_of(l);
  const ValueId b = read_operand(l, 1);
  const ValueId a = l.b.get_vec(l.operand(0).reg);
  const ValueId even = vec(l, Opcode::kVecUnzipEven, 128, form.element, a, b);
  const ValueId odd = vec(l, Opcode::kVecUnzipOdd, 128, form.element, a, b);
  write_operand(l, 0, packed_arithmetic(l, form.code, form.element, even, odd));
}

// ADDSUBPS, ADDSUBPD: differences in the even elements, sums in the odd ones. Either operation sees zeros in the
// other's places, so that it raises no exceptions there.
void lift_addsub(Lifter& l) {
  const uint8_t element = form_of(l).element;
  const ValueId b = read_operand(l, 1);
  const ValueId a = l.b.get_vec(l.operand(0).reg);
  const ValueId even = l.b.op(Opcode::kVecMask, 128, kNoValue, kNoValue, kNoValue, 0x55, element);
  const auto binary = [&](Opcode code, ValueId x, ValueId y) { return vec(l, code, 128, element, x, y); };
  const ValueId even_a = binary(Opcode::kVecAnd, a, even), even_b = binary(Opcode::kVecAnd, b, even);
  const ValueId differences = binary(Opcode::kFSub, even_a, even_b);
  const ValueId odd_a = binary(Opcode::kVecAndNot, a, even), odd_b = binary(Opcode::kVecAndNot, b, even);
  const ValueId sums = binary(Opcode::kFAdd, odd_a, odd_b);
  const ValueId result = l.b.op(Opcode::kVecBlend, 128, even, differences, sums);
  write_operand(l, 0, with_x86_nan(l, 128, element, result, a, b));
}

void lift_round_packed(Lifter& l) {
  const uint8_t element = form_of(l).element;
  write_operand(
      l, 0,
      vec(l, Opcode::kFRound, 128, element, read_operand(l, 1), kNoValue, 0, static_cast<uint8_t>(l.in.imm & 15)));
}

void lift_round_scalar(Lifter& l) {
  const uint8_t element = form_of(l).element;
  write_scalar(l,
               vec(l, Opcode::kFRound, scalar_bits(element), element, read_scalar(l, 1, element), kNoValue, 0,
                   static_cast<uint8_t>(l.in.imm & 15)),
               element);
}

// DPPS, DPPD: products of the elements chosen by imm[7:4], their sum where imm[3:0] has ones. Elements that are not
// chosen raise no exceptions: zero times zero. In which order the CPU adds shows in which NaN wins: every element has
// a sum of its own that starts from its own product, first with its neighbour's, then (DPPS) with that of its mirror
// image.
void lift_dot_product(Lifter& l) {
  const uint8_t element = form_of(l).element;
  const int64_t all = element == 2 ? 15 : 3;
  const auto keep = [&](ValueId value, int64_t elements) {
    if (elements == all) return value;
    if (elements == 0) return vec_zero(l);
    const ValueId ones = l.b.op(Opcode::kVecMask, 128, kNoValue, kNoValue, kNoValue, elements, element);
    return vec(l, Opcode::kVecAnd, 128, element, value, ones);
  };
  const int64_t chosen = l.in.imm >> 4 & all;
  const ValueId b = keep(read_operand(l, 1), chosen);
  const ValueId a = keep(l.b.get_vec(l.operand(0).reg), chosen);
  const auto shuffled = [&](ValueId value, int64_t pattern) {
    return vec(l, Opcode::kVecShuffle32, 128, 2, value, kNoValue, pattern);
  };
  ValueId sum = packed_arithmetic(l, Opcode::kFMul, element, a, b);
  if (element == 2) sum = packed_arithmetic(l, Opcode::kFAdd, element, shuffled(sum, 0xb1), sum);  // 1, 0, 3, 2
  sum = packed_arithmetic(l, Opcode::kFAdd, element, sum, shuffled(sum, 0x4e));                    // the other half
  write_operand(l, 0, keep(sum, l.in.imm & all));
}

}  // namespace phybin::lift
