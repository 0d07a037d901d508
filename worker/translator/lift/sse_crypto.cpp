// AES-NI and PCLMULQDQ: only on hosts that have the like; CPUID announces them only there.
#include "worker/translator/lift/sse.h"

namespace phybin::lift {

// AESENC ... AESDECLAST (`extra` as kAesRound's aux2).
void lift_aes_round(Lifter& l) {
  if (!l.host.aes) return l.trap(ir::TrapKind::kInvalidOpcode);
  const ValueId key = read_operand(l, 1);
  write_operand(l, 0, vec(l, Opcode::kAesRound, 128, 0, read_operand(l, 0), key, 0, form_of(l).extra));
}

// AESIMC, AESKEYGENASSIST.
void lift_aes_unary(Lifter& l) {
  if (!l.host.aes) return l.trap(ir::TrapKind::kInvalidOpcode);
  write_operand(l, 0, vec(l, form_of(l).code, 128, 0, read_operand(l, 1), kNoValue, l.in.imm & 0xff));
}

void lift_pclmulqdq(Lifter& l) {
  if (!l.host.pmull) return l.trap(ir::TrapKind::kInvalidOpcode);
  lift_vec_binary_imm(l);
}

}  // namespace phybin::lift
