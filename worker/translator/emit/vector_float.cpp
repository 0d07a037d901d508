// Floating-point arithmetic and comparison, scalar and packed.
//
// A64 and x86 agree on every IEEE 754 result with the same rounding mode; they differ in NaNs (vector_nan.cpp).
// Exception flags just gather in FPSR.
//
// MIN and MAX are selections on x86 (SDM, "MINPS"), not the IEEE operations, so a comparison and a bitwise select.
#include "worker/translator/emit/emitter.h"

namespace phybin::emit {

using a64::Size;
using a64::Vec;
using ir::Op;

namespace {

bool is_packed(const Op& op) { return op.width == 128; }

// `d` = all ones where n CMP m.
enum class Compare : uint8_t { kEq, kGe, kGt };

void compare(Emitter& e, const Op& op, Compare how, Vec d, Vec n, Vec m) {
  const bool packed = is_packed(op);
  switch (how) {
    case Compare::kEq:
      return packed ? e.a.vfcmeq(true, op.aux, d, n, m) : e.a.fcmeq_scalar(op.aux, d, n, m);
    case Compare::kGe:
      return packed ? e.a.vfcmge(true, op.aux, d, n, m) : e.a.fcmge_scalar(op.aux, d, n, m);
    case Compare::kGt:
      return packed ? e.a.vfcmgt(true, op.aux, d, n, m) : e.a.fcmgt_scalar(op.aux, d, n, m);
  }
}

void select_by_comparison(Emitter& e, const Op& op, bool less) {
  const Vec a = e.use_vec(op.a), b = e.use_vec(op.b);
  const Vec d = e.def_vec(op);
  const Vec greater = less ? b : a, lesser = less ? a : b;
  const bool q = is_packed(op);
  if (a == b) {  // for the exception flags
    compare(e, op, Compare::kGt, kVecScratch0, a, a);
    if (d != a || !q) e.a.vmov(q, d, a);
  } else if (d == a) {
    compare(e, op, Compare::kGt, kVecScratch0, greater, lesser);
    e.a.vbif(q, d, b, kVecScratch0);
  } else if (d == b) {
    compare(e, op, Compare::kGt, kVecScratch0, greater, lesser);
    e.a.vbit(q, d, a, kVecScratch0);
  } else {
    compare(e, op, Compare::kGt, d, greater, lesser);
    e.a.vbsl(q, d, a, b);
  }
}

}  // namespace

#define EMIT(OP, name, scalar, packed)         \
  void emit_##name(Emitter& e, const Op& op) { \
    const Vec a = e.use_vec(op.a);             \
    const Vec b = e.use_vec(op.b);             \
    const Vec d = e.def_vec(op);               \
    if (is_packed(op)) {                       \
      e.a.packed(true, op.aux, d, a, b);       \
    } else {                                   \
      e.a.scalar(op.aux, d, a, b);             \
    }                                          \
  }
PHYBIN_IR_FLOAT_BINARY(EMIT, _)
#undef EMIT

void emit_FSqrt(Emitter& e, const Op& op) {
  const Vec a = e.use_vec(op.a);
  const Vec d = e.def_vec(op);
  if (is_packed(op)) {
    e.a.vfsqrt(true, op.aux, d, a);
  } else {
    e.a.fsqrt(op.aux, d, a);
  }
}

void emit_FMin(Emitter& e, const Op& op) { select_by_comparison(e, op, true); }
void emit_FMax(Emitter& e, const Op& op) { select_by_comparison(e, op, false); }

// FCMEQ is quiet, FCMGT and FCMGE are signaling, like the x86 predicates made of them. UNORD and ORD are quiet: the
// maximum of two numbers is a NaN just if one of them is.
void emit_FCompareMask(Emitter& e, const Op& op) {
  const Vec a = e.use_vec(op.a), b = e.use_vec(op.b);
  const Vec d = e.def_vec(op);
  const bool q = is_packed(op);
  const unsigned predicate = op.aux2 & 3u;
  bool inverted = (op.aux2 & 4) != 0;
  switch (predicate) {
    case 0:
      compare(e, op, Compare::kEq, d, a, b);
      break;
    case 1:
      compare(e, op, Compare::kGt, d, b, a);
      break;
    case 2:
      compare(e, op, Compare::kGe, d, b, a);
      break;
    default: {
      Vec both = a;
      if (a != b) {
        both = kVecScratch0;
        if (q) {
          e.a.vfmax(true, op.aux, both, a, b);
        } else {
          e.a.fmax(op.aux, both, a, b);
        }
      }
      compare(e, op, Compare::kEq, d, both, both);
      inverted = !inverted;
      break;
    }
  }
  if (inverted) e.a.vnot(q, d, d);
}

void emit_FCompare(Emitter& e, const Op& op) {
  const Vec a = e.use_vec(op.a), b = e.use_vec(op.b);
  if (op.aux2 != 0) {
    e.a.fcmpe(op.aux, a, b);
  } else {
    e.a.fcmp(op.aux, a, b);
  }
  e.set_flags(FlagForm::kFloat);
}

// The rounding forms with a mode of their own do not report an inexact result; FRINTX, which does, is asked as well
// where the instruction wants that.
void emit_FRound(Emitter& e, const Op& op) {
  const Vec a = e.use_vec(op.a);
  const Vec d = e.def_vec(op);
  const bool by_mxcsr = (op.aux2 & 4) != 0, quiet = (op.aux2 & 8) != 0;
  const bool packed = is_packed(op);
  if (!by_mxcsr && !quiet) {
    if (packed) {
      e.a.vfrintx(true, op.aux, kVecScratch0, a);
    } else {
      e.a.frintx(op.aux, kVecScratch0, a);
    }
  }
  using Packed = void (a64::Assembler::*)(bool, Size, Vec, Vec);
  using Scalar = void (a64::Assembler::*)(Size, Vec, Vec);
  struct Mode {
    Packed packed;
    Scalar scalar;
  };
  static constexpr Mode kModes[6] = {
      {static_cast<Packed>(&a64::Assembler::vfrintn), static_cast<Scalar>(&a64::Assembler::frintn)},
      {static_cast<Packed>(&a64::Assembler::vfrintm), static_cast<Scalar>(&a64::Assembler::frintm)},
      {static_cast<Packed>(&a64::Assembler::vfrintp), static_cast<Scalar>(&a64::Assembler::frintp)},
      {static_cast<Packed>(&a64::Assembler::vfrintz), static_cast<Scalar>(&a64::Assembler::frintz)},
      {static_cast<Packed>(&a64::Assembler::vfrintx), static_cast<Scalar>(&a64::Assembler::frintx)},
      {static_cast<Packed>(&a64::Assembler::vfrinti), static_cast<Scalar>(&a64::Assembler::frinti)}};
  const Mode& mode = kModes[!by_mxcsr ? op.aux2 & 3 : quiet ? 5 : 4];
  if (packed) {
    (e.a.*mode.packed)(true, op.aux, d, a);
  } else {
    (e.a.*mode.scalar)(op.aux, d, a);
  }
}

}  // namespace phybin::emit
