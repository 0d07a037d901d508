// Which value is in which register: the register bookkeeping of the emitter's walk; see emitter.h.
#include "worker/translator/emit/emitter.h"

namespace phybin::emit {

using ir::kNoValue;
using ir::Op;
using ir::Opcode;
using ir::ValueId;

namespace {

bool clobbers_early(const Op& op, const HostFeatures& host) {
  if ((ir::traits(op.code) & ir::kEarlyClobber) == 0) return false;
  switch (op.code) {
    case Opcode::kShl:
    case Opcode::kShr:
    case Opcode::kSar:
    case Opcode::kRol:
    case Opcode::kRor:
      return false;  // they read their operands first
    case Opcode::kRcl:
    case Opcode::kRcr:
      return !(op.b == kNoValue && op.imm == 1 && op.width >= 32);
    case Opcode::kAtomicRmw: {
      const auto kind = static_cast<ir::AtomicKind>(op.aux2);
      return !host.lse || kind == ir::AtomicKind::kNeg || kind == ir::AtomicKind::kNot;
    }
    default:
      return true;
  }
}

constexpr unsigned lowest(uint32_t mask) { return static_cast<unsigned>(__builtin_ctz(mask)); }

uint32_t spill_offset(unsigned slot) { return static_cast<uint32_t>(offsetof(GuestState, spill) + slot * 8); }

}  // namespace

void Emitter::release(ValueId value) {
  Op& v = ops_[value];
  const Where where = v.where;
  v.where = Where::kNowhere;
  const unsigned reg = v.reg;
  if (where == Where::kTemp) {
    // Integer and vector temporaries have different numbers; PF's home (def_in_pf) is neither.
    if (reg < kIntTemps) {
      free_int_ |= 1u << reg;
      temp_[reg] = kNoValue;
    } else if (reg < kFirstVecTemp + kVecTemps) {
      free_vec_ |= 1u << reg;
      vec_temp_[reg] = kNoValue;
    }
  } else if (where == Where::kHome) {
    std::array<ValueId, 16>& homes = is_vec(value) ? vec_home_ : home_;
    if (homes[reg] == value) homes[reg] = kNoValue;
  } else if (where == Where::kSpill) {
    (is_vec(value) ? vec_spill_[reg] : spill_[reg]) = kNoValue;
  } else if (where == Where::kOffset) {
    --offsets_;
  }
}

a64::Gpr Emitter::allocate() {
  if (free_int_ == 0) {
    // Spill a value that this operation does not use.
    for (unsigned r = 0; r < kIntTemps; ++r) {
      const ValueId victim = temp_[r];
      if (victim == kNoValue || (pinned_int_ & (1u << r)) != 0) continue;
      for (unsigned slot = 0; slot < spill_.size(); ++slot) {
        if (spill_[slot] != kNoValue) continue;
        a.str(true, static_cast<a64::Gpr>(r), kState, spill_offset(slot));
        spill_[slot] = victim;
        ops_[victim].where = Where::kSpill;
        ops_[victim].reg = static_cast<uint8_t>(slot);
        temp_[r] = kNoValue;
        free_int_ |= 1u << r;
        break;
      }
      break;
    }
  }
  if (free_int_ == 0) {
    exhausted_ = true;
    free_int_ = kAllIntTemps;
  }
  const unsigned reg = lowest(free_int_);
  free_int_ &= ~(1u << reg);
  pinned_int_ |= 1u << reg;
  return static_cast<a64::Gpr>(reg);
}

a64::Vec Emitter::allocate_vec() {
  vec_touched_ = true;
  if (free_vec_ == 0) {
    for (unsigned r = kFirstVecTemp; r < kFirstVecTemp + kVecTemps; ++r) {
      const ValueId victim = vec_temp_[r];
      if (victim == kNoValue || (pinned_vec_ & (1u << r)) != 0) continue;
      for (unsigned slot = 0; slot < vec_spill_.size(); ++slot) {
        if (vec_spill_[slot] != kNoValue) continue;
        a.str_v(a64::kQ, static_cast<a64::Vec>(r), kState,
                static_cast<uint32_t>(offsetof(GuestState, vec_spill) + slot * 16));
        vec_spill_[slot] = victim;
        ops_[victim].where = Where::kSpill;
        ops_[victim].reg = static_cast<uint8_t>(slot);
        vec_temp_[r] = kNoValue;
        free_vec_ |= 1u << r;
        break;
      }
      break;
    }
  }
  if (free_vec_ == 0) {
    exhausted_ = true;
    free_vec_ = kAllVecTemps;
  }
  const unsigned reg = lowest(free_vec_);
  free_vec_ &= ~(1u << reg);
  pinned_vec_ |= 1u << reg;
  return static_cast<a64::Vec>(reg);
}

a64::Gpr Emitter::temporary() {
  const a64::Gpr reg = allocate();
  borrowed_int_ |= 1u << reg;
  return reg;
}

a64::Vec Emitter::temporary_vec() {
  const a64::Vec reg = allocate_vec();
  borrowed_vec_ |= 1u << reg;
  return reg;
}

a64::Gpr Emitter::use_elsewhere(ValueId value) {
  Op& v = ops_[value];
  switch (v.where) {
    case Where::kHome:
      return gpr_home(v.reg);
    case Where::kTemp:
      pinned_int_ |= 1u << v.reg;
      return v.reg;
    case Where::kConst: {
      const a64::Gpr reg = allocate();
      load_constant(reg, value);
      v.where = Where::kTemp;
      v.reg = reg;
      temp_[reg] = value;
      return reg;
    }
    case Where::kOffset: {
      const a64::Gpr reg = allocate();
      const a64::Gpr from = gpr_home(v.reg);
      if (v.offset < 0) {
        a.sub_imm(true, reg, from, static_cast<uint32_t>(-v.offset));
      } else {
        a.add_imm(true, reg, from, static_cast<uint32_t>(v.offset));
      }
      --offsets_;
      v.where = Where::kTemp;
      v.reg = reg;
      temp_[reg] = value;
      return reg;
    }
    case Where::kSpill: {
      const unsigned slot = v.reg;
      const a64::Gpr reg = allocate();
      a.ldr(true, reg, kState, spill_offset(slot));
      spill_[slot] = kNoValue;
      v.where = Where::kTemp;
      v.reg = reg;
      temp_[reg] = value;
      return reg;
    }
    case Where::kPf:
      return kPfHome;
    case Where::kNowhere:
      break;
  }
  __builtin_trap();  // the verifier excludes a use before the definition
}

a64::Vec Emitter::use_vec(ValueId value) {
  Op& v = ops_[value];
  switch (v.where) {
    case Where::kHome:
      return vec_home(v.reg);
    case Where::kTemp:
      pinned_vec_ |= 1u << v.reg;
      return v.reg;
    case Where::kSpill: {
      const unsigned slot = v.reg;
      const a64::Vec reg = allocate_vec();
      a.ldr_v(a64::kQ, reg, kState, static_cast<uint32_t>(offsetof(GuestState, vec_spill) + slot * 16));
      vec_spill_[slot] = kNoValue;
      v.where = Where::kTemp;
      v.reg = reg;
      vec_temp_[reg] = value;
      return reg;
    }
    default:
      break;
  }
  __builtin_trap();
}

// The value in a guest register's home loses it. False when nothing is left to do: nobody reads it any more, or it
// can be had elsewhere.
bool Emitter::leave_home(unsigned guest_reg) {
  const ValueId old = home_[guest_reg];
  if (old == kNoValue) return false;
  home_[guest_reg] = kNoValue;
  Op& v = ops_[old];
  if (v.where != Where::kHome || v.reg != guest_reg) return false;  // this was a copy
  if (v.uses == 0) {
    v.where = Where::kNowhere;
    return false;
  }
  if (ops_[old].code == Opcode::kConst || ops_[old].code == Opcode::kGuestAddress) {
    v.where = Where::kConst;
    return false;
  }
  for (unsigned copy = 0; copy < kGuestGprs; ++copy) {
    if (home_[copy] == old) {
      v.reg = static_cast<uint8_t>(copy);
      return false;
    }
  }
  return true;
}

// The value in a guest register's home is about to be overwritten: whatever is still read moves to a temporary.
void Emitter::move_from_home(unsigned guest_reg) {
  if (offsets_ != 0) {
    for (ValueId v = this_block().first; v < current_; ++v) {
      const Op& value = ops_[v];
      if (value.where == Where::kOffset && value.reg == guest_reg && value.uses > 0) use(v);
    }
  }
  const ValueId old = home_[guest_reg];
  if (!leave_home(guest_reg)) return;
  Op& v = ops_[old];
  const a64::Gpr reg = allocate();
  a.mov(true, reg, gpr_home(guest_reg));
  v.where = Where::kTemp;
  v.reg = reg;
  temp_[reg] = old;
}

void Emitter::shift_home(unsigned guest_reg, int64_t delta) {
  if (delta < -2048 || delta > 2048) return evict_home(guest_reg);
  if (offsets_ != 0) {
    for (ValueId v = this_block().first; v < current_; ++v) {
      Op& value = ops_[v];
      if (value.where != Where::kOffset || value.reg != guest_reg || value.uses == 0) continue;
      value.offset = static_cast<int16_t>(value.offset - delta);
      if (value.offset < -4095 || value.offset > 4095) {
        value.offset = static_cast<int16_t>(value.offset + delta);
        use(v);
      }
    }
  }
  const ValueId old = home_[guest_reg];
  if (!leave_home(guest_reg)) return;
  Op& v = ops_[old];
  v.where = Where::kOffset;
  v.reg = static_cast<uint8_t>(guest_reg);
  v.offset = static_cast<int16_t>(-delta);
  ++offsets_;
}

// A guest register takes a value that was not computed into its home.
void Emitter::move_to_home(ValueId value, unsigned guest_reg) {
  Op& v = ops_[value];
  if (v.where == Where::kConst) {
    evict_home(guest_reg);
    load_constant(gpr_home(guest_reg), value);
    if (v.uses > 1) {
      v.where = Where::kHome;
      v.reg = static_cast<uint8_t>(guest_reg);
      home_[guest_reg] = value;
    }
    return;
  }
  const a64::Gpr from = use(value);
  evict_home(guest_reg);
  a.mov(true, gpr_home(guest_reg), from);
  if (v.uses <= 1) return;
  if (v.where == Where::kTemp) {
    // Further reads take the home; the temporary is free.
    temp_[v.reg] = kNoValue;
    free_int_ |= 1u << v.reg;
    v.where = Where::kHome;
    v.reg = static_cast<uint8_t>(guest_reg);
  }
  home_[guest_reg] = value;  // or a copy, for when the value's own home is overwritten
}

void Emitter::evict_vec_home(unsigned guest_reg) {
  const ValueId old = vec_home_[guest_reg];
  if (old == kNoValue) return;
  vec_home_[guest_reg] = kNoValue;
  Op& v = ops_[old];
  if (v.uses == 0) {
    v.where = Where::kNowhere;
    return;
  }
  const a64::Vec reg = allocate_vec();
  a.vmov(true, reg, vec_home(guest_reg));
  v.where = Where::kTemp;
  v.reg = reg;
  vec_temp_[reg] = old;
}

// CASAL takes the expected value and returns the old one in the same register: that can be RAX's home.
bool Emitter::exchanges_in_place(const Op& op) const {
  if (op.code != Opcode::kAtomicCas || !host.lse || op.home == 0xff) return false;
  const auto at_home = [&](ValueId value) { return ops_[value].where == Where::kHome && ops_[value].reg == op.home; };
  return at_home(op.b) && !at_home(op.a) && !at_home(op.c);
}

// The result of the current operation goes to a temporary; one that nobody reads is given back at its end.
void Emitter::hold_in(a64::Gpr reg) {
  Op& result = ops_[current_];
  if (result.uses == 0) {
    borrowed_int_ |= 1u << reg;
    return;
  }
  result.where = Where::kTemp;
  result.reg = reg;
  temp_[reg] = current_;
}

a64::Gpr Emitter::def(const Op& op) {
  if ((ir::traits(op.code) & (ir::kEarlyClobber | ir::kTied)) != 0) return def_special(op);
  const uint16_t id = current_;
  Op& result = ops_[id];
  if (gives_pf_alone(op)) {
    result.where = Where::kPf;
    return kPfHome;
  }
  const uint8_t home = op.home;
  if (home == 0xff) {
    free_dying_operands(op);
    const a64::Gpr reg = allocate();
    hold_in(reg);
    return reg;
  }
  if (offsets_ != 0 || home_[home] != kNoValue) leave_home_to(op);
  home_[home] = id;
  result.where = Where::kHome;
  result.reg = home;
  return gpr_home(home);
}

// The result of `op` is about to go to its home: what is there and is still read moves away.
void Emitter::leave_home_to(const Op& op) {
  const ValueId old = home_[op.home];
  if (old != kNoValue && dies_here(old)) {
    home_[op.home] = kNoValue;
    ops_[old].where = Where::kNowhere;
  }
  const bool moves_by_constant = old != kNoValue && op.a == old && op.b == kNoValue && op.width == 64 &&
                                 (op.code == Opcode::kAdd || op.code == Opcode::kSub || op.code == Opcode::kLea);
  if (moves_by_constant) {
    shift_home(op.home, op.code == Opcode::kSub ? -op.imm : op.imm);
  } else {
    evict_home(op.home);
  }
}

// def() of an operation that writes its result early, or into the register of its first operand.
a64::Gpr Emitter::def_special(const Op& op) {
  const bool early = clobbers_early(op, host) && !exchanges_in_place(op);
  const bool tied = (ir::traits(op.code) & ir::kTied) != 0;
  if (!early && !tied && gives_pf_alone(op)) {
    ops_[current_].where = Where::kPf;
    return kPfHome;
  }
  bool take_home = op.home != 0xff;
  if (take_home && early) {
    for (const ValueId operand : {op.a, op.b, op.c}) {
      if (operand != kNoValue && !is_vec(operand) && ops_[operand].where == Where::kHome &&
          ops_[operand].reg == op.home) {
        take_home = false;
      }
    }
  }
  if (take_home && tied && op.b != kNoValue && ops_[op.b].where == Where::kHome && ops_[op.b].reg == op.home &&
      op.a != op.b) {
    take_home = false;
  }
  a64::Gpr from = a64::kZr;
  if (tied) from = use(op.a);
  // What leaves a home goes to a register that no operand is in.
  if (!early && !tied && !take_home) free_dying_operands(op);
  if (tied && !take_home && ops_[op.a].where == Where::kTemp && dies_here(op.a) && op.b != op.a) {
    // The operand's own register becomes the result's.
    const a64::Gpr reg = ops_[op.a].reg;
    ops_[op.a].where = Where::kNowhere;
    temp_[reg] = current_;
    ops_[current_].where = Where::kTemp;
    ops_[current_].reg = reg;
    return reg;
  }
  Op& result = ops_[current_];
  a64::Gpr reg;
  if (take_home) {
    leave_home_to(op);
    if (!early && !tied) free_dying_operands(op);
    home_[op.home] = current_;
    result.where = Where::kHome;
    result.reg = op.home;
    reg = gpr_home(op.home);
  } else {
    reg = allocate();
    hold_in(reg);
  }
  if (tied && from != reg) a.mov(true, reg, from);
  return reg;
}

a64::Vec Emitter::def_vec(const Op& op) {
  if (computes_again_) [[unlikely]]
    return def_vec_again(op);
  vec_touched_ = true;
  const bool early = clobbers_early(op, host);
  const bool tied = (ir::traits(op.code) & ir::kTied) != 0;
  bool take_home = op.home != 0xff;
  if (take_home && (early || tied)) {
    for (const ValueId operand : {op.a, op.b, op.c}) {
      if (operand == kNoValue || (tied && operand == op.a && op.a != op.b && op.a != op.c)) continue;
      if (is_vec(operand) && ops_[operand].where == Where::kHome && ops_[operand].reg == op.home) {
        take_home = false;
      }
    }
  }
  a64::Vec from = 0;
  if (tied) from = use_vec(op.a);
  if (!early && !tied && !take_home) free_dying_operands(op);
  if (tied && !take_home && ops_[op.a].where == Where::kTemp && dies_here(op.a) && op.b != op.a && op.c != op.a) {
    const a64::Vec reg = ops_[op.a].reg;
    ops_[op.a].where = Where::kNowhere;
    vec_temp_[reg] = current_;
    ops_[current_].where = Where::kTemp;
    ops_[current_].reg = reg;
    return reg;
  }
  Op& result = ops_[current_];
  a64::Vec reg;
  bool is_there = false;  // a tied operand, in the result's register
  if (take_home) {
    is_there = vec_copy_[op.home] == op.a;
    vec_copy_[op.home] = kNoValue;
    const ValueId old = vec_home_[op.home];
    if (old != kNoValue && dies_here(old)) {
      vec_home_[op.home] = kNoValue;
      ops_[old].where = Where::kNowhere;
    }
    evict_vec_home(op.home);
    if (!early && !tied) free_dying_operands(op);
    vec_home_[op.home] = current_;
    result.where = Where::kHome;
    result.reg = op.home;
    reg = vec_home(op.home);
  } else {
    reg = allocate_vec();
    if (op.uses == 0) {
      borrowed_vec_ |= 1u << reg;
    } else {
      result.where = Where::kTemp;
      result.reg = reg;
      vec_temp_[reg] = current_;
    }
  }
  if (tied && from != reg && !is_there) a.vmov(true, reg, from);
  return reg;
}

void Emitter::def_in(const Op& op, a64::Gpr reg) {
  (void)op;
  free_int_ &= ~(1u << reg);
  temp_[reg] = current_;
  ops_[current_].where = Where::kTemp;
  ops_[current_].reg = reg;
}

bool Emitter::def_in_pf(const Op& op) {
  if (op.uses != 2 || op.pf != ir::RawNeed::kAtOnce) return false;
  uint16_t merge = next_living(current_);
  if (merge != 0 && ops_[merge].code == Opcode::kGetGpr) merge = next_living(merge);
  if (merge == 0 || ops_[merge].code != Opcode::kInsert || ops_[merge].b != current_) return false;
  ops_[current_].where = Where::kTemp;
  ops_[current_].reg = kPfHome;
  return take_pf(op, ir::kPfOfResult);
}

void Emitter::spill_temporaries() {
  for (unsigned r = 0; r < kIntTemps; ++r) {
    const ValueId value = temp_[r];
    if (value == kNoValue) continue;
    temp_[r] = kNoValue;
    free_int_ |= 1u << r;
    Op& v = ops_[value];
    if (dies_here(value)) {
      v.where = Where::kNowhere;
      continue;
    }
    if (is_constant(value)) {
      v.where = Where::kConst;
      continue;
    }
    for (unsigned slot = 0; slot < spill_.size(); ++slot) {
      if (spill_[slot] != kNoValue) continue;
      a.str(true, static_cast<a64::Gpr>(r), kState, spill_offset(slot));
      spill_[slot] = value;
      v.where = Where::kSpill;
      v.reg = static_cast<uint8_t>(slot);
      break;
    }
  }
}

Source Emitter::source_of(ValueId value) {
  const Op& v = ops_[value];
  switch (v.where) {
    case Where::kHome:
      return {Source::Kind::kRegister, gpr_home(v.reg), 0};
    case Where::kTemp:
      return {Source::Kind::kRegister, v.reg, 0};
    case Where::kConst:
      // PF and AF depend on its low byte alone, which of an address is the same wherever the module is loaded.
      return {Source::Kind::kConstant, 31, static_cast<int32_t>(constant(value) & 0xff)};
    case Where::kOffset:
      return {Source::Kind::kOffset, gpr_home(v.reg), v.offset};
    case Where::kSpill:
      return {Source::Kind::kSpill, 31, v.reg};
    case Where::kPf:
      return {Source::Kind::kRegister, kPfHome, 0};
    case Where::kNowhere:
      break;
  }
  return {};
}

}  // namespace phybin::emit
