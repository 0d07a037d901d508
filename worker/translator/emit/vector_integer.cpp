// Packed integer operations.
//
// Nearly all are one NEON instruction of the same meaning; the others are the shortest sequences known for those x86
// operations that NEON lacks. `q` is true for 128 bits: MMX operations run on the lower halves of vector registers.
// An expansion that would destroy an operand before its last use builds its result in a scratch register.
#include "worker/translator/emit/emitter.h"

namespace phybin::emit {

using a64::Gpr;
using a64::kB;
using a64::kD;
using a64::kH;
using a64::kS;
using a64::Size;
using a64::Vec;
using ir::Op;

namespace {

bool is_q(const Op& op) { return op.width == 128; }

struct Binary {
  Binary(Emitter& e, const Op& op) : a(e.use_vec(op.a)), b(e.use_vec(op.b)), d(e.def_vec(op)), q(is_q(op)) {}
  Vec a, b, d;
  bool q;
};

struct Unary {
  Unary(Emitter& e, const Op& op) : a(e.use_vec(op.a)), d(e.def_vec(op)), q(is_q(op)) {}
  Vec a, d;
  bool q;
};

using VectorThree = void (a64::Assembler::*)(bool, Size, Vec, Vec, Vec);

// Products of 16-bit elements, all eight (or the low four) of them: low half and high half in the scratch registers.
void multiply_16(Emitter& e, const Binary& r, bool is_signed) {
  const VectorThree multiply = is_signed ? static_cast<VectorThree>(&a64::Assembler::vsmull)
                                         : static_cast<VectorThree>(&a64::Assembler::vumull);
  (e.a.*multiply)(false, kH, kVecScratch0, r.a, r.b);
  if (r.q) (e.a.*multiply)(true, kH, kVecScratch1, r.a, r.b);
}

void multiply_high(Emitter& e, const Op& op, bool is_signed) {
  const Binary r(e, op);
  multiply_16(e, r, is_signed);
  if (r.q) {
    e.a.vuzp2(true, kH, r.d, kVecScratch0, kVecScratch1);
  } else {
    e.a.vshrn(false, kH, r.d, kVecScratch0, 16);
  }
}

void multiply_even(Emitter& e, const Op& op, bool is_signed) {
  const Binary r(e, op);
  Vec x = r.a, y = r.b;
  if (r.q) {  // with 64 bits the only even element is at its place
    e.a.vxtn(false, kS, kVecScratch0, r.a);
    x = kVecScratch0;
    y = x;
    if (r.b != r.a) {
      e.a.vxtn(false, kS, kVecScratch1, r.b);
      y = kVecScratch1;
    }
  }
  if (is_signed) {
    e.a.vsmull(false, kS, r.d, x, y);
  } else {
    e.a.vumull(false, kS, r.d, x, y);
  }
}

void pack(Emitter& e, const Op& op, bool is_signed) {
  const Binary r(e, op);
  const Size narrow(op.aux - 1);
  const auto narrow_half = [&](bool high, Vec d, Vec n) {
    if (is_signed) {
      e.a.vsqxtn(high, narrow, d, n);
    } else {
      e.a.vsqxtun(high, narrow, d, n);
    }
  };
  if (!r.q) {
    e.a.vzip1(true, kD, kVecScratch0, r.a, r.b);
    narrow_half(false, r.d, kVecScratch0);
    return;
  }
  const bool through_scratch = r.d == r.b && r.a != r.b;
  const Vec d = through_scratch ? kVecScratch0 : r.d;
  if (r.a == r.b) {
    narrow_half(false, kVecScratch0, r.a);
    e.a.vzip1(true, kD, r.d, kVecScratch0, kVecScratch0);
    return;
  }
  narrow_half(false, d, r.a);
  narrow_half(true, d, r.b);
  if (through_scratch) e.a.vmov(true, r.d, d);
}

void extend(Emitter& e, const Op& op, bool is_signed) {
  const Unary r(e, op);
  Vec from = r.a;
  for (unsigned size = op.aux; size < op.aux2; ++size) {
    if (is_signed) {
      e.a.vsxtl(false, size, r.d, from);
    } else {
      e.a.vuxtl(false, size, r.d, from);
    }
    from = r.d;
  }
}

// x86 counts are 64-bit numbers and whatever is not below the element size shifts everything out; SSHL and USHL take
// a signed byte in each element and do the same for any value of it. So: clamp the count to 127 by a saturating shift
// to the top and back, negate it for right shifts, copy it to all elements.
void shift_by_vector(Emitter& e, const Op& op, bool right, bool is_signed) {
  const Binary r(e, op);
  const Size size(op.aux);
  e.a.vuqshl_imm(true, kD, kVecScratch0, r.b, 57);
  e.a.ushr_scalar(kVecScratch0, kVecScratch0, 57);
  if (right) e.a.neg_scalar(kVecScratch0, kVecScratch0);
  if (r.q || size.log2 < 3) e.a.vdup_elem(r.q, size, kVecScratch0, kVecScratch0, 0);
  const bool q = r.q || size.log2 == 3;
  if (is_signed) {
    e.a.vsshl(q, size, r.d, r.a, kVecScratch0);
  } else {
    e.a.vushl(q, size, r.d, r.a, kVecScratch0);
  }
}

}  // namespace

#define EMIT(OP, name, method)                             \
  void emit_##name(Emitter& e, const Op& op) {             \
    const Binary r(e, op);                                 \
    e.a.method(r.q || op.aux == 3, op.aux, r.d, r.a, r.b); \
  }
PHYBIN_IR_VECTOR_BINARY(EMIT, _)
#undef EMIT

#define EMIT(OP, name, method)                 \
  void emit_##name(Emitter& e, const Op& op) { \
    const Binary r(e, op);                     \
    e.a.method(r.q, r.d, r.a, r.b);            \
  }
PHYBIN_IR_VECTOR_LOGICAL(EMIT, _)
#undef EMIT

#define EMIT(OP, name, method)                                                       \
  void emit_##name(Emitter& e, const Op& op) {                                       \
    const Unary r(e, op);                                                            \
    e.a.method(r.q || op.aux == 3, op.aux, r.d, r.a, static_cast<unsigned>(op.imm)); \
  }
PHYBIN_IR_VECTOR_SHIFT_IMM(EMIT, _)
#undef EMIT

void emit_VecAbs(Emitter& e, const Op& op) {
  const Unary r(e, op);
  e.a.vabs(r.q, op.aux, r.d, r.a);
}

void emit_VecNot(Emitter& e, const Op& op) {
  const Unary r(e, op);
  e.a.vnot(r.q, r.d, r.a);
}

void emit_VecShl(Emitter& e, const Op& op) { shift_by_vector(e, op, false, false); }
void emit_VecShr(Emitter& e, const Op& op) { shift_by_vector(e, op, true, false); }
void emit_VecSar(Emitter& e, const Op& op) { shift_by_vector(e, op, true, true); }

void emit_VecShlBytes(Emitter& e, const Op& op) {
  const Unary r(e, op);
  e.a.movi(true, kB, kVecScratch0, 0);
  e.a.vext(true, r.d, kVecScratch0, r.a, static_cast<unsigned>(16 - op.imm));
}

void emit_VecShrBytes(Emitter& e, const Op& op) {
  const Unary r(e, op);
  e.a.movi(true, kB, kVecScratch0, 0);
  e.a.vext(true, r.d, r.a, kVecScratch0, static_cast<unsigned>(op.imm));
}

void emit_VecExt(Emitter& e, const Op& op) {
  const Binary r(e, op);
  e.a.vext(r.q, r.d, r.a, r.b, static_cast<unsigned>(op.imm));
}

void emit_VecMulHighSigned(Emitter& e, const Op& op) { multiply_high(e, op, true); }
void emit_VecMulHighUnsigned(Emitter& e, const Op& op) { multiply_high(e, op, false); }

// SQRDMULH would saturate 0x8000 x 0x8000, which PMULHRSW does not.
void emit_VecMulHighRound(Emitter& e, const Op& op) {
  const Binary r(e, op);
  multiply_16(e, r, true);
  e.a.vrshrn(false, kH, r.d, kVecScratch0, 15);
  if (r.q) e.a.vrshrn(true, kH, r.d, kVecScratch1, 15);
}

void emit_VecMulAddPairs(Emitter& e, const Op& op) {
  const Binary r(e, op);
  multiply_16(e, r, true);
  e.a.vaddp(true, kS, r.d, kVecScratch0, r.q ? kVecScratch1 : kVecScratch0);
}

// A product of an unsigned and a signed byte fits in 16 signed bits; only the sums can saturate.
void emit_VecMulAddBytes(Emitter& e, const Op& op) {
  const Binary r(e, op);
  e.a.vuxtl(false, kB, kVecScratch0, r.a);
  e.a.vsxtl(false, kB, kVecScratch1, r.b);
  e.a.vmul(true, kH, kVecScratch0, kVecScratch0, kVecScratch1);
  if (r.q) {
    e.a.vuxtl(true, kB, kVecScratch1, r.a);
    e.a.vsxtl(true, kB, kVecScratch2, r.b);
    e.a.vmul(true, kH, kVecScratch1, kVecScratch1, kVecScratch2);
  } else {
    e.a.vmov(true, kVecScratch1, kVecScratch0);
  }
  e.a.vuzp1(true, kH, kVecScratch2, kVecScratch0, kVecScratch1);
  e.a.vuzp2(true, kH, kVecScratch0, kVecScratch0, kVecScratch1);
  e.a.vsqadd(true, kH, r.d, kVecScratch2, kVecScratch0);
}

void emit_VecMulEvenUnsigned(Emitter& e, const Op& op) { multiply_even(e, op, false); }
void emit_VecMulEvenSigned(Emitter& e, const Op& op) { multiply_even(e, op, true); }

void emit_VecSumAbsDiff(Emitter& e, const Op& op) {
  const Binary r(e, op);
  e.a.vuabd(r.q, kB, kVecScratch0, r.a, r.b);
  e.a.vuaddlp(r.q, kB, kVecScratch0, kVecScratch0);
  e.a.vuaddlp(r.q, kH, kVecScratch0, kVecScratch0);
  e.a.vuaddlp(r.q, kS, r.d, kVecScratch0);
}

void emit_VecPackSigned(Emitter& e, const Op& op) { pack(e, op, true); }
void emit_VecPackUnsigned(Emitter& e, const Op& op) { pack(e, op, false); }
void emit_VecExtendSigned(Emitter& e, const Op& op) { extend(e, op, true); }
void emit_VecExtendUnsigned(Emitter& e, const Op& op) { extend(e, op, false); }

// The sign bits are brought to the bottom of their elements, then halves are folded onto each other: each USRA adds
// the bits of the upper neighbour just above those collected, until a 64-bit half holds its mask at its bottom.
void emit_VecMoveMask(Emitter& e, const Op& op) {
  const Vec a = e.use_vec(op.a);
  const Gpr d = e.def(op);
  const Vec v = kVecScratch0;
  const unsigned per_half = 8u >> op.aux;  // elements in 64 bits
  if (op.aux == 3) {
    e.a.vushr(true, kD, v, a, 63);
  } else {
    e.a.vushr(is_q(op), op.aux, v, a, (8u << op.aux) - 1);
    for (unsigned size = op.aux + 1u, count = 1; size <= 3; ++size, count *= 2) {
      e.a.vusra(true, size, v, v, (4u << size) - count);
    }
  }
  if (op.width == 64) {
    e.a.umov(kB, d, v, 0);
    return;
  }
  e.a.umov(kB, kScratch0, v, 0);
  e.a.umov(kB, kScratch1, v, 8);
  e.a.orr_shifted(false, d, kScratch0, kScratch1, a64::LSL, per_half);
}

// The smallest element and, of equal ones, the lowest place: the minimum of element:place as 32-bit numbers.
void emit_VecMinPosition(Emitter& e, const Op& op) {
  const Unary r(e, op);
  e.a.ldr_literal128_v(kVecScratch1, 0x0003000200010000, 0x0007000600050004);
  e.a.vzip1(true, kH, kVecScratch0, kVecScratch1, r.a);
  e.a.vzip2(true, kH, kVecScratch1, kVecScratch1, r.a);
  e.a.vumin(true, kS, kVecScratch0, kVecScratch0, kVecScratch1);
  e.a.vuminv(true, kS, kVecScratch0, kVecScratch0);
  e.a.vrev32(false, kH, r.d, kVecScratch0);
}

void emit_VecBlend(Emitter& e, const Op& op) {
  const Vec mask = e.use_vec(op.a), yes = e.use_vec(op.b), no = e.use_vec(op.c);
  const Vec d = e.def_vec(op);
  const bool q = is_q(op);
  if (yes == no) {
    e.a.vmov(q, d, yes);
  } else if (d == yes) {
    e.a.vbif(q, d, no, mask);
  } else if (d == no) {
    e.a.vbit(q, d, yes, mask);
  } else {
    if (d != mask) e.a.vmov(q, d, mask);
    e.a.vbsl(q, d, yes, no);
  }
}

// SF = OF = AF = PF = 0. NZCV is put together bit by bit: Z (30) from a & b, C (29), which is !CF, from b & ~a.
void emit_VecTest(Emitter& e, const Op& op) {
  const Vec a = e.use_vec(op.a), b = e.use_vec(op.b);
  e.a.vand(true, kVecScratch0, a, b);
  e.a.vbic(true, kVecScratch1, b, a);
  e.a.vumaxp(true, kS, kVecScratch0, kVecScratch0, kVecScratch1);
  e.a.fmov_to_gpr(true, kScratch0, kVecScratch0);
  e.a.fmov_high_to_gpr(kScratch1, kVecScratch0);
  e.a.cmp_imm(true, kScratch0, 0);
  e.a.cset(false, kScratch0, a64::Cond::EQ);
  e.a.cmp_imm(true, kScratch1, 0);
  e.a.cset(false, kScratch1, a64::Cond::NE);
  e.a.orr_shifted(false, kScratch0, kScratch1, kScratch0, a64::LSL, 1);
  e.a.ubfiz(true, kScratch0, kScratch0, 29, 2);
  e.a.msr(a64::SystemRegister::NZCV, kScratch0);
  e.set_flags(FlagForm::kCanonical);
}

// Elements of size aux that are all ones where imm has ones.
void emit_VecMask(Emitter& e, const Op& op) {
  uint64_t halves[2] = {0, 0};
  const unsigned bits = 8u << op.aux;
  const uint64_t ones = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  for (unsigned i = 0; i < 128 / bits; ++i) {
    if ((op.imm >> i & 1) != 0) halves[i * bits / 64] |= ones << (i * bits % 64);
  }
  e.a.ldr_literal128_v(e.def_vec(op), halves[0], halves[1]);
}

// MPSADBW (SDM): eight sums of four absolute differences, of a moving window in a and one group of four bytes in b.
void emit_VecMultipleSad(Emitter& e, const Op& op) {
  const Vec a = e.use_vec(op.a), b = e.use_vec(op.b);
  const Vec window = e.temporary_vec();
  const Vec d = e.def_vec(op);
  const unsigned group = static_cast<unsigned>(op.imm) & 3, start = static_cast<unsigned>(op.imm) & 4;
  e.a.vext(true, window, a, a, start);
  // Difference k of every sum: byte k of the group against the window moved by k; widened and added up.
  for (unsigned k = 0; k < 4; ++k) {
    e.a.vdup_elem(true, kB, kVecScratch1, b, group * 4 + k);
    e.a.vext(true, kVecScratch2, window, window, k);
    if (k == 0) {
      e.a.vuabdl(false, kB, kVecScratch0, kVecScratch2, kVecScratch1);
    } else {
      e.a.vuabal(false, kB, kVecScratch0, kVecScratch2, kVecScratch1);
    }
  }
  e.a.vmov(true, d, kVecScratch0);
}

}  // namespace phybin::emit
