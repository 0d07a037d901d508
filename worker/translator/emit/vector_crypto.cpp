// AES, SHA and carry-less multiplication with the Armv8 Cryptographic Extension.
//
// AESE and AESD xor the key before the round and AESENC does it afterwards: so they get a zero key, and the real one
// is xored in at the end.
//
// SHA: x86 has the first word in the highest element, A64 in the lowest. SHA1RNDS4 adds the round constant itself.
// A64's SHA256H does four rounds where SHA256RNDS2 does two, but four rounds leave the result of two in C, D, G and
// H, whatever the last two message words are.
#include "worker/translator/emit/emitter.h"

namespace phybin::emit {

using a64::kB;
using a64::kD;
using a64::kS;
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
  e.a.ldr_literal128_v(kVecScratch0, index[0], index[1]);
  e.a.vtbl(true, 1, d, kVecScratch1, kVecScratch0);
  if (constant == 0) return;
  e.a.ldr_literal128_v(kVecScratch0, constant, constant);
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

namespace {

void reverse_elements(Emitter& e, Vec d, Vec n) {
  e.a.vrev64(true, kS, d, n);
  e.a.vext(true, d, d, d, 8);
}

}  // namespace

void emit_Sha1Rounds(Emitter& e, const Op& op) {
  static constexpr uint32_t kConstants[4] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
  const Vec a = e.use_vec(op.a), b = e.use_vec(op.b);
  const auto kind = static_cast<unsigned>(op.imm);
  const uint64_t twice = uint64_t{kConstants[kind]} << 32 | kConstants[kind];
  const Vec state = kVecScratch0, words = kVecScratch1, t = kVecScratch2;
  reverse_elements(e, words, b);
  e.a.ldr_literal128_v(t, twice, twice);
  e.a.vadd(true, kS, words, words, t);
  reverse_elements(e, state, a);
  e.a.movi(true, kB, t, 0);  // E is part of the first word
  if (kind == 0) {
    e.a.sha1c(state, t, words);
  } else if (kind == 2) {
    e.a.sha1m(state, t, words);
  } else {
    e.a.sha1p(state, t, words);
  }
  reverse_elements(e, e.def_vec(op), state);
}

void emit_Sha1NextE(Emitter& e, const Op& op) {
  const Vec a = e.use_vec(op.a), b = e.use_vec(op.b);
  e.a.dup_scalar(kS, kVecScratch0, a, 3);
  e.a.sha1h(kVecScratch0, kVecScratch0);
  e.a.movi(true, kB, kVecScratch1, 0);
  e.a.ins_elem(kS, kVecScratch1, 3, kVecScratch0, 0);
  e.a.vadd(true, kS, e.def_vec(op), b, kVecScratch1);
}

void emit_Sha256Rounds(Emitter& e, const Op& op) {
  const Vec a = e.use_vec(op.a), b = e.use_vec(op.b), words = e.use_vec(op.c);
  const Vec abcd = e.temporary_vec();
  e.a.vrev64(true, kS, kVecScratch0, b);  // E F A B
  e.a.vrev64(true, kS, kVecScratch1, a);  // G H C D
  e.a.vzip2(true, kD, abcd, kVecScratch0, kVecScratch1);
  e.a.vzip1(true, kD, kVecScratch1, kVecScratch0, kVecScratch1);
  e.a.vmov(true, kVecScratch0, abcd);
  e.a.sha256h(kVecScratch0, kVecScratch1, words);
  e.a.sha256h2(kVecScratch1, abcd, words);
  const Vec d = e.def_vec(op);
  e.a.vzip2(true, kD, d, kVecScratch1, kVecScratch0);
  e.a.vrev64(true, kS, d, d);
}

void emit_Sha256Schedule0(Emitter& e, const Op& op) {
  const Vec b = e.use_vec(op.b);
  e.a.sha256su0(e.def_vec(op), b);
}

// SHA256SU1 also adds words 9 to 12, which x86 does separately: with zeros for words 8 to 11 there remains word 12,
// the lowest of b, which is taken off before.
void emit_Sha256Schedule1(Emitter& e, const Op& op) {
  const Vec a = e.use_vec(op.a), b = e.use_vec(op.b);
  e.a.movi(true, kB, kVecScratch0, 0);
  e.a.vext(true, kVecScratch1, kVecScratch0, b, 4);
  e.a.vsub(true, kS, kVecScratch1, a, kVecScratch1);
  e.a.sha256su1(kVecScratch1, kVecScratch0, b);
  e.a.vmov(true, e.def_vec(op), kVecScratch1);
}

}  // namespace phybin::emit
