// MMX to SSE4.1: shuffles and blends.
#include "worker/translator/lift/sse.h"

namespace phybin::lift {

// PSHUFD, PSHUFW, PSHUFLW, PSHUFHW (`extra`: the half).
void lift_shuffle(Lifter& l) {
  const SseForm& form = form_of(l);
  const uint8_t bits = vector_bits(l);
  write_operand(l, 0,
                vec(l, form.code, bits, form.element, read_operand(l, 1), kNoValue, l.in.imm & 0xff, form.extra));
}

void lift_shufps(Lifter& l) {
  const ValueId b = read_operand(l, 1);
  const ValueId a = read_operand(l, 0);
  write_operand(l, 0, vec(l, Opcode::kVecShufflePair, 128, 2, a, b, l.in.imm & 0xff));
}

void lift_shufpd(Lifter& l) {
  const ValueId b = read_operand(l, 1);
  const ValueId a = read_operand(l, 0);
  ValueId r = kNoValue;
  switch (l.in.imm & 3) {
    case 0:
      r = vec(l, Opcode::kVecZipLow, 128, 3, a, b);
      break;
    case 1:
      r = vec(l, Opcode::kVecExt, 128, 3, a, b, 8);
      break;
    case 2:
      r = vec(l, Opcode::kVecInsert, 128, 3, a, b, 1, 1);
      break;
    default:
      r = vec(l, Opcode::kVecZipHigh, 128, 3, a, b);
      break;
  }
  write_operand(l, 0, r);
}

// Bytes imm... of the first operand above the second.
void lift_palignr(Lifter& l) {
  const uint8_t bits = vector_bits(l);
  const int64_t bytes = bits / 8;
  const int64_t count = l.in.imm & 0xff;
  const ValueId b = read_operand(l, 1);
  const ValueId a = read_operand(l, 0);
  ValueId r;
  if (count < bytes) {
    r = vec(l, Opcode::kVecExt, bits, 0, b, a, count);
  } else if (count == bytes) {
    r = a;
  } else if (count < 2 * bytes) {
    r = bits == 64 ? vec(l, Opcode::kVecShrImm, 64, 3, a, kNoValue, 8 * (count - bytes))
                   : vec(l, Opcode::kVecShrBytes, 128, 0, a, kNoValue, count - bytes);
  } else {
    r = vec_zero(l);
  }
  write_operand(l, 0, r);
}

// BLENDPS, BLENDPD, PBLENDW: elements of the second operand where the immediate has ones.
void lift_blend_imm(Lifter& l) {
  const uint8_t element = form_of(l).element;
  const int64_t all = (int64_t{1} << (16 >> element)) - 1;
  const int64_t chosen = l.in.imm & all;
  const ValueId b = read_operand(l, 1);
  const ValueId a = read_operand(l, 0);
  ValueId r;
  if (chosen == 0) {
    r = a;
  } else if (chosen == all) {
    r = b;
  } else if (const auto place = static_cast<uint8_t>(__builtin_ctzll(static_cast<uint64_t>(chosen)));
             chosen == int64_t{1} << place) {
    r = vec(l, Opcode::kVecInsert, 128, element, a, b, place, place);
  } else {
    const ValueId mask = l.b.op(Opcode::kVecMask, 128, kNoValue, kNoValue, kNoValue, chosen, element);
    r = l.b.op(Opcode::kVecBlend, 128, mask, b, a);
  }
  write_operand(l, 0, r);
}

// BLENDVPS, BLENDVPD, PBLENDVB: elements of the second operand where those of XMM0 are negative.
void lift_blend_variable(Lifter& l) {
  const uint8_t element = form_of(l).element;
  const ValueId b = read_operand(l, 1);
  const ValueId a = read_operand(l, 0);
  const ValueId mask =
      vec(l, Opcode::kVecSarImm, 128, element, l.b.get_vec(0), kNoValue, (int64_t{8} << element) - 1);
  write_operand(l, 0, l.b.op(Opcode::kVecBlend, 128, mask, b, a));
}

// MPSADBW.
void lift_vec_binary_imm(Lifter& l) {
  const SseForm& form = form_of(l);
  const ValueId b = read_operand(l, 1);
  const ValueId a = read_operand(l, 0);
  write_operand(l, 0, vec(l, form.code, 128, form.element, a, b, l.in.imm));
}

}  // namespace phybin::lift
