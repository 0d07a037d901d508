// The x86 flags in NZCV: their forms, the conversions between them, and everything that reads them.
//
// A64 subtractions leave C = !CF and additions C = CF. Inverting after every addition would cost three instructions
// each time without FlagM, so the form is tracked and only edges that need flags convert. See FlagForm in location.h.
#include <bit>

#include "worker/translator/emit/emitter.h"

namespace phybin::emit {

using a64::Cond;
using a64::Gpr;
using a64::kZr;
using ir::kNoValue;
using ir::Op;

namespace {

constexpr uint64_t kHostC = uint64_t{1} << 29;

bool is_parity(uint8_t cc) { return (cc & 0xe) == 10; }

// Inverts C in place.
void invert_carry(Emitter& e, Gpr scratch) {
  if (e.host.flagm) {
    e.a.cfinv();
    return;
  }
  e.a.mrs(scratch, a64::SystemRegister::NZCV);
  e.a.eor_imm(true, scratch, scratch, kHostC);
  e.a.msr(a64::SystemRegister::NZCV, scratch);
}

void set_carry_bit(Emitter& e, Gpr scratch) {
  e.a.mrs(scratch, a64::SystemRegister::NZCV);
  e.a.orr_imm(true, scratch, scratch, kHostC);
  e.a.msr(a64::SystemRegister::NZCV, scratch);
}

// From FCMP's flags to canonical ones, PF and AF at home. With p = 0 (unordered), 2 (greater) or 1, and q = -1 when
// greater or equal, else 0, the sum p + q has Z and C as wanted (Z = ZF, C = !CF, N = V = 0), p has PF's parity, and
// bit 4 of both p and the sum is 0, as AF wants.
void canonical_from_float(Emitter& e, Gpr scratch) {
  e.a.cset(false, kPfHome, Cond::VC);
  e.a.cinc(false, kPfHome, kPfHome, Cond::GT);
  e.a.csetm(false, scratch, Cond::GE);
  e.a.adds(false, kAfHome, kPfHome, scratch);
}

}  // namespace

void Emitter::set_logic_flags(const Op&) {
  flag_form_ = FlagForm::kLogic;
  logic_value_ = current_;
}

void Emitter::make_canonical() {
  const PendingFlags pending = pending_flags();
  switch (pending.form) {
    case FlagForm::kCanonical:
      return;
    case FlagForm::kDirect:
      invert_carry(*this, kScratch0);
      break;
    case FlagForm::kLogic:
      if (pending.logic_reg != kZr) {
        a.cmp_imm(pending.logic_64, pending.logic_reg, 0);
      } else {
        set_carry_bit(*this, kScratch0);
      }
      break;
    case FlagForm::kFloat:
      canonical_from_float(*this, kScratch0);
      break;
  }
  set_flags(FlagForm::kCanonical);
}

PendingFlags Emitter::pending_flags() {
  PendingFlags p;
  p.form = flag_form_;
  if (flag_form_ == FlagForm::kLogic && logic_value_ != kNoValue && ops_[logic_value_].width >= 32) {
    const Source source = source_of(logic_value_);
    if (source.kind == Source::Kind::kRegister) {
      p.logic_reg = source.reg;
      p.logic_64 = ops_[logic_value_].width == 64;
    }
  }
  if (sunk_pf_ != kNoValue) {
    p.has_pf = true;
    p.pf = source_of(sunk_pf_);
  }
  if (sunk_af_ != 0) {
    const ir::AfSource af = af_source(ops_[sunk_af_]);
    p.has_af = true;
    p.af_kind = af.kind;
    if (af.a != kNoValue) {
      p.af_a = source_of(af.a);
    } else {
      p.af_a = {Source::Kind::kConstant, 31, 0};
    }
    p.af_b =
        af.b != kNoValue ? source_of(af.b) : Source{Source::Kind::kConstant, 31, static_cast<int32_t>(af.imm & 0xff)};
  }
  return p;
}

namespace {

// Bit per register that the source needs.
uint32_t registers_of(const Source& source) {
  const bool any = source.kind == Source::Kind::kRegister || source.kind == Source::Kind::kOffset;
  return uint32_t{any} << source.reg;
}

}  // namespace

// Uses temporaries that hold nothing that the flags are made from; x16, x17 and x30 stay as they are, exits have
// their targets there.
void Emitter::materialise_all(const PendingFlags& p, ir::FlagMask needs) {
  const bool want_pf = p.has_pf && (needs & (ir::kP | ir::kA)) != 0;
  const bool want_af = p.has_af && (needs & ir::kA) != 0;
  Gpr scratch0 = 0, scratch1 = 0;
  if (want_af || p.form != FlagForm::kCanonical) {
    uint32_t free = ~(registers_of(p.pf) | registers_of(p.af_a) | registers_of(p.af_b) | 1u << p.logic_reg);
    scratch0 = static_cast<Gpr>(std::countr_zero(free));
    free &= free - 1;
    scratch1 = static_cast<Gpr>(std::countr_zero(free));
  }
  const auto get = [&](const Source& s, Gpr to) -> Gpr {
    switch (s.kind) {
      case Source::Kind::kRegister:
        return s.reg;
      case Source::Kind::kConstant:
        if (s.imm == 0) return kZr;
        a.movz(false, to, static_cast<uint32_t>(s.imm), 0);
        return to;
      case Source::Kind::kOffset:
        if (s.imm < 0) {
          a.sub_imm(true, to, s.reg, static_cast<uint32_t>(-s.imm));
        } else {
          a.add_imm(true, to, s.reg, static_cast<uint32_t>(s.imm));
        }
        return to;
      case Source::Kind::kSpill:
        a.ldr(true, to, kState,
              static_cast<uint32_t>(offsetof(GuestState, spill)) + static_cast<uint32_t>(s.imm) * 8);
        return to;
      case Source::Kind::kNone:
        break;
    }
    return kZr;
  };
  if ((needs & ir::kNzcv) != 0 || p.form == FlagForm::kFloat) {
    switch (p.form) {
      case FlagForm::kCanonical:
        break;
      case FlagForm::kDirect:
        if ((needs & ir::kC) != 0) invert_carry(*this, scratch0);
        break;
      case FlagForm::kLogic:
        if ((needs & ir::kC) == 0) break;
        if (p.logic_reg != kZr) {
          a.cmp_imm(p.logic_64, p.logic_reg, 0);
        } else {
          set_carry_bit(*this, scratch0);
        }
        break;
      case FlagForm::kFloat:
        if (needs != 0) canonical_from_float(*this, scratch0);
        break;
    }
  }
  Gpr result = kPfHome;
  if (want_pf) result = get(p.pf, kPfHome);
  if (want_af) {
    if (p.af_a.kind != Source::Kind::kNone) {
      const Gpr x = get(p.af_a, scratch0);
      const Gpr y = get(p.af_b, scratch1);
      a.eor(false, kAfHome, x, y);
    } else if (p.af_kind == ir::AfKind::kNegation) {
      a.neg(false, kAfHome, result);
    } else {
      const Gpr y = get(p.af_b, scratch1);
      if (p.af_kind == ir::AfKind::kSum) {
        a.sub(false, scratch0, result, y);
      } else {
        a.add(false, scratch0, result, y);
      }
      a.eor(false, kAfHome, scratch0, y);
    }
  }
  if (want_pf && result != kPfHome) a.mov(false, kPfHome, result);
}

Cond Emitter::condition(uint8_t cc, Cond& second) {
  second = Cond::AL;
  static constexpr Cond kCanonicalConditions[16] = {Cond::VS, Cond::VC, Cond::CC, Cond::CS, Cond::EQ, Cond::NE,
                                                    Cond::LS, Cond::HI, Cond::MI, Cond::PL, Cond::AL, Cond::AL,
                                                    Cond::LT, Cond::GE, Cond::LE, Cond::GT};
  const unsigned pair = cc >> 1;
  const bool negated = (cc & 1) != 0;
  switch (flag_form_) {
    case FlagForm::kCanonical:
      break;
    case FlagForm::kDirect:
      if (pair == 1) return negated ? Cond::CC : Cond::CS;
      if (pair == 3) make_canonical();
      break;
    case FlagForm::kLogic:
      if (pair == 1) return negated ? Cond::CC : Cond::CS;
      if (pair == 3) return negated ? Cond::NE : Cond::EQ;
      break;
    case FlagForm::kFloat:
      switch (pair) {
        case 1:
          return negated ? Cond::GE : Cond::LT;
        case 2:
          second = negated ? Cond::VC : Cond::VS;
          return negated ? Cond::NE : Cond::EQ;
        case 3:
          return negated ? Cond::GT : Cond::LE;
        case 5:
          return negated ? Cond::VC : Cond::VS;
        default:
          make_canonical();
          break;
      }
      break;
  }
  return kCanonicalConditions[cc];
}

void Emitter::folded_parity(Gpr reg) {
  a.eor_shifted(false, reg, kPfHome, kPfHome, a64::LSR, 4);
  a.eor_shifted(false, reg, reg, reg, a64::LSR, 2);
  a.eon_shifted(false, reg, reg, reg, a64::LSR, 1);
}

void Emitter::parity(Gpr reg) {
  folded_parity(reg);
  a.and_imm(false, reg, reg, 1);
}

// A comparison leaves PF and AF in NZCV too: whoever defines one of them alone turns what is left into the usual
// form.
void Emitter::leave_float_form(const Op& op) {
  if (flag_form_ != FlagForm::kFloat) return;
  if ((op.flags_use | (op.flags_live & ~op.flags_def)) != 0) {
    make_canonical();
  } else {
    set_flags(FlagForm::kCanonical);
  }
}

void Emitter::load_pf(ir::ValueId value) {
  sunk_pf_ = kNoValue;
  if (ops_[value].where == Where::kPf) return;
  if (is_constant(value)) {
    a.mov_imm(false, kPfHome, static_cast<uint32_t>(constant(value)) & 0xff);
  } else {
    a.mov(false, kPfHome, use(value));
  }
}

void Emitter::load_af(const ir::AfSource& af) {
  sunk_af_ = 0;
  const Gpr x = af.a == kNoValue ? kZr : use_or_zero(af.a);
  if (af.b != kNoValue) {
    a.eor(false, kAfHome, x, use_or_zero(af.b));
    return;
  }
  // Only bit 4 counts.
  if ((af.imm & 0x10) == 0) {
    a.mov(false, kAfHome, x);
  } else {
    a.mvn(false, kAfHome, x);
  }
}

// A comparison of floating-point numbers has PF and AF in NZCV, too: they move before something else goes there.
void Emitter::before_float_form_goes(const Op& op, bool names_raw) {
  constexpr ir::FlagMask kRaw = ir::kP | ir::kA;
  if ((op.flags_def & ir::kNzcv) != 0 && (op.flags_live & ~op.flags_def & kRaw) != 0) make_canonical();
  if (names_raw) leave_float_form(op);
}

// AF that is wanted at once comes before the operation, whose result may take the place of an operand.
void Emitter::load_af_before(const Op& op) {
  const ir::AfSource af = af_source(op);
  load_af(af);
  drop_read(af.a);
  drop_read(af.b);
  pinned_int_ = 0;
}

void Emitter::load_pf_after(const Op& op) {
  const ir::ValueId pf = pf_value(op, current_);
  if (!pf_taken_) load_pf(pf);
  pf_taken_ = false;
  sunk_pf_ = kNoValue;
  drop_read(pf);
}

void emit_SetPf(Emitter& e, const Op& op) {
  e.leave_float_form(op);
  if (op.sunk) {
    e.sunk_pf_ = op.a;
  } else {
    e.load_pf(op.a);
  }
}

void emit_SetAf(Emitter& e, const Op& op) {
  e.leave_float_form(op);
  if (op.sunk) {
    e.sunk_af_ = e.current_op();
  } else {
    e.load_af(af_source(op));
  }
}

void emit_SetCc(Emitter& e, const Op& op) {
  if (is_parity(op.aux) && e.flag_form() != FlagForm::kFloat) {
    const Gpr d = e.def(op);
    e.parity(d);
    if ((op.aux & 1) != 0) e.a.eor_imm(false, d, d, 1);
    return;
  }
  Cond second;
  const Cond cond = e.condition(op.aux, second);
  const Gpr d = e.def(op);
  e.a.cset(false, d, cond);
  if (second == Cond::AL) return;
  if (cond == Cond::EQ) {
    e.a.csinc(false, d, d, kZr, a64::invert(second));  // E: also when unordered
  } else {
    e.a.csel(false, d, d, kZr, second);  // NE: only when ordered
  }
}

void emit_Select(Emitter& e, const Op& op) {
  const bool is64 = op.width == 64;
  const Gpr x = e.use_or_zero(op.a);
  const Gpr y = e.use_or_zero(op.b);
  if (is_parity(op.aux) && e.flag_form() != FlagForm::kFloat) {
    // All ones where PF = 1; then a bitwise choice, which leaves NZCV alone.
    e.folded_parity(kScratch0);
    e.a.sbfx(is64, kScratch0, kScratch0, 0, 1);
    e.a.eor(is64, kScratch1, x, y);
    e.a.and_(is64, kScratch1, kScratch1, kScratch0);
    e.a.eor(is64, e.def(op), op.aux == 10 ? y : x, kScratch1);
    return;
  }
  Cond second;
  const Cond cond = e.condition(op.aux, second);
  if (second == Cond::AL) {
    e.a.csel(is64, e.def(op), x, y, cond);
    return;
  }
  // Both steps may need x or y again: the first one goes to scratch.
  if (cond == Cond::EQ) {
    e.a.csel(is64, kScratch0, x, y, cond);
    e.a.csel(is64, e.def(op), x, kScratch0, second);
  } else {
    e.a.csel(is64, kScratch0, x, y, cond);
    e.a.csel(is64, e.def(op), kScratch0, y, second);
  }
}

void emit_GetRflags(Emitter& e, const Op& op) {
  if ((op.flags_use & ir::kNzcv) != 0) e.make_canonical();
  const Gpr d = e.def(op);
  e.a.cset(false, d, Cond::CC);  // CF
  const auto add = [&](Cond cond, unsigned bit) {
    e.a.cset(false, kScratch0, cond);
    e.a.orr_shifted(false, d, d, kScratch0, a64::LSL, bit);
  };
  add(Cond::EQ, 6);
  add(Cond::MI, 7);
  if ((op.flags_use & ir::kV) != 0) add(Cond::VS, 11);
  e.parity(kScratch0);
  e.a.orr_shifted(false, d, d, kScratch0, a64::LSL, 2);
  e.a.eor(false, kScratch0, kAfHome, kPfHome);
  e.a.and_imm(false, kScratch0, kScratch0, 0x10);
  e.a.orr(false, d, d, kScratch0);
}

// RFLAGS bits to NZCV: CF (0), ZF (6), SF (7), OF (11). Flags outside flags_def keep their value.
void emit_SetNzcv(Emitter& e, const Op& op) {
  const Gpr x = e.use(op.a);
  const Gpr n = kScratch0, t = kScratch1;
  const bool keep = Emitter::kept_nzcv(op) != 0;
  if (keep) e.make_canonical();
  if (keep) {
    e.a.mrs(n, a64::SystemRegister::NZCV);
  } else {
    e.a.mov(false, n, kZr);
  }
  const auto move_bit = [&](ir::FlagMask flag, unsigned from, unsigned to) {
    if ((op.flags_def & flag) == 0) return;
    e.a.ubfx(false, t, x, from, 1);
    e.a.bfi(false, n, t, to, 1);
  };
  move_bit(ir::kN, 7, 31);
  move_bit(ir::kZ, 6, 30);
  move_bit(ir::kV, 11, 28);
  if ((op.flags_def & ir::kC) != 0) {
    e.a.mvn(false, t, x);
    e.a.bfi(false, n, t, 29, 1);
  }
  e.a.msr(a64::SystemRegister::NZCV, n);
  e.set_flags(FlagForm::kCanonical);
}

void emit_SetCarry(Emitter& e, const Op& op) {
  if (Emitter::kept_nzcv(op) == 0 && op.imm != 2) {
    // Only C matters: a comparison sets it. 0 - 0 leaves C = 1, that is CF = 0; 0 - 1 leaves C = 0.
    if (op.imm == 0) {
      e.a.cmp(false, kZr, kZr);
    } else {
      e.a.adds(false, kZr, kZr, kZr);
    }
    e.set_flags(FlagForm::kCanonical);
    return;
  }
  e.make_canonical();
  if (e.host.flagm && op.imm == 2) {
    e.a.cfinv();
    return;
  }
  e.a.mrs(kScratch0, a64::SystemRegister::NZCV);
  if (op.imm == 0) {
    e.a.orr_imm(true, kScratch0, kScratch0, kHostC);
  } else if (op.imm == 1) {
    e.a.and_imm(true, kScratch0, kScratch0, ~kHostC);
  } else {
    e.a.eor_imm(true, kScratch0, kScratch0, kHostC);
  }
  e.a.msr(a64::SystemRegister::NZCV, kScratch0);
}

}  // namespace phybin::emit
