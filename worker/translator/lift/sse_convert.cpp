// SSE and SSE2: conversions.
#include "worker/translator/lift/sse.h"

namespace phybin::lift {

// CVTDQ2PS, CVTPS2PD ...; `extra` 1: truncated.
void lift_convert_packed(Lifter& l) {
  const SseForm& form = form_of(l);
  write_operand(l, 0, vec(l, form.code, 128, form.element, read_operand(l, 1), kNoValue, 0, form.extra));
}

// CVTSS2SD, CVTSD2SS; `element` is the source's.
void lift_convert_scalar(Lifter& l) {
  const uint8_t element = form_of(l).element;
  const ValueId value =
      vec(l, Opcode::kFConvert, static_cast<uint8_t>(8u << element), element, read_scalar(l, 1, element));
  write_scalar(l, value, element == 2 ? 3 : 2);
}

// CVTSI2SS, CVTSI2SD.
void lift_convert_from_int(Lifter& l) {
  const uint8_t element = form_of(l).element;
  write_scalar(l, vec(l, Opcode::kFFromInt, l.width(1), element, l.read(1)), element);
}

// CVTSS2SI, CVTTSD2SI ...; `extra` 1: truncated.
void lift_convert_to_int(Lifter& l) {
  const SseForm& form = form_of(l);
  const uint8_t bits = l.width(0);
  const ValueId value =
      vec(l, Opcode::kFToInt, bits, form.element, read_scalar(l, 1, form.element), kNoValue, 0, form.extra);
  l.write_gpr(l.operand(0).reg, bits, value);
}

// CVTPI2PS, CVTPI2PD. They leave the x87 state alone when they read memory.
void lift_convert_from_mmx(Lifter& l) {
  const SseForm& form = form_of(l);
  const bool mmx = is_mmx(l, 1);
  const ValueId value = vec(l, form.code, form.element == 3 ? 128 : 64, 2, read_operand(l, 1));
  if (form.element == 3) {
    l.b.set_vec(l.operand(0).reg, value);
  } else {
    write_scalar(l, value, 3);
  }
  if (mmx) enter_mmx(l);
}

// CVTPS2PI, CVTTPD2PI ...
void lift_convert_to_mmx(Lifter& l) {
  const SseForm& form = form_of(l);
  const auto bits = static_cast<uint8_t>(form.element == 3 ? 128 : 64);
  write_operand(l, 0, vec(l, form.code, bits, form.element, read_operand(l, 1), kNoValue, 0, form.extra));
}

}  // namespace phybin::lift
