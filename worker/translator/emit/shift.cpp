// Shifts, rotates and single-bit tests.
//
// A left shift by n is a shift by n - 1 and an ADDS of the result to itself: that leaves the bit shifted out in C
// and, for n = 1, x86's OF in V. Right shifts compare the result with 0 for N and Z (C = 1) and flip C by the bit
// shifted out. Counts in a register that turn out to be 0 must leave all flags alone: the flags are canonical then
// before and after, and the code that defines them is jumped over. What x86 leaves undefined (OF for counts other
// than 1, AF, CF for counts over the width) is whatever comes out.
#include "worker/translator/emit/emitter.h"

namespace phybin::emit {

using a64::Cond;
using a64::Gpr;
using a64::kZr;
using a64::Label;
using ir::kNoValue;
using ir::Op;
using ir::Opcode;

namespace {

// By a variable count: PF changes only where the count is not 0.
bool writes_pf(const Op& op) { return !ir::names_raw_flags(op) && (Emitter::wanted(op) & ir::kP) != 0; }

constexpr auto kNzcvRegister = a64::SystemRegister::NZCV;

ir::FlagMask wanted_nzcv(const Op& op) { return Emitter::wanted(op) & ir::kNzcv; }

// N and Z from `result` (its sign at bit 31 or 63 of a `wide` register), CF = bit 0 of `carry`, OF = bit 0 of
// `overflow` (kZr: OF = 0). `carry` must not be kScratch0; bits above bit 0 of both must be 0.
void define_flags(Emitter& e, bool is64, Gpr result, Gpr carry, Gpr overflow) {
  e.a.cmp_imm(is64, result, 0);
  e.a.mrs(kScratch0, kNzcvRegister);
  e.a.eor_shifted(true, kScratch0, kScratch0, carry, a64::LSL, 29);
  if (overflow != kZr) e.a.orr_shifted(true, kScratch0, kScratch0, overflow, a64::LSL, 28);
  e.a.msr(kNzcvRegister, kScratch0);
}

// Only CF (bit 0 of `carry`, others 0), canonical, nothing else kept.
void define_carry(Emitter& e, Gpr carry) { e.a.cmp(false, kZr, carry); }

// The operand as the shift wants it: narrow ones extended in `to`.
Gpr extended(Emitter& e, const Op& op, Gpr x, Gpr to) {
  if (op.width >= 32) return x;
  if (op.code == Opcode::kSar) {
    e.a.sbfx(false, to, x, 0, op.width);
  } else {
    e.a.ubfx(false, to, x, 0, op.width);
  }
  return to;
}

void shift_left_immediate(Emitter& e, const Op& op) {
  const auto n = static_cast<unsigned>(op.imm);
  const bool is64 = op.width == 64;
  const Gpr x = e.use_or_zero(op.a);
  if (wanted_nzcv(op) == 0) {
    e.a.lsl_imm(is64, e.def(op), x, n);
    return;
  }
  const unsigned top = op.width < 32 ? 32u - op.width : 0;
  const unsigned before = top + n - 1;
  Gpr t = x;
  if (before >= (is64 ? 64u : 32u)) {
    t = kZr;
  } else if (before != 0) {
    t = kScratch0;
    e.a.lsl_imm(is64, t, x, before);
  }
  if (top == 0) {
    const Gpr d = Emitter::unused(op) ? kZr : e.def(op);
    e.a.adds(is64, d, t, t);
  } else {
    e.a.adds(false, kScratch0, t, t);
    if (!Emitter::unused(op)) e.a.lsr_imm(false, e.def(op), kScratch0, top);
  }
  e.set_flags((op.flags_live & ir::kC) != 0 ? FlagForm::kDirect : FlagForm::kCanonical);
}

void shift_right(Emitter& e, const Op& op, Gpr d, Gpr x, unsigned n) {
  const bool is64 = op.width == 64;
  if (op.code == Opcode::kSar) {
    e.a.asr_imm(is64, d, x, n);
  } else {
    e.a.lsr_imm(is64, d, x, n);
  }
}

void shift_right_immediate(Emitter& e, const Op& op) {
  const auto n = static_cast<unsigned>(op.imm);
  const bool is64 = op.width == 64;
  const ir::FlagMask flags = wanted_nzcv(op);
  const Gpr x = extended(e, op, e.use_or_zero(op.a), kScratch0);
  if (flags == 0) {
    shift_right(e, op, e.def(op), x, n);
    return;
  }
  const bool carry = (flags & ir::kC) != 0;
  const bool overflow = n == 1 && op.code == Opcode::kShr && (flags & ir::kV) != 0;
  if (carry) e.a.ubfx(is64, kScratch1, x, n - 1, 1);
  if (overflow) e.a.ubfx(is64, kScratch2, x, op.width - 1u, 1);
  const Gpr d = e.def(op);
  shift_right(e, op, d, x, n);
  if (flags == ir::kC) {
    define_carry(e, kScratch1);
  } else if (carry || overflow) {
    if (!carry) e.a.mov(false, kScratch1, kZr);
    define_flags(e, is64, d, kScratch1, overflow ? kScratch2 : kZr);
  } else {
    e.a.cmp_imm(is64, d, 0);
  }
  e.set_flags(FlagForm::kCanonical);
}

// Shl, Shr, Sar by a register.
void shift_variable(Emitter& e, const Op& op) {
  const bool is64 = op.width == 64;
  const bool narrow = op.width < 32;
  const Gpr x = e.use_or_zero(op.a);
  const Gpr count = e.use_or_zero(op.b);
  const auto by = [&](Gpr d, Gpr from, Gpr amount) {
    if (op.code == Opcode::kShl) {
      e.a.lslv(is64, d, from, amount);
    } else if (op.code == Opcode::kShr) {
      e.a.lsrv(is64, d, from, amount);
    } else {
      e.a.asrv(is64, d, from, amount);
    }
  };
  const bool flags = Emitter::wanted(op) != 0;
  if (flags) e.make_canonical();
  Gpr source = x;
  if (narrow && op.code != Opcode::kShl) {
    source = e.temporary();
    extended(e, op, x, source);
  }
  if (!flags) {
    by(e.def(op), source, count);
    return;
  }
  // What the flags are made of first: the result may take a register of the operands. With a count of 0 it is
  // meaningless and not used.
  const bool nzcv = (Emitter::wanted(op) & ir::kNzcv) != 0;
  e.a.and_imm(is64, kScratch0, count, is64 ? 63 : 31);
  if (nzcv) {
    e.a.sub_imm(is64, kScratch1, kScratch0, 1);
    by(kScratch1, source, kScratch1);
  }
  const Gpr d = e.def(op);
  by(d, source, count);
  const Label skip = e.a.new_label();
  e.a.cbz(is64, kScratch0, skip);
  if (nzcv && op.code == Opcode::kShl) {
    if (narrow) e.a.lsl_imm(false, kScratch1, kScratch1, 32u - op.width);
    e.a.adds(is64, kZr, kScratch1, kScratch1);
    if (e.host.flagm) {
      e.a.cfinv();
    } else {
      e.a.mrs(kScratch0, kNzcvRegister);
      e.a.eor_imm(true, kScratch0, kScratch0, uint64_t{1} << 29);
      e.a.msr(kNzcvRegister, kScratch0);
    }
  } else if (nzcv) {
    // OF is defined for a count of 1 only, for which kScratch1 holds the operand.
    Gpr overflow = kZr;
    if (op.code == Opcode::kShr && (op.flags_live & ir::kV) != 0) {
      overflow = kScratch2;
      e.a.ubfx(is64, overflow, kScratch1, op.width - 1u, 1);
    }
    e.a.and_imm(is64, kScratch1, kScratch1, 1);
    define_flags(e, is64, d, kScratch1, overflow);
  }
  if (writes_pf(op)) e.a.mov(false, kPfHome, d);
  e.a.bind(skip);
  e.set_flags(FlagForm::kCanonical);
}

// A narrow operand repeated over 32 bits, so that a 32-bit rotation turns it.
Gpr repeated(Emitter& e, const Op& op, Gpr x) {
  if (op.width >= 32) return x;
  e.a.ubfx(false, kScratch1, x, 0, op.width);
  if (op.width == 8) e.a.orr_shifted(false, kScratch1, kScratch1, kScratch1, a64::LSL, 8);
  e.a.orr_shifted(false, kScratch1, kScratch1, kScratch1, a64::LSL, 16);
  return kScratch1;
}

// CF and OF of a rotation that gave d; the other flags stay. Flags are canonical before and after.
void rotate_flags(Emitter& e, const Op& op, Gpr d, bool overflow) {
  const bool left = op.code == Opcode::kRol;
  const unsigned top = op.width - 1u;
  const bool is64 = op.width == 64;
  if (Emitter::kept_nzcv(op) == 0 && op.b == kNoValue && !overflow) {
    e.a.ubfx(is64, kScratch1, d, left ? 0 : top, 1);
    define_carry(e, kScratch1);
    return;
  }
  e.a.mrs(kScratch0, kNzcvRegister);
  e.a.mvn(is64, kScratch1, d);
  if (!left) e.a.lsr_imm(is64, kScratch1, kScratch1, top);
  e.a.bfi(true, kScratch0, kScratch1, 29, 1);
  if (overflow) {
    if (left) {
      e.a.eor_shifted(is64, kScratch1, d, d, a64::LSR, top);
    } else {
      e.a.eor_shifted(is64, kScratch1, d, d, a64::LSR, 1);
      e.a.lsr_imm(is64, kScratch1, kScratch1, top - 1);
    }
    e.a.bfi(true, kScratch0, kScratch1, 28, 1);
  }
  e.a.msr(kNzcvRegister, kScratch0);
}

void rotate(Emitter& e, const Op& op) {
  const bool is64 = op.width == 64;
  const bool left = op.code == Opcode::kRol;
  const Gpr x = e.use_or_zero(op.a);
  const bool flags = wanted_nzcv(op) != 0;
  if (op.b == kNoValue) {
    const auto n = static_cast<unsigned>(op.imm);
    const bool overflow = n == 1 && (Emitter::wanted(op) & ir::kV) != 0;
    if (flags && (Emitter::kept_nzcv(op) != 0 || overflow)) e.make_canonical();
    const Gpr source = repeated(e, op, x);
    const Gpr d = e.def(op);
    const unsigned bits = is64 ? 64 : 32;
    const unsigned amount = (left ? bits - n % bits : n) % bits;
    e.a.ror_imm(is64, d, source, amount);
    if (flags) {
      rotate_flags(e, op, d, overflow);
      e.set_flags(FlagForm::kCanonical);
    }
    return;
  }
  const Gpr count = e.use_or_zero(op.b);
  if (flags) e.make_canonical();
  const Gpr source = repeated(e, op, x);
  if (flags) e.a.and_imm(is64, kScratch0, count, is64 ? 63 : 31);
  Gpr amount = count;
  if (left) {
    amount = kScratch2;
    e.a.neg(is64, amount, count);
  }
  const Gpr d = e.def(op);
  e.a.rorv(is64, d, source, amount);
  if (!flags) return;
  const Label skip = e.a.new_label();
  e.a.cbz(is64, kScratch0, skip);
  rotate_flags(e, op, d, (Emitter::wanted(op) & ir::kV) != 0);
  e.a.bind(skip);
  e.set_flags(FlagForm::kCanonical);
}

// RCL and RCR of 32 or 64 bits by one.
void rotate_through_carry_once(Emitter& e, const Op& op) {
  const bool left = op.code == Opcode::kRcl;
  const bool is64 = op.width == 64;
  const unsigned top = op.width - 1u;
  const Gpr x = e.use_or_zero(op.a);
  e.make_canonical();
  e.a.cset(false, kScratch0, Cond::CC);  // CF
  const bool flags = wanted_nzcv(op) != 0;
  if (flags) {  // bit 0 = !(new CF)
    e.a.mvn(is64, kScratch1, x);
    if (left) e.a.lsr_imm(is64, kScratch1, kScratch1, top);
  }
  const Gpr d = e.def(op);
  if (left) {
    e.a.add_shifted(is64, d, kScratch0, x, a64::LSL, 1);
  } else {
    e.a.extr(is64, d, kScratch0, x, 1);
  }
  if (!flags) return;
  e.a.mrs(kScratch0, kNzcvRegister);
  e.a.bfi(true, kScratch0, kScratch1, 29, 1);
  if ((op.flags_live & ir::kV) != 0) {
    if (left) {  // OF = top bit of the result, exclusive or new CF
      e.a.lsr_imm(is64, kScratch2, d, top);
      e.a.eon(is64, kScratch2, kScratch2, kScratch1);
    } else {  // the two top bits of the result
      e.a.eor_shifted(is64, kScratch2, d, d, a64::LSR, 1);
      e.a.lsr_imm(is64, kScratch2, kScratch2, top - 1);
    }
    e.a.bfi(true, kScratch0, kScratch2, 28, 1);
  }
  e.a.msr(kNzcvRegister, kScratch0);
}

// RCL and RCR turn the width + 1 bits of operand and CF. With n in 1..width: left, result = x << n | CF << (n - 1) |
// x >> (width + 1 - n); right, result = x >> n | CF << (width - n) | x << (width + 1 - n). The shift by width + 1 - n
// is made in two steps, because it may be by all 64 bits.
void rotate_through_carry(Emitter& e, const Op& op) {
  if (op.b == kNoValue && op.imm == 1 && op.width >= 32) {
    rotate_through_carry_once(e, op);
    return;
  }
  const bool left = op.code == Opcode::kRcl;
  const unsigned w = op.width;
  e.make_canonical();
  const Gpr x = e.temporary(), n = e.temporary(), t = e.temporary();
  if (w < 32) {
    e.a.ubfx(false, x, e.use_or_zero(op.a), 0, w);
  } else {
    e.a.mov(w == 64, x, e.use_or_zero(op.a));
  }
  const Gpr count = op.b == kNoValue ? kZr : e.use_or_zero(op.b);
  const Gpr d = e.def(op);
  const Label skip = e.a.new_label();
  e.a.mov(true, d, x);
  if (op.b == kNoValue) {
    const auto period = w < 32 ? w + 1u : 64u;
    e.a.mov_imm(false, n, static_cast<uint64_t>(op.imm) % period);
    if (static_cast<uint64_t>(op.imm) % period == 0) return;
  } else {
    e.a.and_imm(false, n, count, w == 64 ? 63 : 31);
    if (w < 32) {
      e.a.mov_imm(false, kScratch0, w + 1u);
      e.a.udiv(false, kScratch1, n, kScratch0);
      e.a.msub(false, n, kScratch1, kScratch0, n);
    }
    e.a.cbz(false, n, skip);
  }
  e.a.cset(false, kScratch0, Cond::CC);  // CF
  e.a.mov_imm(false, kScratch1, w);
  e.a.sub(false, kScratch1, kScratch1, n);  // w - n
  if (left) {
    e.a.lslv(true, d, x, n);
    e.a.sub_imm(false, t, n, 1);
    e.a.lslv(true, kScratch0, kScratch0, t);
    e.a.orr(true, d, d, kScratch0);
    e.a.lsr_imm(true, t, x, 1);
    e.a.lsrv(true, t, t, kScratch1);
    e.a.orr(true, d, d, t);
    e.a.lsrv(true, kScratch1, x, kScratch1);  // bit w - n of x is the new CF
  } else {
    e.a.lsrv(true, d, x, n);
    e.a.lslv(true, kScratch0, kScratch0, kScratch1);
    e.a.orr(true, d, d, kScratch0);
    e.a.lsl_imm(true, t, x, 1);
    e.a.lslv(true, t, t, kScratch1);
    e.a.orr(true, d, d, t);
    e.a.sub_imm(false, t, n, 1);
    e.a.lsrv(true, kScratch1, x, t);  // bit n - 1 of x
  }
  if (w == 32) e.a.mov(false, d, d);
  if (wanted_nzcv(op) != 0) {
    e.a.mrs(kScratch0, kNzcvRegister);
    if ((op.flags_live & ir::kV) != 0) {
      if (left) {
        e.a.lsr_imm(true, t, d, w - 1u);
        e.a.eor(true, t, t, kScratch1);
      } else {
        e.a.eor_shifted(true, t, d, d, a64::LSR, 1);
        e.a.lsr_imm(true, t, t, w - 2u);
      }
      e.a.bfi(true, kScratch0, t, 28, 1);
    }
    e.a.mvn(true, kScratch1, kScratch1);
    e.a.bfi(true, kScratch0, kScratch1, 29, 1);
    e.a.msr(kNzcvRegister, kScratch0);
  }
  e.a.bind(skip);
  e.set_flags(FlagForm::kCanonical);
}

// SHLD and SHRD. `x` is the destination, `y` gives the bits shifted in.
void double_shift(Emitter& e, const Op& op) {
  const bool left = op.code == Opcode::kShld;
  const unsigned w = op.width;
  const bool is64 = w == 64;
  const bool variable = op.c != kNoValue;
  const bool flags = Emitter::wanted(op) != 0;
  const Gpr x = e.use_or_zero(op.a), y = e.use_or_zero(op.b);
  const Gpr count = variable ? e.use_or_zero(op.c) : kZr;
  if (flags) e.make_canonical();
  const Gpr carry = e.temporary();
  const Gpr d = e.def(op);
  const Label skip = e.a.new_label();
  if (!variable && w >= 32) {
    const auto n = static_cast<unsigned>(op.imm);
    if (left) {
      e.a.extr(is64, d, x, y, w - n);
      if (flags) e.a.ubfx(is64, carry, x, w - n, 1);
    } else {
      e.a.extr(is64, d, y, x, n);
      if (flags) e.a.ubfx(is64, carry, x, n - 1, 1);
    }
  } else {
    const Gpr n = kScratch0;
    if (variable) {
      e.a.and_imm(false, n, count, is64 ? 63 : 31);
      e.a.mov(is64, d, x);
      e.a.cbz(false, n, skip);
    } else {
      e.a.mov_imm(false, n, static_cast<uint64_t>(op.imm));
    }
    if (w == 16) {
      // x:y (or y:x) in 32 bits; counts over 16 are undefined.
      e.a.ubfx(false, kScratch1, left ? y : x, 0, 16);
      e.a.bfi(false, kScratch1, left ? x : y, 16, 16);
      e.a.sub_imm(false, carry, n, 1);
      if (left) {
        e.a.lslv(false, d, kScratch1, n);
        e.a.lsr_imm(false, d, d, 16);
        e.a.lslv(false, carry, kScratch1, carry);
        e.a.lsr_imm(false, carry, carry, 31);
      } else {
        e.a.lsrv(false, d, kScratch1, n);
        e.a.lsrv(false, carry, kScratch1, carry);
      }
    } else {
      e.a.mov_imm(false, kScratch1, w);
      e.a.sub(false, kScratch1, kScratch1, n);  // w - n, in 1..w-1
      if (left) {
        e.a.lslv(is64, d, x, n);
        e.a.lsrv(is64, carry, x, kScratch1);
        e.a.lsrv(is64, kScratch1, y, kScratch1);
      } else {
        e.a.lsrv(is64, d, x, n);
        e.a.sub_imm(false, carry, n, 1);
        e.a.lsrv(is64, carry, x, carry);
        e.a.lslv(is64, kScratch1, y, kScratch1);
      }
      e.a.orr(is64, d, d, kScratch1);
    }
    e.a.and_imm(false, carry, carry, 1);
  }
  if (flags) {
    if ((Emitter::wanted(op) & ir::kNzcv) != 0) {
      Gpr overflow = kZr;
      if ((op.flags_live & ir::kV) != 0) {
        overflow = kScratch2;
        e.a.eor(is64, overflow, d, x);
        e.a.ubfx(is64, overflow, overflow, w - 1, 1);
      }
      Gpr sign = d;
      if (w == 16) {
        sign = kScratch1;
        e.a.lsl_imm(false, sign, d, 16);
      }
      define_flags(e, is64, sign, carry, overflow);
    }
    if (writes_pf(op)) e.a.mov(false, kPfHome, d);
    e.set_flags(FlagForm::kCanonical);
  }
  e.a.bind(skip);
}

}  // namespace

void emit_Shl(Emitter& e, const Op& op) {
  if (op.b == kNoValue) {
    shift_left_immediate(e, op);
  } else {
    shift_variable(e, op);
  }
}

void emit_Shr(Emitter& e, const Op& op) {
  if (op.b == kNoValue) {
    shift_right_immediate(e, op);
  } else {
    shift_variable(e, op);
  }
}

void emit_Sar(Emitter& e, const Op& op) { emit_Shr(e, op); }
void emit_Rol(Emitter& e, const Op& op) { rotate(e, op); }
void emit_Ror(Emitter& e, const Op& op) { rotate(e, op); }
void emit_Rcl(Emitter& e, const Op& op) { rotate_through_carry(e, op); }
void emit_Rcr(Emitter& e, const Op& op) { rotate_through_carry(e, op); }
void emit_Shld(Emitter& e, const Op& op) { double_shift(e, op); }
void emit_Shrd(Emitter& e, const Op& op) { double_shift(e, op); }

// CF = the bit of a that b (modulo the width) or imm names; other flags stay.
void emit_BitTest(Emitter& e, const Op& op) {
  const bool is64 = op.width == 64;
  const Gpr x = e.use_or_zero(op.a);
  const bool keep = Emitter::kept_nzcv(op) != 0;
  if (keep) e.make_canonical();
  if (op.b == kNoValue) {
    const unsigned bit = static_cast<unsigned>(op.imm) & (op.width - 1u);
    e.a.ubfx(is64, kScratch1, x, bit, 1);
  } else {
    Gpr index = e.use_or_zero(op.b);
    if (op.width == 16) {
      e.a.and_imm(false, kScratch0, index, 15);
      index = kScratch0;
    }
    e.a.lsrv(is64, kScratch1, x, index);
    if (!keep) e.a.and_imm(false, kScratch1, kScratch1, 1);
  }
  if (keep) {
    e.a.mrs(kScratch0, kNzcvRegister);
    e.a.mvn(false, kScratch1, kScratch1);
    e.a.bfi(true, kScratch0, kScratch1, 29, 1);
    e.a.msr(kNzcvRegister, kScratch0);
  } else {
    define_carry(e, kScratch1);
  }
  e.set_flags(FlagForm::kCanonical);
}

namespace {

enum class PlainShift : uint8_t { kLeft, kRight, kRightSigned, kRotate };

void plain_shift(Emitter& e, const Op& op, PlainShift kind) {
  const bool is64 = op.width == 64;
  const Gpr x = e.use_or_zero(op.a);
  if (op.b != kNoValue) {
    const Gpr y = e.use_or_zero(op.b);
    const Gpr d = e.def(op);
    switch (kind) {
      case PlainShift::kLeft:
        return e.a.lslv(is64, d, x, y);
      case PlainShift::kRight:
        return e.a.lsrv(is64, d, x, y);
      case PlainShift::kRightSigned:
        return e.a.asrv(is64, d, x, y);
      case PlainShift::kRotate:
        return e.a.rorv(is64, d, x, y);
    }
  }
  const auto n = static_cast<unsigned>(op.imm);
  const Gpr d = e.def(op);
  switch (kind) {
    case PlainShift::kLeft:
      return e.a.lsl_imm(is64, d, x, n);
    case PlainShift::kRight:
      return e.a.lsr_imm(is64, d, x, n);
    case PlainShift::kRightSigned:
      return e.a.asr_imm(is64, d, x, n);
    case PlainShift::kRotate:
      return e.a.ror_imm(is64, d, x, n);
  }
}

}  // namespace

void emit_ShiftLeft(Emitter& e, const Op& op) { plain_shift(e, op, PlainShift::kLeft); }
void emit_ShiftRight(Emitter& e, const Op& op) { plain_shift(e, op, PlainShift::kRight); }
void emit_ShiftRightSigned(Emitter& e, const Op& op) { plain_shift(e, op, PlainShift::kRightSigned); }
void emit_RotateRight(Emitter& e, const Op& op) { plain_shift(e, op, PlainShift::kRotate); }

}  // namespace phybin::emit
