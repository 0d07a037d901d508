// AES and carry-less multiplication with the Armv8 Cryptographic Extension.
//
// AESE and AESD xor the key before the round and AESENC does it afterwards: so they get a zero key, and the real one
// is xored in at the end.
#include "worker/translator/emit/emitter.h"

namespace phybin::emit {

using a64::kB;
using a64::kD;
using a64::kQ;
using a64::Vec;
using ir::Op;

void emit_AesRound(Emitter& e, const Op& op) {
  const bool decrypt = (op.aux2 & 2) != 0, last = (op.aux2 & 1) != 0;
  const Vec key = e.use_vec(op.b);
  const Vec d = e.def_vec(op);
  e.a.movi(true, kB, kVecScratch0, 0);
  if (decrypt) {
    e.a.aesd(d, kVecScratch0);
    if (!last) e.a.aesimc(d, d);
  } else {
    e.a.aese(d, kVecScratch0);
    if (!last) e.a.aesmc(d, d);
  }
  e.a.veor(true, d, d, key);
}

void emit_AesInverseMix(Emitter& e, const Op& op) {
  const Vec a = e.use_vec(op.a);
  e.a.aesimc(e.def_vec(op), a);
}

// AESE substitutes and moves the byte of row r in column c to column c - r. The words wanted are SubWord of columns 1
// and 3, plain and rotated by one row; the rotated ones are xored with the round constant.
void emit_AesKeyGenAssist(Emitter& e, const Op& op) {
  const Vec a = e.use_vec(op.a);
  const Vec d = e.def_vec(op);
  uint64_t index[2] = {0, 0};
  for (unsigned i = 0; i < 16; ++i) {
    const unsigned column = i < 8 ? 1 : 3;
    const unsigned row = (i + (i >> 2 & 1)) & 3;
    index[i / 8] |= uint64_t{4 * ((column - row) & 3) + row} << 8 * (i & 7);
  }
  const auto constant = static_cast<uint64_t>(op.imm) << 32;
  e.a.movi(true, kB, kVecScratch0, 0);
  e.a.vmov(true, kVecScratch1, a);
  e.a.aese(kVecScratch1, kVecScratch0);
  e.a.ldr_literal_v(kQ, kVecScratch0, e.a.literal128(index[0], index[1]));
  e.a.vtbl(true, 1, d, kVecScratch1, kVecScratch0);
  if (constant == 0) return;
  e.a.ldr_literal_v(kQ, kVecScratch0, e.a.literal128(constant, constant));
  e.a.veor(true, d, d, kVecScratch0);
}

void emit_CarrylessMul(Emitter& e, const Op& op) {
  Vec a = e.use_vec(op.a), b = e.use_vec(op.b);
  const Vec d = e.def_vec(op);
  const bool high_a = (op.imm & 1) != 0, high_b = (op.imm & 0x10) != 0;
  if (high_a != high_b) {
    Vec& high = high_a ? a : b;
    e.a.dup_scalar(kD, kVecScratch0, high, 1);
    high = kVecScratch0;
  }
  e.a.vpmull(high_a && high_b, kD, d, a, b);
}

}  // namespace phybin::emit
