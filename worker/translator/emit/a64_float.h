// Scalar floating point. The Size of the format (kS or kD, kH where the manual has it) comes after `is64`, if there
// is one.
#pragma once

#include <cstdint>

#include "worker/translator/emit/a64_memory.h"

namespace phybin::a64 {

// size, vd, vn, vm.
#define PHYBIN_A64_FP_TWO_SOURCE(X) \
  X(fmul, 0x1e200800)               \
  X(fdiv, 0x1e201800)               \
  X(fadd, 0x1e202800)               \
  X(fsub, 0x1e203800)               \
  X(fmax, 0x1e204800)               \
  X(fmin, 0x1e205800)               \
  X(fmaxnm, 0x1e206800)             \
  X(fminnm, 0x1e207800)             \
  X(fnmul, 0x1e208800)

// size, vd, vn. The last four are ARMv8.5 (FRINTTS): out of range gives the most negative integer, as on x86.
#define PHYBIN_A64_FP_ONE_SOURCE(X) \
  X(fmov, 0x1e204000)               \
  X(fabs, 0x1e20c000)               \
  X(fneg, 0x1e214000)               \
  X(fsqrt, 0x1e21c000)              \
  X(frintn, 0x1e244000)             \
  X(frintp, 0x1e24c000)             \
  X(frintm, 0x1e254000)             \
  X(frintz, 0x1e25c000)             \
  X(frinta, 0x1e264000)             \
  X(frintx, 0x1e274000)             \
  X(frinti, 0x1e27c000)             \
  X(frint32z, 0x1e284000)           \
  X(frint32x, 0x1e28c000)           \
  X(frint64z, 0x1e294000)           \
  X(frint64x, 0x1e29c000)

// size, vd, vn, vm, va.
#define PHYBIN_A64_FP_THREE_SOURCE(X) \
  X(fmadd, 0x1f000000)                \
  X(fmsub, 0x1f008000)                \
  X(fnmadd, 0x1f200000)               \
  X(fnmsub, 0x1f208000)

// size, vn, vm; NAME_zero: size, vn.
#define PHYBIN_A64_FP_COMPARE(X) \
  X(fcmp, 0x1e202000)            \
  X(fcmpe, 0x1e202010)

// size, vn, vm, nzcv, cond.
#define PHYBIN_A64_FP_COND_COMPARE(X) \
  X(fccmp, 0x1e200400)                \
  X(fccmpe, 0x1e200410)

// To an integer in a general register: is64, size, rd, vn.
#define PHYBIN_A64_FP_TO_INT(X) \
  X(fcvtns, 0x1e200000)         \
  X(fcvtnu, 0x1e210000)         \
  X(fcvtas, 0x1e240000)         \
  X(fcvtau, 0x1e250000)         \
  X(fcvtps, 0x1e280000)         \
  X(fcvtpu, 0x1e290000)         \
  X(fcvtms, 0x1e300000)         \
  X(fcvtmu, 0x1e310000)         \
  X(fcvtzs, 0x1e380000)         \
  X(fcvtzu, 0x1e390000)

// From one: is64, size, vd, rn.
#define PHYBIN_A64_FP_FROM_INT(X) \
  X(scvtf, 0x1e220000)            \
  X(ucvtf, 0x1e230000)

class FloatForms : public MemoryForms {
 public:
  using MemoryForms::MemoryForms;

#define X(name, op) \
  void name(Size size, Vec vd, Vec vn, Vec vm) { word((op) | ftype(size) | regs(vd, vn, vm)); }
  PHYBIN_A64_FP_TWO_SOURCE(X)
#undef X
#define X(name, op) \
  void name(Size size, Vec vd, Vec vn) { word((op) | ftype(size) | regs(vd, vn)); }
  PHYBIN_A64_FP_ONE_SOURCE(X)
#undef X
#define X(name, op)                                                   \
  void name(Size size, Vec vd, Vec vn, Vec vm, Vec va) {              \
    word((op) | ftype(size) | uint32_t{va} << 10 | regs(vd, vn, vm)); \
  }
  PHYBIN_A64_FP_THREE_SOURCE(X)
#undef X
#define X(name, op)                                                                    \
  void name(Size size, Vec vn, Vec vm) { word((op) | ftype(size) | regs(0, vn, vm)); } \
  void name##_zero(Size size, Vec vn) { word((op) | 8 | ftype(size) | regs(0, vn)); }
  PHYBIN_A64_FP_COMPARE(X)
#undef X
#define X(name, op)                                                                        \
  void name(Size size, Vec vn, Vec vm, uint32_t nzcv, Cond cond) {                         \
    word((op) | ftype(size) | static_cast<uint32_t>(cond) << 12 | nzcv | regs(0, vn, vm)); \
  }
  PHYBIN_A64_FP_COND_COMPARE(X)
#undef X
#define X(name, op) \
  void name(bool is64, Size size, Gpr rd, Vec vn) { word((op) | sf(is64) | ftype(size) | regs(rd, vn)); }
  PHYBIN_A64_FP_TO_INT(X)
#undef X
#define X(name, op) \
  void name(bool is64, Size size, Vec vd, Gpr rn) { word((op) | sf(is64) | ftype(size) | regs(vd, rn)); }
  PHYBIN_A64_FP_FROM_INT(X)
#undef X

  void fcsel(Size size, Vec vd, Vec vn, Vec vm, Cond cond) {
    word(0x1e200c00 | ftype(size) | static_cast<uint32_t>(cond) << 12 | regs(vd, vn, vm));
  }
  // Between two different formats of H, S and D.
  void fcvt(Size to, Size from, Vec vd, Vec vn) { word(0x1e224000 | ftype(from) | ftype(to) >> 7 | regs(vd, vn)); }
  // imm8 from encode_fp64_imm() or encode_fp32_imm().
  void fmov_imm(Size size, Vec vd, uint32_t imm8) { word(0x1e201000 | ftype(size) | imm8 << 13 | vd); }
  // Bits between a general register and the lowest 32 or 64 bits of a vector register; writing clears the rest.
  void fmov_to_gpr(bool is64, Gpr rd, Vec vn) { word(0x1e260000 | sf(is64) | uint32_t{is64} << 22 | regs(rd, vn)); }
  void fmov_from_gpr(bool is64, Vec vd, Gpr rn) { word(0x1e270000 | sf(is64) | uint32_t{is64} << 22 | regs(vd, rn)); }
  // The same with the upper 64 bits; writing keeps the lower ones.
  void fmov_high_to_gpr(Gpr rd, Vec vn) { word(0x9eae0000 | regs(rd, vn)); }
  void fmov_high_from_gpr(Vec vd, Gpr rn) { word(0x9eaf0000 | regs(vd, rn)); }

 protected:
  // The type field: S 0, D 1, H 3.
  static constexpr uint32_t ftype(Size size) { return ((size.log2 ^ 2u) & 3) << 22; }
};

}  // namespace phybin::a64
