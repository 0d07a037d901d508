// The x87's table and lifters.
//
// Memory operands are loaded and stored by ordinary operations, so that faults find the state as it was before the
// instruction: loads come before anything else, stores before the pop.
#pragma once

#include "worker/translator/lift/lifter.h"
#include "worker/translator/x87_interface.h"

namespace phybin::lift {

struct X87Form {
  LiftFunction lift = nullptr;
  LightHelper helper = LightHelper::kCount;
  uint16_t detail = 0;  // as the lifter says
};

// A form without a lifter if the mnemonic is not of the x87.
const X87Form& x87_form(decode::Mnemonic mnemonic);

// Instructions that are one call of their helper, with `detail` as its first word.
void lift_x87_call(Lifter& l);
void lift_x87_call_no_wait(Lifter& l);
// FADD and so on: detail holds kReversed, kArithmeticPop, and a MemoryOperation in the low bits.
void lift_x87_arithmetic(Lifter& l);
void lift_x87_integer_arithmetic(Lifter& l);
// Comparison flags in detail.
void lift_fcom(Lifter& l);
void lift_ficom(Lifter& l);
void lift_fcomi(Lifter& l);
void lift_fcmov(Lifter& l);
void lift_fld(Lifter& l);
void lift_fldz(Lifter& l);
void lift_fld1(Lifter& l);
void lift_fild(Lifter& l);
void lift_fxch(Lifter& l);
void lift_fchs(Lifter& l);
void lift_fabs(Lifter& l);
void lift_fbld(Lifter& l);
// detail: 1 if it pops.
void lift_fst(Lifter& l);
void lift_fbstp(Lifter& l);
// detail: kStorePop, kStoreTruncate.
void lift_fist(Lifter& l);
void lift_ffree(Lifter& l);
void lift_fwait(Lifter& l);
void lift_fldcw(Lifter& l);
void lift_fnstcw(Lifter& l);
void lift_fnstsw(Lifter& l);
// detail: a StateHelper; those of no_wait do not look for pending exceptions.
void lift_x87_image(Lifter& l);
void lift_x87_image_no_wait(Lifter& l);

}  // namespace phybin::lift
