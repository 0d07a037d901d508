// The x87 instructions as functions that translated code calls: C linkage, the state first, then at most two words,
// one word back. Operand bits come from and go to memory in translated code, so that no helper can fault on a guest
// address (the save and restore instructions excepted, which work on a buffer of the caller).
//
// Each does all that its instruction does to registers, TOP, tags and status word, with the default response to a
// stack fault. An unmasked exception sets ES and keeps the destination unchanged where the CPU does;
// phybin_x87_pending then tells that the next waiting instruction must raise #MF, and
// X87State::result_suppressed that a returned value must not be stored. The instruction, data pointer and opcode
// fields are the caller's to maintain.
#pragma once

#include <cstdint>

#include "worker/runtime/helpers/x87_state.h"
#include "worker/translator/x87_interface.h"

namespace phybin::runtime::x87 {

using namespace ::phybin::x87;

// The value that a constant instruction loads under a control word.
Float80 constant_value(Constant constant, uint32_t control);

// Sizes of the images of FNSTENV and FNSAVE, with 32-bit and 16-bit operand size, and of the x87 part of FXSAVE.
enum ImageSizes : unsigned { kEnvironment32 = 28, kEnvironment16 = 14, kRegistersImage = 80, kFxsaveX87 = 160 };

}  // namespace phybin::runtime::x87

extern "C" {

using PhybinX87State = phybin::runtime::x87::X87State;

// FLD, FILD, FBLD. Integers are sign-extended to 64 bits.
uint64_t phybin_x87_fld_m32(PhybinX87State* state, uint64_t bits, uint64_t);
uint64_t phybin_x87_fld_m64(PhybinX87State* state, uint64_t bits, uint64_t);
uint64_t phybin_x87_fld_m80(PhybinX87State* state, uint64_t significand, uint64_t sign_exponent);
uint64_t phybin_x87_fld_i64(PhybinX87State* state, uint64_t value, uint64_t);
uint64_t phybin_x87_fld_sti(PhybinX87State* state, uint64_t index, uint64_t);
uint64_t phybin_x87_fld_constant(PhybinX87State* state, uint64_t constant, uint64_t);
uint64_t phybin_x87_fbld(PhybinX87State* state, uint64_t digits, uint64_t sign_and_high_digits);

// FST, FSTP: `pops` is 0 or 1; returns the bits to store.
uint64_t phybin_x87_fst_m32(PhybinX87State* state, uint64_t pops, uint64_t);
uint64_t phybin_x87_fst_m64(PhybinX87State* state, uint64_t pops, uint64_t);
// FIST, FISTP, FISTTP: size in bits with IntegerStoreFlags; the result is sign-extended.
uint64_t phybin_x87_fist(PhybinX87State* state, uint64_t size_and_flags, uint64_t);
// FSTP m80 and FBSTP are two calls: the first returns the low eight bytes and changes nothing, the second returns the
// upper two, sets the flags and pops if `pops` is 1.
uint64_t phybin_x87_fst_m80_significand(PhybinX87State* state, uint64_t, uint64_t);
uint64_t phybin_x87_fst_m80_sign_exponent(PhybinX87State* state, uint64_t pops, uint64_t);
uint64_t phybin_x87_fbst_low(PhybinX87State* state, uint64_t, uint64_t);
uint64_t phybin_x87_fbst_high(PhybinX87State* state, uint64_t pops, uint64_t);
uint64_t phybin_x87_fst_sti(PhybinX87State* state, uint64_t index, uint64_t pops);

uint64_t phybin_x87_fxch(PhybinX87State* state, uint64_t index, uint64_t);
// FCMOVcc; `taken` is whether the condition holds.
uint64_t phybin_x87_fcmov(PhybinX87State* state, uint64_t index, uint64_t taken);

uint64_t phybin_x87_fadd(PhybinX87State* state, uint64_t operands, uint64_t);
uint64_t phybin_x87_fsub(PhybinX87State* state, uint64_t operands, uint64_t);
uint64_t phybin_x87_fmul(PhybinX87State* state, uint64_t operands, uint64_t);
uint64_t phybin_x87_fdiv(PhybinX87State* state, uint64_t operands, uint64_t);
uint64_t phybin_x87_arithmetic_memory(PhybinX87State* state, uint64_t operation, uint64_t bits);

// FCOM, FUCOM and their popping forms set C0, C2, C3; FCOMI and FUCOMI return ZF, PF and CF.
uint64_t phybin_x87_fcom(PhybinX87State* state, uint64_t index_and_flags, uint64_t);
uint64_t phybin_x87_fcomi(PhybinX87State* state, uint64_t index_and_flags, uint64_t);

uint64_t phybin_x87_fchs(PhybinX87State* state, uint64_t, uint64_t);
uint64_t phybin_x87_fabs(PhybinX87State* state, uint64_t, uint64_t);
uint64_t phybin_x87_operation(PhybinX87State* state, uint64_t operation, uint64_t);

uint64_t phybin_x87_fincstp(PhybinX87State* state, uint64_t, uint64_t);
uint64_t phybin_x87_fdecstp(PhybinX87State* state, uint64_t, uint64_t);
uint64_t phybin_x87_ffree(PhybinX87State* state, uint64_t index, uint64_t pops);
uint64_t phybin_x87_fninit(PhybinX87State* state, uint64_t, uint64_t);
uint64_t phybin_x87_fnclex(PhybinX87State* state, uint64_t, uint64_t);
uint64_t phybin_x87_fnstsw(PhybinX87State* state, uint64_t, uint64_t);
uint64_t phybin_x87_fnstcw(PhybinX87State* state, uint64_t, uint64_t);
uint64_t phybin_x87_fldcw(PhybinX87State* state, uint64_t control_word, uint64_t);

// `image` is a host address; `operand16` is 1 for the 16-bit forms.
uint64_t phybin_x87_fnstenv(PhybinX87State* state, uint64_t image, uint64_t operand16);
uint64_t phybin_x87_fldenv(PhybinX87State* state, uint64_t image, uint64_t operand16);
uint64_t phybin_x87_fnsave(PhybinX87State* state, uint64_t image, uint64_t operand16);
uint64_t phybin_x87_frstor(PhybinX87State* state, uint64_t image, uint64_t operand16);
// The first kFxsaveX87 bytes of an FXSAVE or XSAVE image but for MXCSR and its mask (bytes 24 to 31); `wide` is
// REX.W.
uint64_t phybin_x87_fxsave(PhybinX87State* state, uint64_t image, uint64_t wide);
uint64_t phybin_x87_fxrstor(PhybinX87State* state, uint64_t image, uint64_t wide);

// What an MMX instruction (other than EMMS) does besides its operation: TOP 0, all registers occupied.
uint64_t phybin_x87_enter_mmx(PhybinX87State* state, uint64_t, uint64_t);
uint64_t phybin_x87_emms(PhybinX87State* state, uint64_t, uint64_t);

// Whether the next waiting instruction must raise #MF.
bool phybin_x87_pending(const PhybinX87State* state);

}  // extern "C"
