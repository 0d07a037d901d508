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

namespace phybin::runtime::x87 {

// Word `a` of register arithmetic: ST(destination) = ST(destination) op ST(source), or source op destination.
inline constexpr uint64_t kReversed = 0x40;
inline constexpr uint64_t kArithmeticPop = 0x80;
constexpr uint64_t arithmetic_operands(unsigned destination, unsigned source, bool reversed, bool pops) {
  return destination | source << 3 | (reversed ? kReversed : 0) | (pops ? kArithmeticPop : 0);
}

// Word `a` of arithmetic with a memory operand: the ModRM reg field of D8, DA, DC and DE, and what the operand is.
enum MemoryOperation : uint64_t {
  kMemoryAdd,
  kMemoryMultiply,
  kMemoryCompare,
  kMemoryComparePop,
  kMemorySubtract,
  kMemorySubtractReversed,
  kMemoryDivide,
  kMemoryDivideReversed,
};
enum MemoryKind : uint64_t { kMemoryFloat32, kMemoryFloat64, kMemoryInteger };  // integers sign-extended to 64 bits
constexpr uint64_t memory_arithmetic(MemoryOperation operation, MemoryKind kind) { return operation | kind << 3; }

// Word `a` of the integer stores: the size in bits, and these.
inline constexpr uint64_t kStorePop = 0x80;
inline constexpr uint64_t kStoreTruncate = 0x100;

// Word `a` of comparisons: i of ST(i), and these.
inline constexpr uint64_t kCompareQuiet = 0x08;
inline constexpr uint64_t kComparePop = 0x10;
inline constexpr uint64_t kComparePopTwice = 0x20;

// Instructions without an explicit operand that have no function of their own.
enum Operation : uint64_t {
  kFtst,
  kFxam,
  kFsqrt,
  kFrndint,
  kFscale,
  kFxtract,
  kFprem,
  kFprem1,
  kF2xm1,
  kFyl2x,
  kFyl2xp1,
  kFptan,
  kFpatan,
  kFsin,
  kFcos,
  kFsincos,
  kOperationCount,
};

// In the order of their opcodes, D9 E8 to D9 EE.
enum Constant : uint64_t { kOne, kLog2Of10, kLog2OfE, kPi, kLog10Of2, kLogOf2, kZero };

// The value that a constant instruction loads under a control word.
Float80 constant_value(Constant constant, uint32_t control);

// EFLAGS bits returned by FCOMI.
inline constexpr uint64_t kCarryFlag = 0x01;
inline constexpr uint64_t kParityFlag = 0x04;
inline constexpr uint64_t kZeroFlag = 0x40;

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
// upper two, sets the flags and pops.
uint64_t phybin_x87_fstp_m80_significand(PhybinX87State* state, uint64_t, uint64_t);
uint64_t phybin_x87_fstp_m80_sign_exponent(PhybinX87State* state, uint64_t, uint64_t);
uint64_t phybin_x87_fbstp_low(PhybinX87State* state, uint64_t, uint64_t);
uint64_t phybin_x87_fbstp_high(PhybinX87State* state, uint64_t, uint64_t);
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
