// Vector instructions, made of the tables in a64_vector_tables.h; what fits no table is written out.
//
// `q` chooses 128 bits instead of 64 and comes first, then the Size of the elements. A form that narrows or widens is
// named by its narrow size, and `q` is its second variant (XTN2, SMULL2, ...), as in the encoding.
#pragma once

#include <cstdint>

#include "worker/translator/emit/a64_float.h"
#include "worker/translator/emit/a64_vector_tables.h"

namespace phybin::a64 {

class VectorForms : public FloatForms {
 public:
  using FloatForms::FloatForms;

#define X(name, text, op, sizes) \
  void name(bool q, Size size, Vec vd, Vec vn, Vec vm) { word((op) | qs(q, size) | regs(vd, vn, vm)); }
  PHYBIN_A64_V_THREE_SAME(X)
  PHYBIN_A64_V_LONG(X)
#undef X
#define X(name, text, op) \
  void name(bool q, Size size, Vec vd, Vec vn, Vec vm) { word((op) | qs(q, size) | regs(vd, vn, vm)); }
  PHYBIN_A64_V_WIDE(X)
  PHYBIN_A64_V_HIGH_NARROW(X)
#undef X
#define X(name, text, op) \
  void name(bool q, Vec vd, Vec vn, Vec vm) { word((op) | uint32_t{q} << 30 | regs(vd, vn, vm)); }
  PHYBIN_A64_V_LOGICAL(X)
#undef X
#define X(name, text, op) \
  void name(bool q, Size size, Vec vd, Vec vn, Vec vm) { word((op) | qfp(q, size) | regs(vd, vn, vm)); }
  PHYBIN_A64_V_FP_THREE_SAME(X)
#undef X
#define X(name, text, op, sizes) \
  void name(bool q, Size size, Vec vd, Vec vn) { word((op) | qs(q, size) | regs(vd, vn)); }
  PHYBIN_A64_V_TWO_REG(X)
#undef X
#define X(name, text, op) \
  void name(bool q, Vec vd, Vec vn) { word((op) | uint32_t{q} << 30 | regs(vd, vn)); }
  PHYBIN_A64_V_TWO_REG_BYTES(X)
#undef X
#define X(name, text, op) \
  void name(bool q, Size size, Vec vd, Vec vn) { word((op) | qs(q, size) | regs(vd, vn)); }
  PHYBIN_A64_V_COMPARE_ZERO(X)
  PHYBIN_A64_V_PAIR_LONG(X)
  PHYBIN_A64_V_NARROW(X)
  PHYBIN_A64_V_ACROSS(X)
  PHYBIN_A64_V_ACROSS_LONG(X)
#undef X
#define X(name, text, op) \
  void name(bool q, Size size, Vec vd, Vec vn) { word((op) | qfp(q, size) | regs(vd, vn)); }
  PHYBIN_A64_V_FP_COMPARE_ZERO(X)
  PHYBIN_A64_V_FP_TWO_REG(X)
#undef X
#define X(name, text, op) \
  void name(Vec vd, Vec vn) { word((op) | regs(vd, vn)); }
  PHYBIN_A64_V_FP_ACROSS(X)
  PHYBIN_A64_CRYPTO_TWO(X)
#undef X
#define X(name, text, op) \
  void name(Vec vd, Vec vn, Vec vm) { word((op) | regs(vd, vn, vm)); }
  PHYBIN_A64_CRYPTO_THREE(X)
#undef X
#define X(name, text, op)                                                               \
  void name(bool q, Size size, Vec vd, Vec vn, unsigned amount) {                       \
    word((op) | uint32_t{q} << 30 | ((8u << size.log2) + amount) << 16 | regs(vd, vn)); \
  }
  PHYBIN_A64_V_SHIFT_LEFT(X)
  PHYBIN_A64_V_SHIFT_LONG(X)
#undef X
#define X(name, text, op)                                                                \
  void name(bool q, Size size, Vec vd, Vec vn, unsigned amount) {                        \
    word((op) | uint32_t{q} << 30 | ((16u << size.log2) - amount) << 16 | regs(vd, vn)); \
  }
  PHYBIN_A64_V_SHIFT_RIGHT(X)
  PHYBIN_A64_V_SHIFT_NARROW(X)
#undef X
#define X(name, text, op, sizes) \
  void name(Size size, Vec vd, Vec vn, Vec vm) { word((op) | uint32_t{size.log2} << 22 | regs(vd, vn, vm)); }
  PHYBIN_A64_SCALAR_THREE(X)
#undef X
#define X(name, text, op) \
  void name(Size size, Vec vd, Vec vn, Vec vm) { word((op) | sz(size) | regs(vd, vn, vm)); }
  PHYBIN_A64_SCALAR_FP_THREE(X)
#undef X
#define X(name, text, op) \
  void name(Size size, Vec vd, Vec vn) { word((op) | sz(size) | regs(vd, vn)); }
  PHYBIN_A64_SCALAR_FP_TWO(X)
  PHYBIN_A64_SCALAR_FP_PAIR(X)
#undef X
#define X(name, text, zero, op) \
  void name(Vec vd, Vec vn) { word((op) | regs(vd, vn)); }
  PHYBIN_A64_SCALAR_D_TWO(X)
#undef X
#define X(name, text, op) \
  void name(Vec vd, Vec vn, unsigned amount) { word((op) | (64 + amount) << 16 | regs(vd, vn)); }
  PHYBIN_A64_SCALAR_SHIFT_LEFT(X)
#undef X
#define X(name, text, op) \
  void name(Vec vd, Vec vn, unsigned amount) { word((op) | (128 - amount) << 16 | regs(vd, vn)); }
  PHYBIN_A64_SCALAR_SHIFT_RIGHT(X)
#undef X
#define X(name, text, op)                                                                      \
  void name(bool q, Size size, Vec vd, Vec vn, Vec vm, unsigned index) {                       \
    const uint32_t h_l = size.log2 == 3 ? index << 11 : (index & 2) << 10 | (index & 1) << 21; \
    word((op) | qfp(q, size) | h_l | regs(vd, vn, vm));                                        \
  }
  PHYBIN_A64_V_FP_BY_ELEMENT(X)
#undef X
#define X(name, text, op)                                                                              \
  void name(bool q, Size size, Vec vd, Vec vn, Vec vm, unsigned index) {                               \
    const uint32_t h_l_m =                                                                             \
        size.log2 == 2 ? (index & 2) << 10 | (index & 1) << 21 : (index & 4) << 9 | (index & 3) << 20; \
    word((op) | qs(q, size) | h_l_m | regs(vd, vn, vm));                                               \
  }
  PHYBIN_A64_V_BY_ELEMENT(X)
#undef X
#define X(name, text, count, op)                                                                                   \
  void name(bool q, Size size, Vec vt, Gpr rn) { word((op) | q30(q) | uint32_t{size.log2} << 10 | regs(vt, rn)); } \
  void name##_post(bool q, Size size, Vec vt, Gpr rn) {                                                            \
    word((op) | 0x009f0000 | q30(q) | uint32_t{size.log2} << 10 | regs(vt, rn));                                   \
  }
  PHYBIN_A64_V_STRUCTURES(X)
#undef X

  void vmov(bool q, Vec vd, Vec vn) { vorr(q, vd, vn, vn); }
  // Extension to twice `size`; q takes the upper half.
  void vsxtl(bool q, Size size, Vec vd, Vec vn) { vsshll(q, size, vd, vn, 0); }
  void vuxtl(bool q, Size size, Vec vd, Vec vn) { vushll(q, size, vd, vn, 0); }
  // Left by the size itself while widening.
  void vshll(bool q, Size size, Vec vd, Vec vn) { word(0x2e213800 | qs(q, size) | regs(vd, vn)); }
  // Precision: to or from `wide` (S: with H; D: with S); q is the upper half of the narrow register.
  void vfcvtn(bool q, Size wide, Vec vd, Vec vn) { word(0x0e216800 | qfp(q, wide) | regs(vd, vn)); }
  void vfcvtl(bool q, Size wide, Vec vd, Vec vn) { word(0x0e217800 | qfp(q, wide) | regs(vd, vn)); }
  void vfcvtxn(bool q, Vec vd, Vec vn) { word(0x2e616800 | q30(q) | regs(vd, vn)); }
  void addp_scalar(Vec vd, Vec vn) { word(0x5ef1b800 | regs(vd, vn)); }

  // Bytes index.. of vn:vm.
  void vext(bool q, Vec vd, Vec vn, Vec vm, unsigned index) {
    word(0x2e000000 | q30(q) | index << 11 | regs(vd, vn, vm));
  }
  // Table of `count` registers from vn on. TBL gives 0 for an index beyond it, TBX keeps vd.
  void vtbl(bool q, unsigned count, Vec vd, Vec vn, Vec vm) {
    word(0x0e000000 | q30(q) | (count - 1) << 13 | regs(vd, vn, vm));
  }
  void vtbx(bool q, unsigned count, Vec vd, Vec vn, Vec vm) {
    word(0x0e001000 | q30(q) | (count - 1) << 13 | regs(vd, vn, vm));
  }

  // Between elements and general registers.
  void vdup_elem(bool q, Size size, Vec vd, Vec vn, unsigned index) {
    word(0x0e000400 | q30(q) | imm5(size, index) | regs(vd, vn));
  }
  void vdup_gpr(bool q, Size size, Vec vd, Gpr rn) { word(0x0e000c00 | q30(q) | imm5(size, 0) | regs(vd, rn)); }
  void dup_scalar(Size size, Vec vd, Vec vn, unsigned index) { word(0x5e000400 | imm5(size, index) | regs(vd, vn)); }
  void ins_elem(Size size, Vec vd, unsigned index, Vec vn, unsigned source) {
    word(0x6e000400 | imm5(size, index) | source << size.log2 << 11 | regs(vd, vn));
  }
  void ins_gpr(Size size, Vec vd, unsigned index, Gpr rn) { word(0x4e001c00 | imm5(size, index) | regs(vd, rn)); }
  // To X for elements of 8 bytes, else to W.
  void umov(Size size, Gpr rd, Vec vn, unsigned index) {
    word(0x0e003c00 | uint32_t{size.log2 == 3} << 30 | imm5(size, index) | regs(rd, vn));
  }
  void smov(bool is64, Size size, Gpr rd, Vec vn, unsigned index) {
    word(0x0e002c00 | uint32_t{is64} << 30 | imm5(size, index) | regs(rd, vn));
  }

  // Constants. `shift` in bits: a multiple of 8 below the size; MSL is the shift that brings in ones (8 or 16, S
  // only).
  void movi(bool q, Size size, Vec vd, uint32_t imm8, unsigned shift = 0) {
    word(0x0f000400 | q30(q) | cmode(size, shift) | abcdefgh(imm8) | vd);
  }
  void mvni(bool q, Size size, Vec vd, uint32_t imm8, unsigned shift = 0) {
    word(0x2f000400 | q30(q) | cmode(size, shift) | abcdefgh(imm8) | vd);
  }
  void vorr_imm(bool q, Size size, Vec vd, uint32_t imm8, unsigned shift = 0) {
    word(0x0f001400 | q30(q) | cmode(size, shift) | abcdefgh(imm8) | vd);
  }
  void vbic_imm(bool q, Size size, Vec vd, uint32_t imm8, unsigned shift = 0) {
    word(0x2f001400 | q30(q) | cmode(size, shift) | abcdefgh(imm8) | vd);
  }
  void movi_msl(bool q, Vec vd, uint32_t imm8, unsigned shift) {
    word(0x0f00c400 | q30(q) | (shift >> 4) << 12 | abcdefgh(imm8) | vd);
  }
  void mvni_msl(bool q, Vec vd, uint32_t imm8, unsigned shift) {
    word(0x2f00c400 | q30(q) | (shift >> 4) << 12 | abcdefgh(imm8) | vd);
  }
  // Each bit of imm8 makes a byte of 64 bits; q repeats them, else the upper half is cleared.
  void movi_mask(bool q, Vec vd, uint32_t imm8) { word(0x2f00e400 | q30(q) | abcdefgh(imm8) | vd); }
  void vfmov_imm(bool q, Size size, Vec vd, uint32_t imm8) {
    word(0x0f00f400 | q30(q) | uint32_t{size.log2 == 3} << 29 | abcdefgh(imm8) | vd);
  }

  // One lane, and one element repeated over the register.
  void ld1_lane(Size size, Vec vt, unsigned index, Gpr rn) { word(0x0d400000 | lane(size, index) | regs(vt, rn)); }
  void st1_lane(Size size, Vec vt, unsigned index, Gpr rn) { word(0x0d000000 | lane(size, index) | regs(vt, rn)); }
  void ld1r(bool q, Size size, Vec vt, Gpr rn) {
    word(0x0d40c000 | q30(q) | uint32_t{size.log2} << 10 | regs(vt, rn));
  }

 private:
  static constexpr uint32_t q30(bool q) { return uint32_t{q} << 30; }
  static constexpr uint32_t qs(bool q, Size size) { return uint32_t{q} << 30 | uint32_t{size.log2} << 22; }
  static constexpr uint32_t sz(Size size) { return (size.log2 & 1u) << 22; }
  static constexpr uint32_t qfp(bool q, Size size) { return uint32_t{q} << 30 | sz(size); }
  static constexpr uint32_t imm5(Size size, unsigned index) { return (index * 2 + 1) << size.log2 << 16; }
  static constexpr uint32_t abcdefgh(uint32_t imm8) { return (imm8 & 0xe0) << 11 | (imm8 & 0x1f) << 5; }
  // B 1110, H 10s0, S 0ss0 (64 bits are movi_mask).
  static constexpr uint32_t cmode(Size size, unsigned shift) {
    const uint32_t kind = size.log2 == 0 ? 14 : size.log2 == 1 ? 8 : 0;
    return (kind | shift >> 2) << 12;
  }
  // The index is spread over Q, S and size, above the zeros that the element size leaves; D is marked by size 1.
  static constexpr uint32_t lane(Size size, unsigned index) {
    const uint32_t at = index << size.log2;
    const uint32_t opcode = size.log2 == 0 ? 0 : size.log2 == 1 ? 0x4000 : 0x8000;
    return opcode | (at & 8) << 27 | (at & 7) << 10 | (size.log2 == 3 ? 0x400 : 0);
  }
};

}  // namespace phybin::a64
