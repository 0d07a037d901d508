// RCPPS and RSQRTPS, bit for bit as Intel's CPUs do them.
//
// The manual promises an error below 1.5 * 2^-12 only, but programs show what they get. The CPUs look up 2048 entries
// by the top of the significand, and each entry can be computed: it is the function's value in the middle of the
// entry's interval, rounded to 12 bits behind the point (compared over all significands and exponents; with a
// rounding mode other than to nearest two entries of RCPPS differ in the last bit). So: put the middle of the
// interval where the significand was and a fixed exponent above it, divide, round, and give the result its exponent
// and sign by integer arithmetic. Denormal operands count as zero and denormal results are zero, whatever MXCSR says.
// With --fast-math: the plain quotient.
#include "worker/translator/emit/emitter.h"

namespace phybin::emit {

using a64::kS;
using a64::Vec;
using ir::Op;

namespace {

void load_constant(Emitter& e, Vec d, uint32_t value) {
  const uint64_t twice = uint64_t{value} << 32 | value;
  e.a.ldr_literal128_v(d, twice, twice);
}

void fast(Emitter& e, const Op& op, bool root) {
  Vec source = e.use_vec(op.a);
  const Vec d = e.def_vec(op);
  const bool packed = op.width == 128;
  e.a.vfmov_imm(true, kS, kVecScratch0, 0x70);  // 1.0
  if (root) {
    packed ? e.a.vfsqrt(true, kS, kVecScratch1, source) : e.a.fsqrt(kS, kVecScratch1, source);
    source = kVecScratch1;
  }
  packed ? e.a.vfdiv(true, kS, d, kVecScratch0, source) : e.a.fdiv(kS, d, kVecScratch0, source);
}

void exact(Emitter& e, const Op& op, bool root) {
  const Vec x = e.use_vec(op.a);
  const Vec t = e.temporary_vec(), u = e.temporary_vec();
  const Vec r = kVecScratch0, exponent = kVecScratch1, mask = kVecScratch2;
  a64::Assembler& a = e.a;

  // The middle of the interval. For the root the lowest bit of the exponent belongs to the significand.
  load_constant(e, t, root ? 0x00ffe000 : 0x007ff000);
  a.vand(true, r, x, t);
  load_constant(e, t, root ? 0x3f001000 : 0x3f800800);
  a.vorr(true, r, r, t);
  // The quotient times 2^127 or 2^63, the greatest exponent of a result; rounded. The dividend is a little too small
  // so that no quotient is rounded up to the middle of two results.
  if (root) {
    a.vfsqrt(true, kS, r, r);
    a.movi(true, kS, t, 0x5f, 24);
  } else {
    load_constant(e, t, 0x7effffff);
  }
  a.vfdiv(true, kS, r, t, r);
  a.vurshr(true, kS, r, r, 11);
  a.vshl(true, kS, r, r, 11);
  // Less the operand's exponent (half of it).
  a.vshl(true, kS, u, x, 1);
  a.vushr(true, kS, exponent, u, 24);
  if (root) {
    a.vushr(true, kS, t, u, 25);
    a.vshl(true, kS, t, t, 23);
  } else {
    a.vshl(true, kS, t, exponent, 23);
  }
  a.vsub(true, kS, r, r, t);
  // Infinity, and what has a denormal reciprocal: zero.
  a.movi(true, kS, mask, root ? 254 : 252);
  a.vcmhi(true, kS, mask, exponent, mask);
  a.vbic(true, r, r, mask);
  if (root) {  // negative numbers: the default NaN
    load_constant(e, t, 0xffc00000);
    a.vcmlt_zero(true, kS, mask, x);
    a.vbit(true, r, t, mask);
  }
  // Zero: infinity. The sign is the operand's.
  a.vcmeq_zero(true, kS, mask, exponent);
  load_constant(e, t, 0x7f800000);
  a.vbit(true, r, t, mask);
  a.movi(true, kS, t, 0x80, 24);
  a.vbit(true, r, x, t);
  // NaNs (u: all but the sign, shifted left): the operand, quiet.
  a.movi(true, kS, t, 0xff, 24);
  a.vcmhi(true, kS, mask, u, t);
  a.movi(true, kS, t, 0x40, 16);
  a.vorr(true, t, x, t);
  a.vbit(true, r, t, mask);
  a.vmov(true, e.def_vec(op), r);
}

}  // namespace

void emit_FReciprocal(Emitter& e, const Op& op) { e.options.fast_math ? fast(e, op, false) : exact(e, op, false); }
void emit_FReciprocalSqrt(Emitter& e, const Op& op) { e.options.fast_math ? fast(e, op, true) : exact(e, op, true); }

}  // namespace phybin::emit
