// Which lifter and which helper serve each x87 mnemonic.
#include <array>

#include "worker/translator/lift/x87.h"

namespace phybin::lift {

namespace {

using namespace x87;  // NOLINT: the file is about nothing else
using decode::Mnemonic;

struct Row {
  Mnemonic mnemonic;
  X87Form form;
};

// clang-format off
#define ROW(name, lifter, helper, ...) {Mnemonic::k##name, {lifter, LightHelper::k_x87_##helper, ##__VA_ARGS__}}
#define ROW_STATE(name, lifter, helper) \
  {Mnemonic::k##name, {lifter, LightHelper::kCount, static_cast<uint16_t>(StateHelper::k_##helper)}}
#define ROW_ALONE(name, lifter, ...) {Mnemonic::k##name, {lifter, LightHelper::kCount, ##__VA_ARGS__}}
#define OPERATION(name) ROW(name, lift_x87_call, operation, k##name)
#define CONSTANT(name, constant) ROW(name, lift_x87_call, fld_constant, constant)
#define INTEGER(name, operation) ROW_ALONE(name, lift_x87_integer_arithmetic, operation)

constexpr Row kRows[] = {
    ROW(Fadd, lift_x87_arithmetic, fadd, kMemoryAdd),
    ROW(Faddp, lift_x87_arithmetic, fadd, kArithmeticPop),
    ROW(Fmul, lift_x87_arithmetic, fmul, kMemoryMultiply),
    ROW(Fmulp, lift_x87_arithmetic, fmul, kArithmeticPop),
    ROW(Fsub, lift_x87_arithmetic, fsub, kMemorySubtract),
    ROW(Fsubp, lift_x87_arithmetic, fsub, kArithmeticPop),
    ROW(Fsubr, lift_x87_arithmetic, fsub, kReversed | kMemorySubtractReversed),
    ROW(Fsubrp, lift_x87_arithmetic, fsub, kReversed | kArithmeticPop),
    ROW(Fdiv, lift_x87_arithmetic, fdiv, kMemoryDivide),
    ROW(Fdivp, lift_x87_arithmetic, fdiv, kArithmeticPop),
    ROW(Fdivr, lift_x87_arithmetic, fdiv, kReversed | kMemoryDivideReversed),
    ROW(Fdivrp, lift_x87_arithmetic, fdiv, kReversed | kArithmeticPop),
    INTEGER(Fiadd, kMemoryAdd), INTEGER(Fimul, kMemoryMultiply), INTEGER(Fisub, kMemorySubtract),
    INTEGER(Fisubr, kMemorySubtractReversed), INTEGER(Fidiv, kMemoryDivide), INTEGER(Fidivr, kMemoryDivideReversed),
    INTEGER(Ficom, kMemoryCompare), INTEGER(Ficomp, kMemoryComparePop),

    ROW(Fcom, lift_fcom, fcom), ROW(Fcomp, lift_fcom, fcom, kComparePop),
    ROW(Fcompp, lift_fcom, fcom, kComparePopTwice),
    ROW(Fucom, lift_fcom, fcom, kCompareQuiet), ROW(Fucomp, lift_fcom, fcom, kCompareQuiet | kComparePop),
    ROW(Fucompp, lift_fcom, fcom, kCompareQuiet | kComparePopTwice),
    ROW(Fcomi, lift_fcomi, fcomi), ROW(Fcomip, lift_fcomi, fcomi, kComparePop),
    ROW(Fucomi, lift_fcomi, fcomi, kCompareQuiet), ROW(Fucomip, lift_fcomi, fcomi, kCompareQuiet | kComparePop),
    ROW(Fcmovcc, lift_fcmov, fcmov),

    ROW_ALONE(Fld, lift_fld), ROW_ALONE(Fild, lift_fild), ROW_ALONE(Fbld, lift_fbld),
    ROW_ALONE(Fst, lift_fst), ROW_ALONE(Fstp, lift_fst, 1), ROW_ALONE(Fbstp, lift_fbstp),
    ROW_ALONE(Fist, lift_fist), ROW_ALONE(Fistp, lift_fist, kStorePop),
    ROW_ALONE(Fisttp, lift_fist, kStorePop | kStoreTruncate),
    ROW_ALONE(Fld1, lift_fld1), CONSTANT(Fldl2t, kLog2Of10), CONSTANT(Fldl2e, kLog2OfE), CONSTANT(Fldpi, kPi),
    CONSTANT(Fldlg2, kLog10Of2), CONSTANT(Fldln2, kLogOf2), ROW_ALONE(Fldz, lift_fldz),
    ROW_ALONE(Fxch, lift_fxch), ROW_ALONE(Fchs, lift_fchs), ROW_ALONE(Fabs, lift_fabs),

    OPERATION(Ftst), OPERATION(Fxam), OPERATION(Fsqrt), OPERATION(Frndint), OPERATION(Fscale), OPERATION(Fxtract),
    OPERATION(Fprem), OPERATION(Fprem1), OPERATION(F2xm1), OPERATION(Fyl2x), OPERATION(Fyl2xp1), OPERATION(Fptan),
    OPERATION(Fpatan), OPERATION(Fsin), OPERATION(Fcos), OPERATION(Fsincos),

    ROW(Fincstp, lift_x87_call, fincstp), ROW(Fdecstp, lift_x87_call, fdecstp),
    ROW_ALONE(Ffree, lift_ffree), ROW_ALONE(Ffreep, lift_ffree, 1),
    ROW(Fninit, lift_x87_call_no_wait, fninit), ROW(Fnclex, lift_x87_call_no_wait, fnclex),
    ROW_ALONE(Fnop, lift_fwait), ROW_ALONE(Fwait, lift_fwait),
    ROW_ALONE(Fldcw, lift_fldcw), ROW_ALONE(Fnstcw, lift_fnstcw), ROW_ALONE(Fnstsw, lift_fnstsw),
    ROW_STATE(Fnstenv, lift_x87_image_no_wait, x87_fnstenv), ROW_STATE(Fldenv, lift_x87_image, x87_fldenv),
    ROW_STATE(Fnsave, lift_x87_image_no_wait, x87_fnsave), ROW_STATE(Frstor, lift_x87_image, x87_frstor),
};
// clang-format on

constexpr std::array<X87Form, decode::kMnemonicCount> by_mnemonic() {
  std::array<X87Form, decode::kMnemonicCount> forms{};
  for (const Row& row : kRows) forms[static_cast<unsigned>(row.mnemonic)] = row.form;
  return forms;
}
constexpr std::array<X87Form, decode::kMnemonicCount> kForms = by_mnemonic();

}  // namespace

const X87Form& x87_form(decode::Mnemonic mnemonic) { return kForms[static_cast<unsigned>(mnemonic)]; }

}  // namespace phybin::lift
