// Conversions between integers and floating point, and MXCSR.
//
// x86 answers what does not fit with the "integer indefinite", the most negative number (SDM vol. 1, 4.8.3.7); A64
// saturates and makes 0 of a NaN. Too small numbers saturate to the indefinite anyway, so what has to be found are
// NaNs and numbers that became the greatest integer. With --fast-math nobody looks.
#include <cstddef>

#include "worker/translator/emit/emitter.h"
#include "worker/translator/emit/nzcv.h"

namespace phybin::emit {

using a64::Gpr;
using a64::kD;
using a64::kS;
using a64::Vec;
using ir::Op;

namespace {

constexpr uint32_t kOverflowSet = 1;  // V in an NZCV immediate

// The result of regs[0] is the indefinite, unless a double was truncated to the greatest 32-bit integer honestly:
// then it is that integer in 64 bits too.
void cold_indefinite(Emitter& e, const ColdPath& cold) {
  const Gpr d = cold.regs[0];
  const Vec source = cold.regs[1];
  const bool is64 = cold.regs[2] != 0;
  if (cold.regs[3] != 0) {
    e.a.fcvtzs(true, kD, kScratch0, source);
    e.a.movn(false, kScratch1, 0x8000, 1);
    e.a.eor(true, kScratch0, kScratch0, kScratch1);
    e.a.cbz(true, kScratch0, cold.back);
  }
  e.a.movz(is64, d, 0x8000, is64 ? 3 : 1);
  e.a.b(cold.back);
}

// The elements of r (32 bits) where `fits` has zeros become the indefinite.
void insert_indefinite(Emitter& e, bool q, Vec r, Vec fits, Vec scratch) {
  e.a.movi(q, kS, scratch, 0x80, 24);
  e.a.vbif(q, r, scratch, fits);
}

}  // namespace

void emit_FConvert(Emitter& e, const Op& op) {
  const Vec a = e.use_vec(op.a);
  e.a.fcvt(op.aux == 2 ? kD : kS, op.aux, e.def_vec(op), a);
}

void emit_FWiden(Emitter& e, const Op& op) {
  const Vec a = e.use_vec(op.a);
  e.a.vfcvtl(false, kD, e.def_vec(op), a);
}

void emit_FNarrow(Emitter& e, const Op& op) {
  const Vec a = e.use_vec(op.a);
  e.a.vfcvtn(false, kD, e.def_vec(op), a);
}

void emit_FFromInt(Emitter& e, const Op& op) {
  const Gpr a = e.use_or_zero(op.a);
  e.a.scvtf(op.width == 64, op.aux, e.def_vec(op), a);
}

void emit_FToInt(Emitter& e, const Op& op) {
  const bool is64 = op.width == 64;
  const bool is_double = op.aux == 3;
  Vec source = e.use_vec(op.a);
  if (op.aux2 == 0) {
    e.a.frintx(op.aux, kVecScratch0, source);
    source = kVecScratch0;
  }
  const Gpr d = e.def(op);
  e.a.fcvtzs(is64, op.aux, d, source);
  if (e.options.fast_math) return;
  ColdPath& cold = e.add_cold(cold_indefinite);
  cold.regs[0] = d;
  cold.regs[1] = source;
  cold.regs[2] = is64;
  cold.regs[3] = 0;
  if (nzcv_is_free(e, op)) {
    cold.regs[3] = is_double && !is64;
    const a64::Label entry = cold.entry;
    e.a.fcmp(op.aux, source, source);
    e.a.ccmn_imm(is64, d, 1, kOverflowSet, a64::Cond::VC);  // V if d + 1 overflows
    e.a.b_cond(a64::Cond::VS, entry);
    e.a.bind(cold.back);
    return;
  }
  // Without flags: does the exponent reach that of 2^31 or 2^63? (The most negative integer does too: it comes out
  // the same.)
  const a64::Label entry = cold.entry, back = cold.back;
  const unsigned bits = is64 ? 63 : 31;
  e.a.fmov_to_gpr(is_double, kScratch0, source);
  if (is_double) {
    e.a.ubfx(true, kScratch0, kScratch0, 52, 11);
    e.a.sub_imm(false, kScratch0, kScratch0, 1023 + bits);
  } else {
    e.a.ubfx(false, kScratch0, kScratch0, 23, 8);
    e.a.sub_imm(false, kScratch0, kScratch0, 127 + bits);
  }
  e.a.tbz(kScratch0, 31, entry);
  e.a.bind(back);
}

void emit_VecIntToFloat(Emitter& e, const Op& op) {
  const Vec a = e.use_vec(op.a);
  e.a.vscvtf(op.width == 128, kS, e.def_vec(op), a);
}

void emit_VecIntToDouble(Emitter& e, const Op& op) {
  const Vec a = e.use_vec(op.a);
  const Vec d = e.def_vec(op);
  e.a.vsxtl(false, kS, d, a);
  e.a.vscvtf(true, kD, d, d);
}

void emit_VecFloatToInt(Emitter& e, const Op& op) {
  Vec source = e.use_vec(op.a);
  const Vec d = e.def_vec(op);
  const bool q = op.width == 128;
  if (op.aux2 == 0) {
    e.a.vfrintx(q, kS, kVecScratch0, source);
    source = kVecScratch0;
  }
  if (e.options.fast_math) return e.a.vfcvtzs(q, kS, d, source);
  e.a.movi(q, kS, kVecScratch1, 0x4f, 24);  // 2^31
  e.a.vfcmgt(q, kS, kVecScratch1, kVecScratch1, source);
  e.a.vfcvtzs(q, kS, d, source);
  insert_indefinite(e, q, d, kVecScratch1, kVecScratch2);
}

void emit_VecDoubleToInt(Emitter& e, const Op& op) {
  Vec source = e.use_vec(op.a);
  const Vec d = e.def_vec(op);
  if (op.aux2 == 0) {
    e.a.vfrintx(true, kD, kVecScratch0, source);
    source = kVecScratch0;
  }
  if (e.options.fast_math) {
    e.a.vfcvtzs(true, kD, kVecScratch0, source);
    return e.a.vsqxtn(false, kS, d, kVecScratch0);
  }
  if (e.options.sse_check) {  // numbers beyond 32 bits but within 64 are invalid, too: only for that flag
    e.a.dup_scalar(kD, kVecScratch1, source, 1);
    e.a.fcvtzs(false, kD, kScratch0, source);
    e.a.fcvtzs(false, kD, kScratch0, kVecScratch1);
  }
  e.a.movz(true, kScratch0, 0x41e0, 3);  // 2^31
  e.a.vdup_gpr(true, kD, kVecScratch1, kScratch0);
  e.a.vfcmgt(true, kD, kVecScratch1, kVecScratch1, source);
  e.a.vxtn(false, kS, kVecScratch1, kVecScratch1);
  e.a.vfcvtzs(true, kD, kVecScratch0, source);
  e.a.vsqxtn(false, kS, d, kVecScratch0);
  insert_indefinite(e, false, d, kVecScratch1, kVecScratch2);
}

// FPSR has IOC, DZC, OFC, UFC, IXC in bits 0 to 4, MXCSR has IE, DE, ZE, OE, UE, PE in bits 0 to 5: all but the first
// move up by one. DE is never seen: A64 reports denormal operands only when it flushes them (IDC, bit 7).
void emit_GetMxcsr(Emitter& e, const Op& op) {
  const Gpr d = e.def(op);
  e.a.mrs(kScratch0, a64::SystemRegister::FPSR);
  e.a.ldr(false, d, kState, offsetof(GuestState, mxcsr));
  e.a.ubfx(false, kScratch1, kScratch0, 1, 4);
  e.a.orr_shifted(false, d, d, kScratch1, a64::LSL, 2);
  e.a.ubfx(false, kScratch1, kScratch0, 7, 1);
  e.a.orr_shifted(false, d, d, kScratch1, a64::LSL, 1);
  e.a.and_imm(false, kScratch0, kScratch0, 1);
  e.a.orr(false, d, d, kScratch0);
}

// RC (bits 13, 14: nearest, down, up, zero) is FPCR.RMode (bits 22, 23: nearest, up, down, zero) with its two bits
// exchanged. FTZ and DAZ both stand for FPCR.FZ, which flushes results and operands: exact when a program sets both,
// as those that ask for speed do.
void emit_SetMxcsr(Emitter& e, const Op& op) {
  const Gpr a = e.use(op.a);
  e.a.str(false, a, kState, offsetof(GuestState, mxcsr));
  e.a.ubfx(false, kScratch0, a, 14, 1);
  e.a.ubfx(false, kScratch1, a, 13, 1);
  e.a.orr_shifted(false, kScratch0, kScratch0, kScratch1, a64::LSL, 1);
  e.a.orr_shifted(false, kScratch1, a, a, a64::LSL, 9);  // DAZ (bit 6) over FTZ (bit 15)
  e.a.ubfx(false, kScratch1, kScratch1, 15, 1);
  e.a.orr_shifted(false, kScratch0, kScratch0, kScratch1, a64::LSL, 2);
  e.a.ubfiz(true, kScratch0, kScratch0, 22, 3);
  e.a.str(false, kScratch0, kState, offsetof(GuestState, fpcr));
  e.a.msr(a64::SystemRegister::FPCR, kScratch0);
  e.a.msr(a64::SystemRegister::FPSR, a64::kZr);
}

}  // namespace phybin::emit
