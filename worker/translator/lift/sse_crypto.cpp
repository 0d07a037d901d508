// AES-NI, PCLMULQDQ and SHA: only on hosts that have the like; CPUID announces them only there.
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

namespace {

bool has_sha(Lifter& l) {
  if (l.host.sha1 && l.host.sha2) return true;
  l.trap(ir::TrapKind::kInvalidOpcode);
  return false;
}

}  // namespace

// SHA1RNDS4, SHA1NEXTE, SHA256MSG1, SHA256MSG2.
void lift_sha(Lifter& l) {
  if (!has_sha(l)) return;
  const ValueId b = read_operand(l, 1);
  const ValueId a = read_operand(l, 0);
  write_operand(l, 0, vec(l, form_of(l).code, 128, 2, a, b, l.in.imm & 3));
}

void lift_sha256rnds2(Lifter& l) {
  if (!has_sha(l)) return;
  const ValueId b = read_operand(l, 1);
  const ValueId a = read_operand(l, 0);
  const ValueId words = l.b.get_vec(0);
  write_operand(l, 0, l.b.op(Opcode::kSha256Rounds, 128, a, b, words));
}

// W0 ^ W2, W1 ^ W3, W2 ^ W4, W3 ^ W5, the first in the highest element.
void lift_sha1msg1(Lifter& l) {
  if (!has_sha(l)) return;
  const ValueId b = read_operand(l, 1);
  const ValueId a = read_operand(l, 0);
  const ValueId later = vec(l, Opcode::kVecExt, 128, 2, b, a, 8);
  write_operand(l, 0, vec(l, Opcode::kVecXor, 128, 2, a, later));
}

// Each element of the first operand is combined with the word three steps earlier and rotated by one. The last of the
// four words needs the first one: what it lacks, that word rotated once more, is added at the end.
void lift_sha1msg2(Lifter& l) {
  if (!has_sha(l)) return;
  const ValueId b = read_operand(l, 1);
  const ValueId a = read_operand(l, 0);
  const auto rotate = [&](ValueId value) {
    const ValueId up = vec(l, Opcode::kVecShlImm, 128, 2, value, kNoValue, 1);
    const ValueId down = vec(l, Opcode::kVecShrImm, 128, 2, value, kNoValue, 31);
    return vec(l, Opcode::kVecOr, 128, 2, up, down);
  };
  const ValueId earlier = vec(l, Opcode::kVecShlBytes, 128, 0, b, kNoValue, 4);
  const ValueId words = rotate(vec(l, Opcode::kVecXor, 128, 2, a, earlier));
  const ValueId first = rotate(vec(l, Opcode::kVecShrBytes, 128, 0, words, kNoValue, 12));
  write_operand(l, 0, vec(l, Opcode::kVecXor, 128, 2, words, first));
}

}  // namespace phybin::lift
