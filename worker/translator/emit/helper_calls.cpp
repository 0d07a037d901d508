// Calls of C++ helpers, and DIV/IDIV, whose rare cases need one.
//
// A helper call costs its stub the saving of guest registers, so values in temporaries are what has to move here. See
// helper_ids.h for the two kinds of helpers.
#include "worker/translator/emit/emitter.h"
#include "worker/translator/helper_ids.h"

namespace phybin::emit {

using a64::Cond;
using a64::Gpr;
using a64::kZr;
using a64::Label;
using ir::kNoValue;
using ir::Op;

namespace {

constexpr unsigned kRax = 0, kRdx = 2;

// Puts up to three values into x1, x2, x3. Sources may be among those registers.
void move_arguments(Emitter& e, const Gpr (&from)[3]) {
  bool done[3];
  for (unsigned i = 0; i < 3; ++i) done[i] = from[i] == kZr || from[i] == i + 1;
  for (unsigned round = 0; round < 3; ++round) {
    for (unsigned i = 0; i < 3; ++i) {
      if (done[i]) continue;
      bool blocked = false;
      for (unsigned k = 0; k < 3; ++k) blocked |= k != i && !done[k] && from[k] == i + 1;
      // A register that is its own argument must survive as well.
      if (blocked) continue;
      e.a.mov(true, static_cast<Gpr>(i + 1), from[i]);
      done[i] = true;
    }
  }
  if (done[0] && done[1] && done[2]) return;
  // A cycle: through the scratch registers.
  static constexpr Gpr kThrough[3] = {kScratch0, kScratch1, kScratch2};
  for (unsigned i = 0; i < 3; ++i) {
    if (!done[i]) e.a.mov(true, kThrough[i], from[i]);
  }
  for (unsigned i = 0; i < 3; ++i) {
    if (!done[i]) e.a.mov(true, static_cast<Gpr>(i + 1), kThrough[i]);
  }
}

void prepare_call(Emitter& e, const Op& op) {
  Gpr from[3] = {kZr, kZr, kZr};
  const ir::ValueId operands[3] = {op.a, op.b, op.c};
  for (unsigned i = 0; i < 3; ++i) {
    if (operands[i] != kNoValue) from[i] = e.use(operands[i]);
  }
  e.spill_temporaries();
  move_arguments(e, from);
}

// Division that the fast path cannot do: 128-bit dividends, overflow, zero. x1 = divisor.
void slow_division(Emitter& e, const ColdPath& cold) {
  const Op& op = e.region.ops[cold.op];
  if (cold.regs[0] != 1) e.a.mov(true, 1, cold.regs[0]);
  e.a.mov_imm(false, 2, op.width | static_cast<unsigned>(op.aux) << 8);
  e.load_guest_address(3, e.instruction_address());
  e.a.mov_imm(false, kScratch0, static_cast<unsigned>(StateHelper::k_divide));
  e.go_to_stub(Stub::kHelperState, true);
  e.a.b(cold.back);
}

}  // namespace

void emit_CallHelper(Emitter& e, const Op& op) {
  prepare_call(e, op);
  e.a.mov_imm(false, kScratch0, static_cast<uint64_t>(op.imm));
  e.go_to_stub(Stub::kHelper, true);
  if (!Emitter::unused(op)) e.def_in(op, 0);
  // x1 stays untouched until HelperResult2, which follows directly, has taken it.
}

void emit_HelperResult2(Emitter& e, const Op& op) {
  if (!Emitter::unused(op)) e.def_in(op, 1);
}

void emit_CallState(Emitter& e, const Op& op) {
  for (unsigned r = 0; r < kGuestGprs; ++r) e.evict_home(r);
  prepare_call(e, op);
  e.load_guest_address(3, e.instruction_address());
  e.a.mov_imm(false, kScratch0, static_cast<uint64_t>(op.imm));
  e.go_to_stub(Stub::kHelperState, true);
  if (op.flags_def != 0) e.set_flags(FlagForm::kCanonical);
}

void emit_ReadCounter(Emitter& e, const Op& op) { e.a.mrs(e.def(op), a64::SystemRegister::CNTVCT_EL0); }

// DIV and IDIV. All flags are undefined afterwards, so comparisons are free.
void emit_Divide(Emitter& e, const Op& op) {
  const bool is_signed = op.aux != 0;
  const Gpr rax = gpr_home(kRax), rdx = gpr_home(kRdx);
  Gpr divisor = e.use(op.a);
  // The result may overwrite the divisor's home before the remainder is made.
  if (divisor == rax || divisor == rdx) {
    const Gpr copy = e.temporary();
    e.a.mov(true, copy, divisor);
    divisor = copy;
  }
  for (unsigned r = 0; r < kGuestGprs; ++r) {
    if (gpr_home(r) != divisor || !e.dies_here(op.a)) e.evict_home(r);
  }
  e.spill_temporaries();
  ColdPath& cold = e.add_cold(slow_division);
  cold.regs[0] = divisor;
  const Label slow = cold.entry, back = cold.back;
  const bool is64 = op.width == 64;
  if (op.width < 32) {
    e.a.b(slow);
  } else if (is_signed) {
    // The dividend is the sign extension of RAX nearly always; -1 is left out because of the one overflow.
    e.a.subs_shifted(is64, kZr, rdx, rax, a64::ASR, op.width - 1u);
    e.a.b_cond(Cond::NE, slow);
    e.a.adds_imm(is64, kZr, divisor, 1);
    e.a.b_cond(Cond::EQ, slow);
    e.a.cbz(is64, divisor, slow);
    e.a.sdiv(is64, kScratch0, rax, divisor);
    e.a.msub(is64, rdx, kScratch0, divisor, rax);
    e.a.mov(is64, rax, kScratch0);
  } else {
    e.a.cbnz(is64, rdx, slow);
    e.a.cbz(is64, divisor, slow);
    e.a.udiv(is64, kScratch0, rax, divisor);
    e.a.msub(is64, rdx, kScratch0, divisor, rax);
    e.a.mov(is64, rax, kScratch0);
  }
  e.a.bind(back);
  e.set_flags(FlagForm::kCanonical);
}

}  // namespace phybin::emit
