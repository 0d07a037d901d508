// Multiplication, plain division, and counting and reversing bits.
#include "worker/translator/emit/emitter.h"
#include "worker/translator/emit/immediate.h"

namespace phybin::emit {

using a64::Cond;
using a64::Gpr;
using a64::kZr;
using ir::kNoValue;
using ir::Op;

// The low half of the product; C = V = it is not the whole signed product.
void emit_Mul(Emitter& e, const Op& op) {
  const Gpr x = e.use_or_zero(op.a);
  Gpr y = kScratch1;
  if (op.b != kNoValue) {
    y = e.use_or_zero(op.b);
  } else {
    load_immediate(e, y, immediate(op));
  }
  const bool flags = (Emitter::wanted(op) & (ir::kC | ir::kV)) != 0;
  if (!flags) {
    e.a.mul(op.width == 64, e.def(op), x, y);
    return;
  }
  switch (op.width) {
    case 64: {
      e.a.smulh(kScratch0, x, y);
      const Gpr d = e.def(op);
      e.a.mul(true, d, x, y);
      e.a.subs_shifted(true, kZr, kScratch0, d, a64::ASR, 63);
      break;
    }
    case 32: {
      e.a.smull(kScratch0, x, y);
      e.a.mov(false, e.def(op), kScratch0);
      e.a.subs_extended(true, kZr, kScratch0, kScratch0, a64::Extend::SXTW, 0);
      break;
    }
    default: {
      e.a.sbfx(false, kScratch0, x, 0, op.width);
      e.a.sbfx(false, kScratch1, y, 0, op.width);
      e.a.mul(false, kScratch0, kScratch0, kScratch1);
      e.a.mov(false, e.def(op), kScratch0);
      e.a.subs_extended(false, kZr, kScratch0, kScratch0, op.width == 16 ? a64::Extend::SXTH : a64::Extend::SXTB, 0);
      break;
    }
  }
  // Equal: 0 - 0 gives CF = OF = 0. Else V alone: CF = OF = 1.
  e.a.ccmp_imm(false, kZr, 0, 1, Cond::EQ);
  e.set_flags(FlagForm::kCanonical);
}

void emit_MulOverflow(Emitter& e, const Op& op) {
  const Gpr high = e.use_or_zero(op.a);
  if (op.width < 32) {
    // `high` is the whole product, zero- or sign-extended to 32 bits.
    const auto extend = op.width == 16 ? (op.aux != 0 ? a64::Extend::SXTH : a64::Extend::UXTH)
                                       : (op.aux != 0 ? a64::Extend::SXTB : a64::Extend::UXTB);
    e.a.subs_extended(false, kZr, high, high, extend, 0);
  } else if (op.aux != 0) {
    e.a.subs_shifted(op.width == 64, kZr, high, e.use_or_zero(op.b), a64::ASR, op.width - 1u);
  } else {
    e.a.cmp(op.width == 64, high, kZr);
  }
  e.a.ccmp_imm(false, kZr, 0, 1, Cond::EQ);
  e.set_flags(FlagForm::kCanonical);
}

void emit_UMulHigh(Emitter& e, const Op& op) {
  const Gpr x = e.use_or_zero(op.a), y = e.use_or_zero(op.b);
  e.a.umulh(e.def(op), x, y);
}

void emit_SMulHigh(Emitter& e, const Op& op) {
  const Gpr x = e.use_or_zero(op.a), y = e.use_or_zero(op.b);
  e.a.smulh(e.def(op), x, y);
}

void emit_UDiv(Emitter& e, const Op& op) {
  const Gpr x = e.use_or_zero(op.a), y = e.use_or_zero(op.b);
  e.a.udiv(op.width == 64, e.def(op), x, y);
}

void emit_SDiv(Emitter& e, const Op& op) {
  const Gpr x = e.use_or_zero(op.a), y = e.use_or_zero(op.b);
  e.a.sdiv(op.width == 64, e.def(op), x, y);
}

void emit_CLZ(Emitter& e, const Op& op) {
  const Gpr x = e.use(op.a);
  e.a.clz(op.width == 64, e.def(op), x);
}

void emit_RBit(Emitter& e, const Op& op) {
  const Gpr x = e.use(op.a);
  e.a.rbit(op.width == 64, e.def(op), x);
}

void emit_ByteSwap(Emitter& e, const Op& op) {
  const Gpr x = e.use(op.a);
  const Gpr d = e.def(op);
  if (op.width == 16) {
    e.a.rev16(false, d, x);
    e.a.uxth(d, d);
  } else {
    e.a.rev(op.width == 64, d, x);
  }
}

void emit_PopCount(Emitter& e, const Op& op) {
  const Gpr x = e.use(op.a);
  const Gpr d = e.def(op);
  if (op.width == 16) {
    e.a.uxth(kScratch0, x);
    e.a.fmov_from_gpr(false, kVecScratch0, kScratch0);
  } else {
    e.a.fmov_from_gpr(op.width == 64, kVecScratch0, x);
  }
  e.a.vcnt(false, a64::kB, kVecScratch0, kVecScratch0);
  e.a.vaddv(false, a64::kB, kVecScratch0, kVecScratch0);
  e.a.fmov_to_gpr(false, d, kVecScratch0);
}

void emit_Crc32c(Emitter& e, const Op& op) {
  const Gpr x = e.use(op.a), y = e.use(op.b);
  const Gpr d = e.def(op);
  switch (op.width) {
    case 8:
      e.a.crc32cb(d, x, y);
      break;
    case 16:
      e.a.crc32ch(d, x, y);
      break;
    case 32:
      e.a.crc32cw(d, x, y);
      break;
    default:
      e.a.crc32cx(d, x, y);
      break;
  }
}

}  // namespace phybin::emit
