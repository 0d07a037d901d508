// x86's NaNs.
//
// The result of an invalid operation is the negative default NaN on x86 (SDM vol. 1, 4.8.3.7) and the positive one
// here. Of two NaN operands x86 takes the first one (table 4-7), A64 prefers a signaling one (Arm ARM,
// FPProcessNaNs). So results are looked at: whether one is a NaN, which is rare; then code out of line chooses anew.
// FFixNan looks at one result; FCheckNan at those of a window of operations (passes/nan_windows.h), all of which are
// then computed again. The results are looked at and not FPSR.IOC, which says the same in fewer instructions: reading
// FPSR waits for all floating-point work in flight on the cores that this runs on, while these checks are off the
// critical path.
#include "worker/translator/emit/emitter.h"
#include "worker/translator/emit/nzcv.h"

namespace phybin::emit {

using a64::kD;
using a64::Label;
using a64::Size;
using a64::Vec;
using ir::Op;
using ir::Opcode;
using ir::ValueId;

namespace {

constexpr Vec kAbsent = 31;                 // no second operand
constexpr uint8_t kFloat = 2, kDouble = 3;  // Op::aux

bool is_packed(const Op& op) { return op.width == 128; }

// In every element where r is a NaN: the first source's NaN made quiet; else, if the second is a NaN, r is that
// already; else r is the positive default and has to be the negative one. The maximum of a NaN and itself is that
// NaN, quiet, and raises nothing that the operation has not raised.
void choose_nan(Emitter& e, Size size, bool packed, Vec r, Vec first, Vec second) {
  const Vec t0 = kVecScratch0, t1 = kVecScratch1, t2 = kVecScratch2;
  const auto ordered = [&](Vec d, Vec n) {
    if (packed) {
      e.a.vfcmeq(true, size, d, n, n);
    } else {
      e.a.fcmeq_scalar(size, d, n, n);
    }
  };
  e.a.vfneg(true, size, t2, r);
  if (second == kAbsent) {
    ordered(t0, first);
    ordered(t1, r);
    e.a.vbic(packed, t0, t0, t1);
    e.a.vbit(packed, r, t2, t0);
    return;
  }
  ordered(t0, second);
  e.a.vbsl(packed, t0, t2, r);
  if (packed) {
    e.a.vfmax(true, size, t1, first, first);
  } else {
    e.a.fmax(size, t1, first, first);
  }
  ordered(t2, first);
  e.a.vbsl(packed, t2, t0, t1);
  ordered(t0, r);
  e.a.vbif(packed, r, t2, t0);
}

void cold_fix_nan(Emitter& e, const ColdPath& cold) {
  choose_nan(e, Size(cold.regs[3]), cold.regs[4] != 0, cold.regs[0], cold.regs[1], cold.regs[2]);
  e.a.b(cold.back);
}

void cold_compute_again(Emitter& e, const ColdPath& cold) {
  e.compute_again(cold.data);
  e.a.b(cold.back);
}

// d = a NaN if an element of n is one: their maximum.
void reduce(Emitter& e, uint8_t size, Vec d, Vec n) {
  if (size == kDouble) {
    e.a.fmaxp_scalar(kD, d, n);
  } else {
    e.a.vfmaxv(d, n);
  }
}

void branch_if_nan(Emitter& e, const Op& op, uint8_t size, Vec probe, Label to) {
  if (nzcv_is_free(e, op)) {
    e.a.fcmp(size, probe, probe);
    e.a.b_cond(a64::Cond::VS, to);
  } else {
    e.a.fcmeq_scalar(size, kVecScratch0, probe, probe);
    e.a.fmov_to_gpr(size == kDouble, kScratch0, kVecScratch0);
    e.a.cbz(size == kDouble, kScratch0, to);
  }
}

// The maximum of numbers of which one is a NaN is a NaN, and raises nothing if that is quiet. So one look is enough
// for all values of a format.
void check_format(Emitter& e, const Op& op, uint8_t size, Label to) {
  const Op* const keep = &op + 1;
  const auto value = [&](unsigned k) {
    const Op& o = keep[k / 3];
    return k % 3 == 0 ? o.a : k % 3 == 1 ? o.b : o.c;
  };
  Vec probe = kAbsent;
  for (const bool packed : {true, false}) {
    for (unsigned k = 0; k < op.aux2; ++k) {
      const Op& made_by = e.region.ops[value(k)];
      if (made_by.aux != size || is_packed(made_by) != packed) continue;
      const Vec v = e.use_vec(value(k));
      if (probe == kAbsent) {
        probe = v;
        continue;
      }
      if (packed) {
        e.a.vfmax(true, size, kVecScratch0, probe, v);
      } else {
        e.a.fmax(size, kVecScratch0, probe, v);
      }
      probe = kVecScratch0;
    }
    if (packed && probe != kAbsent) {
      reduce(e, size, kVecScratch0, probe);
      probe = kVecScratch0;
    }
  }
  if (probe != kAbsent) branch_if_nan(e, op, size, probe, to);
}

}  // namespace

// The sources may live in registers that the result is to have, so it moves there (def_vec) only after the check.
void emit_FFixNan(Emitter& e, const Op& op) {
  const bool has_second = op.c != ir::kNoValue && op.c != op.b;
  if (op.again) {
    if (!e.computes_again()) {
      e.def_vec(op);
      return;
    }
    const Vec first = e.use_vec(op.b);
    const Vec second = has_second ? e.use_vec(op.c) : kAbsent;
    choose_nan(e, Size(op.aux), is_packed(op), e.def_vec(op), first, second);
    return;
  }
  const Vec r = e.use_vec(op.a);
  const Vec first = e.use_vec(op.b);
  const Vec second = has_second ? e.use_vec(op.c) : kAbsent;
  ColdPath& cold = e.add_cold(cold_fix_nan);
  cold.regs[0] = r;
  cold.regs[1] = first;
  cold.regs[2] = second;
  cold.regs[3] = op.aux;
  cold.regs[4] = is_packed(op);
  const Label entry = cold.entry, back = cold.back;
  Vec probe = r;
  if (is_packed(op)) {
    probe = kVecScratch0;
    reduce(e, op.aux, probe, r);
  }
  branch_if_nan(e, op, op.aux, probe, entry);
  e.a.bind(back);
  e.def_vec(op);
}

void emit_FCheckNan(Emitter& e, const Op& op) {
  const uint64_t window = e.note_again_window();
  ColdPath& cold = e.add_cold(cold_compute_again);
  cold.data = window;
  const Label entry = cold.entry, back = cold.back;
  check_format(e, op, kDouble, entry);
  check_format(e, op, kFloat, entry);
  e.a.bind(back);
}

void emit_FKeep(Emitter&, const Op&) {}

uint64_t Emitter::note_again_window() {
  const Op& check = ops_[current_];
  AgainWindow window{static_cast<uint16_t>(check.imm), current_, static_cast<uint32_t>(again_values_.size()), 0, 0};
  const auto note = [&](ValueId value) {
    if (value != ir::kNoValue) again_values_.push_back({value, use_vec(value)});
  };
  for (unsigned k = 1; k <= check.aux; ++k) {
    note(ops_[current_ + k].a);
    note(ops_[current_ + k].b);
    note(ops_[current_ + k].c);
  }
  for (ValueId value = window.first; value < current_; ++value) {
    if (ops_[value].again && ops_[value].where != Where::kNowhere && ops_[value].uses != 0) note(value);
  }
  window.end_value = static_cast<uint32_t>(again_values_.size());
  window.free_vec = free_vec_;
  again_windows_.push_back(window);
  return again_windows_.size() - 1;
}

void Emitter::compute_again(uint64_t index) {
  const AgainWindow window = again_windows_[index];
  for (unsigned i = window.first; i < window.check; ++i) ops_[i].where = Where::kNowhere;
  for (uint32_t k = window.first_value; k < window.end_value; ++k) {
    Op& v = ops_[again_values_[k].value];
    v.where = Where::kTemp;
    v.reg = again_values_[k].reg;
  }
  static_cast<IntegerTables&>(*this) = IntegerTables{};
  static_cast<VectorTables&>(*this) = VectorTables{};
  free_vec_ = window.free_vec;
  computes_again_ = true;
  for (uint16_t i = window.first; i < window.check; ++i) {
    const Op& op = ops_[i];
    if (!op.again || op.dead) continue;
    current_ = i;
    kEmit[static_cast<unsigned>(op.code)](*this, op);
  }
  computes_again_ = false;
}

// Results that are wanted after the check go to where they are then, others to registers that are free there. What
// the window starts from is overwritten by none of them.
Vec Emitter::def_vec_again(const Op& op) {
  Op& v = ops_[current_];
  if (v.where != Where::kTemp) {
    Op* wanted = &v;
    if (Op& fix = ops_[current_ + 1]; fix.code == Opcode::kFFixNan && fix.again && fix.a == current_) wanted = &fix;
    if (wanted->where != Where::kTemp) {
      wanted->where = Where::kTemp;
      wanted->reg = allocate_vec();
    }
    v.where = Where::kTemp;
    v.reg = wanted->reg;
  }
  if ((ir::traits(op.code) & ir::kTied) != 0) {
    const Vec from = use_vec(op.a);
    if (from != v.reg) a.vmov(true, v.reg, from);
  }
  return v.reg;
}

}  // namespace phybin::emit
