// Moves between vector registers, their elements and general registers; masked stores; addresses that must be
// aligned.
#include "worker/translator/emit/emitter.h"

namespace phybin::emit {

using a64::Gpr;
using a64::kB;
using a64::kD;
using a64::kS;
using a64::Vec;
using ir::Op;

void emit_VecZero(Emitter& e, const Op& op) { e.a.movi(true, kB, e.def_vec(op), 0); }

void emit_VecMov(Emitter& e, const Op& op) {
  const Vec a = e.use_vec(op.a);
  const Vec d = e.def_vec(op);
  if (op.width != 128) {
    e.a.fmov(op.width == 32 ? kS : kD, d, a);
  } else if (d != a) {
    e.a.vmov(true, d, a);
  }
}

void emit_VecFromInt(Emitter& e, const Op& op) {
  const Gpr a = e.use_or_zero(op.a);
  e.a.fmov_from_gpr(op.width == 64, e.def_vec(op), a);
}

void emit_VecToInt(Emitter& e, const Op& op) {
  const Vec a = e.use_vec(op.a);
  e.a.fmov_to_gpr(op.width == 64, e.def(op), a);
}

void emit_VecInsertInt(Emitter& e, const Op& op) {
  const Gpr b = e.use_or_zero(op.b);
  e.a.ins_gpr(op.aux, e.def_vec(op), static_cast<unsigned>(op.imm), b);
}

void emit_VecExtractInt(Emitter& e, const Op& op) {
  const Vec a = e.use_vec(op.a);
  e.a.umov(op.aux, e.def(op), a, static_cast<unsigned>(op.imm));
}

void emit_VecInsert(Emitter& e, const Op& op) {
  const Vec b = e.use_vec(op.b);
  e.a.ins_elem(op.aux, e.def_vec(op), static_cast<unsigned>(op.imm), b, op.aux2);
}

void emit_VecElement(Emitter& e, const Op& op) {
  const Vec a = e.use_vec(op.a);
  e.a.dup_scalar(op.aux, e.def_vec(op), a, static_cast<unsigned>(op.imm));
}

void emit_VecDup(Emitter& e, const Op& op) {
  const Vec a = e.use_vec(op.a);
  e.a.vdup_elem(op.width == 128, op.aux, e.def_vec(op), a, static_cast<unsigned>(op.imm));
}

// One instruction and no branch. The low four bits are copied to bits 52 to 55. User addresses have zeros there, and
// an address with anything else in these bits never is a valid one (48 address bits; with 52, nothing is ever mapped
// up there unasked), so the access faults just if they were not all zero. Bits 4 to 11 land in bits 56 to 63, which
// address translation ignores (Arm ARM, "Address tagging in AArch64 state"; Linux promises it to user space, see its
// "Tagged virtual addresses in AArch64 Linux"). Guest addresses themselves are below 2^47: whoever handles the fault
// takes an address beyond that for the general-protection fault that x86 raises.
void emit_AlignedAddress(Emitter& e, const Op& op) {
  const Gpr a = e.use(op.a);
  e.a.eor_shifted(true, e.def(op), a, a, a64::LSL, 52);
}

// A byte that is not selected must not be touched, not even by writing its old value back: byte by byte.
void emit_StoreMasked(Emitter& e, const Op& op) {
  const Gpr address = e.use(op.a);
  const Vec data = e.use_vec(op.b);
  const Vec mask = e.use_vec(op.c);
  const unsigned bytes = op.width / 8u;
  for (unsigned i = 0; i < bytes; ++i) {
    const a64::Label skip = e.a.new_label();
    e.a.umov(kB, kScratch0, mask, i);
    e.a.tbz(kScratch0, 7, skip);
    e.a.umov(kB, kScratch0, data, i);
    e.fault_point();
    e.a.strb(kScratch0, address, i);
    e.a.bind(skip);
  }
}

}  // namespace phybin::emit
