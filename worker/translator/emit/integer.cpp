// Integer moves, arithmetic and logic.
//
// 32- and 64-bit operations are one A64 instruction, with flags or without. 8- and 16-bit operations that must define
// flags are done on operands shifted to the top of a 32-bit register, where A64's N, Z, C, V are x86's.
#include "worker/translator/emit/emitter.h"
#include "worker/translator/emit/immediate.h"

namespace phybin::emit {

using a64::Cond;
using a64::Gpr;
using a64::kZr;
using ir::kNoValue;
using ir::Op;

namespace {

uint64_t negated(const Op& op) {
  const uint64_t imm = 0 - immediate(op);
  return op.width == 64 ? imm : imm & ((uint64_t{1} << op.width) - 1);
}

// Result register of an operation that also defines flags: the zero register when only the flags are wanted.
Gpr def_or_zero(Emitter& e, const Op& op) { return Emitter::unused(op) ? kZr : e.def(op); }

// d = x + y or x - y, of 32 or 64 bits.
void add_sub(Emitter& e, const Op& op, bool subtract) {
  const bool is64 = op.width == 64;
  const bool flags = (Emitter::wanted(op) & ir::kNzcv) != 0;
  if (op.b != kNoValue) {
    const Gpr x = e.use_or_zero(op.a), y = e.use_or_zero(op.b);
    const Gpr d = flags ? def_or_zero(e, op) : e.def(op);
    if (subtract) {
      flags ? e.a.subs(is64, d, x, y) : e.a.sub(is64, d, x, y);
    } else {
      flags ? e.a.adds(is64, d, x, y) : e.a.add(is64, d, x, y);
    }
  } else {
    const Gpr x = e.use_or_zero(op.a);
    const bool zero = x == kZr;  // would be the stack pointer in the immediate forms
    const uint64_t imm = immediate(op), opposite = negated(op);
    const bool direct = a64::is_add_imm(imm) && !zero;
    // x + imm = x - (-imm), flags included, unless imm is 0.
    const bool swapped = !direct && !zero && a64::is_add_imm(opposite);
    Gpr y = kScratch0;
    if (!direct && !swapped) {
      if (imm == 0) {
        y = kZr;
      } else {
        load_immediate(e, y, imm);
      }
    }
    Gpr d = flags ? def_or_zero(e, op) : e.def(op);
    // TEST: the value compared with 0 is the one whose parity PF is.
    if (d == kZr && subtract && imm == 0 && e.take_pf(op, ir::kPfOfOperand)) d = kPfHome;
    if (direct || swapped) {
      const uint64_t value = direct ? imm : opposite;
      const bool shifted = value > 0xfff;
      const auto field = static_cast<uint32_t>(shifted ? value >> 12 : value);
      if (subtract == direct) {
        flags ? e.a.subs_imm(is64, d, x, field, shifted) : e.a.sub_imm(is64, d, x, field, shifted);
      } else {
        flags ? e.a.adds_imm(is64, d, x, field, shifted) : e.a.add_imm(is64, d, x, field, shifted);
      }
    } else if (subtract) {
      flags ? e.a.subs(is64, d, x, y) : e.a.sub(is64, d, x, y);
    } else {
      flags ? e.a.adds(is64, d, x, y) : e.a.add(is64, d, x, y);
    }
  }
  if (flags) e.set_flags(subtract || (op.flags_live & ir::kC) == 0 ? FlagForm::kCanonical : FlagForm::kDirect);
}

// 8 and 16 bits with flags, where ZF and CF are all that is wanted: on zero-extended operands.
bool compare_narrow(Emitter& e, const Op& op) {
  if (!Emitter::unused(op) || (Emitter::wanted(op) & (ir::kN | ir::kV)) != 0) return false;
  const bool x_narrow = ir::is_narrow(e.region, op.a, op.width);
  if (op.b == kNoValue && op.imm == 0 && !x_narrow) {
    e.a.ands_imm(false, kZr, e.use(op.a), (1u << op.width) - 1);
    e.set_flags(FlagForm::kLogic);
    return true;
  }
  if (op.b == kNoValue && a64::is_add_imm(immediate(op))) {
    Gpr x = e.use(op.a);
    if (!x_narrow) {
      e.a.ubfx(false, kScratch0, x, 0, op.width);
      x = kScratch0;
    }
    const auto imm = static_cast<uint32_t>(immediate(op));
    const bool shifted = imm > 0xfff;
    e.a.cmp_imm(false, x, shifted ? imm >> 12 : imm, shifted);
    e.set_flags(FlagForm::kCanonical);
    return true;
  }
  if (op.b != kNoValue && x_narrow && ir::is_narrow(e.region, op.b, op.width)) {
    const Gpr x = e.use(op.a);
    e.a.cmp(false, x, e.use_or_zero(op.b));
    e.set_flags(FlagForm::kCanonical);
    return true;
  }
  return false;
}

// 8 and 16 bits with flags.
void add_sub_narrow(Emitter& e, const Op& op, bool subtract) {
  if (subtract && compare_narrow(e, op)) return;
  const unsigned shift = 32u - op.width;
  const Gpr x = e.use_or_zero(op.a);
  Gpr y = kScratch1;
  bool shifted_y = false;
  if (op.b != kNoValue) {
    y = e.use_or_zero(op.b);
    shifted_y = true;
  } else {
    e.a.mov_imm(false, kScratch1, immediate(op) << shift);
  }
  e.a.lsl_imm(false, kScratch0, x, shift);
  const bool result = !Emitter::unused(op);
  const Gpr t = result ? kScratch0 : kZr;
  const unsigned amount = shifted_y ? shift : 0;
  if (subtract) {
    e.a.subs_shifted(false, t, kScratch0, y, a64::LSL, amount);
  } else {
    e.a.adds_shifted(false, t, kScratch0, y, a64::LSL, amount);
  }
  if (result) e.a.lsr_imm(false, e.def_in_pf(op) ? kPfHome : e.def(op), kScratch0, shift);
  e.set_flags(subtract || (op.flags_live & ir::kC) == 0 ? FlagForm::kCanonical : FlagForm::kDirect);
}

void emit_add_sub(Emitter& e, const Op& op, bool subtract) {
  if (op.width < 32 && (Emitter::wanted(op) & ir::kNzcv) != 0) {
    add_sub_narrow(e, op, subtract);
  } else {
    add_sub(e, op, subtract);
  }
}

// Flags of a logic result of any width, canonical: CF = OF = 0.
void test_result(Emitter& e, const Op& op, Gpr d) {
  if (op.width >= 32) {
    e.a.subs_imm(op.width == 64, e.take_pf(op, ir::kPfOfResult) ? kPfHome : kZr, d, 0);
  } else if ((Emitter::wanted(op) & (ir::kN | ir::kZ)) != 0) {
    e.a.lsl_imm(false, kScratch0, d, 32u - op.width);
    e.a.cmp_imm(false, kScratch0, 0);
  } else {
    e.a.cmp(false, kZr, kZr);
  }
  e.set_flags(FlagForm::kCanonical);
}

template <typename RegisterForm, typename ImmediateForm>
void logic(Emitter& e, const Op& op, RegisterForm by_register, ImmediateForm by_immediate) {
  const bool is64 = op.width == 64;
  const Gpr x = e.use_or_zero(op.a);
  Gpr d;
  if (op.b != kNoValue) {
    const Gpr y = e.use_or_zero(op.b);
    d = e.def(op);
    by_register(is64, d, x, y);
  } else {
    const uint64_t imm = immediate(op);
    uint32_t field;
    if (a64::encode_bitmask(imm, is64, field)) {
      d = e.def(op);
      by_immediate(is64, d, x, field);
    } else {
      Gpr y = kZr;
      if (imm != 0) {
        y = kScratch0;
        load_immediate(e, y, imm);
      }
      d = e.def(op);
      by_register(is64, d, x, y);
    }
  }
  if ((Emitter::wanted(op) & ir::kNzcv) != 0) test_result(e, op, d);
}

// Adds or subtracts with carry in 8 or 16 bits and defines all flags: on zero-extended operands, flags put together.
void carry_narrow(Emitter& e, const Op& op, bool subtract) {
  const unsigned w = op.width;
  e.make_canonical();
  const Gpr x = e.use_or_zero(op.a);
  const Gpr y = e.temporary();
  if (op.b != kNoValue) {
    e.a.ubfx(false, y, e.use_or_zero(op.b), 0, w);
  } else {
    e.a.mov_imm(false, y, immediate(op));
  }
  const Gpr wide = e.temporary();
  const Gpr zx = e.temporary();
  e.a.ubfx(false, zx, x, 0, w);
  e.a.cset(false, kScratch0, Cond::CC);
  if (subtract) {
    e.a.sub(false, wide, zx, y);
    e.a.sub(false, wide, wide, kScratch0);
  } else {
    e.a.add(false, wide, zx, y);
    e.a.add(false, wide, wide, kScratch0);
  }
  if ((Emitter::wanted(op) & ir::kNzcv) != 0) {
    // V: the operands' signs (equal for a sum, different for a difference) against the result's.
    e.a.eor(false, kScratch0, zx, wide);
    if (subtract) {
      e.a.eor(false, kScratch1, zx, y);
    } else {
      e.a.eor(false, kScratch1, y, wide);
    }
    e.a.and_(false, kScratch1, kScratch0, kScratch1);
    e.a.lsl_imm(false, kScratch0, wide, 32 - w);
    e.a.cmp_imm(false, kScratch0, 0);
    e.a.mrs(kScratch0, a64::SystemRegister::NZCV);
    e.a.ubfx(false, kScratch1, kScratch1, w - 1, 1);
    e.a.bfi(true, kScratch0, kScratch1, 28, 1);
    e.a.mvn(false, kScratch1, wide);
    e.a.ubfx(false, kScratch1, kScratch1, w, 1);
    e.a.bfi(true, kScratch0, kScratch1, 29, 1);
    e.a.msr(a64::SystemRegister::NZCV, kScratch0);
    e.set_flags(FlagForm::kCanonical);
  }
  e.a.mov(false, e.def(op), wide);
}

void carry_wide(Emitter& e, const Op& op, bool subtract) {
  const bool is64 = op.width == 64;
  const bool flags = (Emitter::wanted(op) & ir::kNzcv) != 0;
  const Gpr x = e.use_or_zero(op.a);
  Gpr y = kScratch1;
  if (op.b != kNoValue) {
    y = e.use_or_zero(op.b);
  } else if (immediate(op) == 0) {
    y = kZr;
  } else {
    load_immediate(e, y, immediate(op));
  }
  if (e.flag_form() == FlagForm::kFloat) e.make_canonical();
  const bool inverted = e.flag_form() == FlagForm::kCanonical;
  const bool keep = (op.flags_live & ~op.flags_def & ir::kNzcv) != 0 || !flags;
  if (inverted != subtract) {
    // C the other way round; when the flags are to survive, in a copy of them.
    if (keep && (op.flags_live & ir::kNzcv) != 0) {
      e.a.mrs(kScratch2, a64::SystemRegister::NZCV);
    }
    e.a.cset(false, kScratch0, inverted ? Cond::CC : Cond::CS);  // CF
    if (subtract) {
      e.a.cmp(false, kZr, kScratch0);
    } else {
      e.a.cmp_imm(false, kScratch0, 1);
    }
  }
  const Gpr d = e.def(op);
  if (subtract) {
    flags ? e.a.sbcs(is64, d, x, y) : e.a.sbc(is64, d, x, y);
  } else {
    flags ? e.a.adcs(is64, d, x, y) : e.a.adc(is64, d, x, y);
  }
  if (flags) {
    e.set_flags(subtract || (op.flags_live & ir::kC) == 0 ? FlagForm::kCanonical : FlagForm::kDirect);
  } else if (inverted != subtract && (op.flags_live & ir::kNzcv) != 0) {
    e.a.msr(a64::SystemRegister::NZCV, kScratch2);
  }
}

// x + 1 or x - 1 with flags N, Z, V; C stays.
void step(Emitter& e, const Op& op, bool subtract) {
  const bool is64 = op.width == 64;
  const Gpr x = e.use_or_zero(op.a);
  if ((Emitter::wanted(op) & ir::kNzcv) == 0) {
    const Gpr d = e.def(op);
    if (x == kZr) {
      e.a.mov_imm(is64, d, subtract ? ~uint64_t{0} : 1);
    } else if (subtract) {
      e.a.sub_imm(is64, d, x, 1);
    } else {
      e.a.add_imm(is64, d, x, 1);
    }
    return;
  }
  const bool keep_carry = (op.flags_live & ir::kC) != 0;
  if (keep_carry) {
    if (e.flag_form() == FlagForm::kFloat) e.make_canonical();
    e.a.cset(false, kScratch1, Cond::CS);
  }
  const FlagForm form = e.flag_form() == FlagForm::kLogic ? FlagForm::kDirect : e.flag_form();
  if (op.width >= 32) {
    Gpr source = x;
    if (x == kZr) {
      e.a.mov(true, kScratch0, kZr);
      source = kScratch0;
    }
    const Gpr d = def_or_zero(e, op);
    if (subtract) {
      e.a.subs_imm(is64, d, source, 1);
    } else {
      e.a.adds_imm(is64, d, source, 1);
    }
  } else {
    const unsigned shift = 32u - op.width;
    const Gpr one = kScratch2;
    e.a.lsl_imm(false, kScratch0, x, shift);
    e.a.mov_imm(false, one, uint64_t{1} << shift);
    if (subtract) {
      e.a.subs(false, kScratch0, kScratch0, one);
    } else {
      e.a.adds(false, kScratch0, kScratch0, one);
    }
    if (!Emitter::unused(op)) e.a.lsr_imm(false, e.def(op), kScratch0, shift);
  }
  if (!keep_carry) {
    e.set_flags(FlagForm::kCanonical);
    return;
  }
  e.a.mrs(kScratch0, a64::SystemRegister::NZCV);
  e.a.bfi(true, kScratch0, kScratch1, 29, 1);
  e.a.msr(a64::SystemRegister::NZCV, kScratch0);
  e.set_flags(form);
}

}  // namespace

void emit_Mov(Emitter& e, const Op& op) {
  const Gpr x = e.use_or_zero(op.a);
  const Gpr d = e.def(op);
  if (op.width < 32) {
    e.a.ubfx(false, d, x, 0, op.width);
  } else {
    e.a.mov(op.width == 64, d, x);
  }
}

void emit_SignExtend(Emitter& e, const Op& op) {
  const Gpr x = e.use(op.a);
  e.a.sbfx(op.aux == 64, e.def(op), x, 0, op.width);
}

void emit_Insert(Emitter& e, const Op& op) {
  const Gpr y = e.use_or_zero(op.b);
  const Gpr d = e.def(op);
  e.a.bfi(true, d, y, op.aux, op.width);
}

void emit_Extract(Emitter& e, const Op& op) {
  const Gpr x = e.use(op.a);
  e.a.ubfx(op.aux + op.width > 32, e.def(op), x, op.aux, op.width);
}

void emit_Add(Emitter& e, const Op& op) { emit_add_sub(e, op, false); }
void emit_Sub(Emitter& e, const Op& op) { emit_add_sub(e, op, true); }

void emit_Adc(Emitter& e, const Op& op) {
  if (op.width < 32) {
    carry_narrow(e, op, false);
  } else {
    carry_wide(e, op, false);
  }
}

void emit_Sbb(Emitter& e, const Op& op) {
  if (op.width < 32) {
    carry_narrow(e, op, true);
  } else {
    carry_wide(e, op, true);
  }
}

void emit_And(Emitter& e, const Op& op) {
  const ir::FlagMask flags = Emitter::wanted(op) & ir::kNzcv;
  // ANDS is right where bit 31 or 63 is the sign, or nobody asks for the sign and no bit above the width is set.
  const bool masked = op.b == kNoValue && op.width < 32;
  if (flags == 0 || (op.width < 32 && !(masked && (flags & ir::kN) == 0))) {
    logic(
        e, op, [&](bool is64, Gpr d, Gpr x, Gpr y) { e.a.and_(is64, d, x, y); },
        [&](bool is64, Gpr d, Gpr x, uint32_t field) { e.a.and_bitmask(is64, d, x, field); });
    return;
  }
  const bool is64 = op.width == 64;
  const Gpr x = e.use_or_zero(op.a);
  if (op.b != kNoValue) {
    const Gpr y = e.use_or_zero(op.b);
    e.a.ands(is64, def_or_zero(e, op), x, y);
  } else {
    const uint64_t imm = immediate(op);
    uint32_t field;
    if (a64::encode_bitmask(imm, is64, field)) {
      e.a.ands_bitmask(is64, def_or_zero(e, op), x, field);
    } else {
      Gpr y = kZr;
      if (imm != 0) {
        y = kScratch0;
        load_immediate(e, y, imm);
      }
      e.a.ands(is64, def_or_zero(e, op), x, y);
    }
  }
  if (Emitter::unused(op)) {
    e.set_flags(FlagForm::kLogic);
  } else {
    e.set_logic_flags(op);
  }
}

void emit_Or(Emitter& e, const Op& op) {
  logic(
      e, op, [&](bool is64, Gpr d, Gpr x, Gpr y) { e.a.orr(is64, d, x, y); },
      [&](bool is64, Gpr d, Gpr x, uint32_t field) { e.a.orr_bitmask(is64, d, x, field); });
}

void emit_Xor(Emitter& e, const Op& op) {
  logic(
      e, op, [&](bool is64, Gpr d, Gpr x, Gpr y) { e.a.eor(is64, d, x, y); },
      [&](bool is64, Gpr d, Gpr x, uint32_t field) { e.a.eor_bitmask(is64, d, x, field); });
}

void emit_AndNot(Emitter& e, const Op& op) {
  const bool is64 = op.width == 64;
  const Gpr x = e.use_or_zero(op.a), y = e.use_or_zero(op.b);
  const Gpr d = e.def(op);
  e.a.bic(is64, d, x, y);
  if ((Emitter::wanted(op) & ir::kNzcv) != 0) test_result(e, op, d);
}

void emit_Neg(Emitter& e, const Op& op) {
  const bool is64 = op.width == 64;
  const Gpr x = e.use_or_zero(op.a);
  if ((Emitter::wanted(op) & ir::kNzcv) == 0) {
    e.a.neg(is64, e.def(op), x);
    return;
  }
  if (op.width >= 32) {
    e.a.negs(is64, def_or_zero(e, op), x);
  } else {
    const unsigned shift = 32u - op.width;
    e.a.subs_shifted(false, kScratch0, kZr, x, a64::LSL, shift);
    if (!Emitter::unused(op)) e.a.lsr_imm(false, e.def(op), kScratch0, shift);
  }
  e.set_flags(FlagForm::kCanonical);
}

void emit_Not(Emitter& e, const Op& op) {
  const Gpr x = e.use_or_zero(op.a);
  e.a.mvn(op.width == 64, e.def(op), x);
}

void emit_Inc(Emitter& e, const Op& op) { step(e, op, false); }
void emit_Dec(Emitter& e, const Op& op) { step(e, op, true); }

void emit_Lea(Emitter& e, const Op& op) {
  const bool is64 = op.width == 64;
  const auto imm = static_cast<uint64_t>(op.imm);
  const uint64_t magnitude = op.imm < 0 ? 0 - imm : imm;
  const auto add_displacement = [&](Gpr d, Gpr from) {
    if (a64::is_add_imm(magnitude)) {
      const bool shifted = magnitude > 0xfff;
      const auto field = static_cast<uint32_t>(shifted ? magnitude >> 12 : magnitude);
      if (op.imm < 0) {
        e.a.sub_imm(is64, d, from, field, shifted);
      } else {
        e.a.add_imm(is64, d, from, field, shifted);
      }
    } else {
      load_immediate(e, kScratch1, imm);
      e.a.add(is64, d, from, kScratch1);
    }
  };
  if (op.a == kNoValue && op.b == kNoValue) {
    load_immediate(e, e.def(op), is64 ? imm : imm & 0xffffffff);
    return;
  }
  if (op.b == kNoValue) {
    const Gpr x = e.use(op.a);
    const Gpr d = e.def(op);
    if (op.imm == 0) {
      e.a.mov(is64, d, x);
    } else {
      add_displacement(d, x);
    }
    return;
  }
  const Gpr y = e.use(op.b);
  const Gpr x = op.a == kNoValue ? kZr : e.use(op.a);
  const Gpr d = e.def(op);
  const Gpr sum = op.imm == 0 ? d : kScratch0;
  if (op.a == kNoValue) {
    e.a.lsl_imm(is64, sum, y, op.aux);
  } else {
    e.a.add_shifted(is64, sum, x, y, a64::LSL, op.aux);
  }
  if (op.imm != 0) add_displacement(d, sum);
}

}  // namespace phybin::emit
