// Integer, flag and system instructions. `is64` chooses X or W registers and always comes first.
//
// The manual's encoding groups are tables: each line gives the method and the word with all operands zero. The unit
// test expands the same tables, so a form cannot exist without being compared with the GNU assembler.
#pragma once

#include <cstdint>

#include "worker/translator/emit/a64_labels.h"

namespace phybin::a64 {

// Add and subtract: NAME, NAME_imm, NAME_shifted, NAME_extended.
#define PHYBIN_A64_ADD_SUB(X) \
  X(add, 0x00000000)          \
  X(adds, 0x20000000)         \
  X(sub, 0x40000000)          \
  X(subs, 0x60000000)

// Logical with a register, shifted or not: the method, its stem (AND is a keyword), the word.
#define PHYBIN_A64_LOGICAL(X) \
  X(and_, and, 0x0a000000)    \
  X(bic, bic, 0x0a200000)     \
  X(orr, orr, 0x2a000000)     \
  X(orn, orn, 0x2a200000)     \
  X(eor, eor, 0x4a000000)     \
  X(eon, eon, 0x4a200000)     \
  X(ands, ands, 0x6a000000)   \
  X(bics, bics, 0x6a200000)

// Logical with a bitmask immediate: STEM_imm takes the value, STEM_bitmask what encode_bitmask() made of it.
#define PHYBIN_A64_LOGICAL_IMM(X) \
  X(and, 0x12000000)              \
  X(orr, 0x32000000)              \
  X(eor, 0x52000000)              \
  X(ands, 0x72000000)

// is64, rd, rn, rm.
#define PHYBIN_A64_TWO_SOURCE(X) \
  X(adc, 0x1a000000)             \
  X(adcs, 0x3a000000)            \
  X(sbc, 0x5a000000)             \
  X(sbcs, 0x7a000000)            \
  X(udiv, 0x1ac00800)            \
  X(sdiv, 0x1ac00c00)            \
  X(lslv, 0x1ac02000)            \
  X(lsrv, 0x1ac02400)            \
  X(asrv, 0x1ac02800)            \
  X(rorv, 0x1ac02c00)            \
  X(mul, 0x1b007c00)             \
  X(mneg, 0x1b00fc00)

// rd, rn, rm of fixed width: the kind of rd, rn, rm in the assembler's text.
#define PHYBIN_A64_TWO_SOURCE_FIXED(X) \
  X(crc32b, w, w, w, 0x1ac04000)       \
  X(crc32h, w, w, w, 0x1ac04400)       \
  X(crc32w, w, w, w, 0x1ac04800)       \
  X(crc32x, w, w, x, 0x9ac04c00)       \
  X(crc32cb, w, w, w, 0x1ac05000)      \
  X(crc32ch, w, w, w, 0x1ac05400)      \
  X(crc32cw, w, w, w, 0x1ac05800)      \
  X(crc32cx, w, w, x, 0x9ac05c00)      \
  X(smull, x, w, w, 0x9b207c00)        \
  X(umull, x, w, w, 0x9ba07c00)        \
  X(smnegl, x, w, w, 0x9b20fc00)       \
  X(umnegl, x, w, w, 0x9ba0fc00)       \
  X(smulh, x, x, x, 0x9b407c00)        \
  X(umulh, x, x, x, 0x9bc07c00)

// is64, rd, rn.
#define PHYBIN_A64_ONE_SOURCE(X) \
  X(rbit, 0x5ac00000)            \
  X(rev16, 0x5ac00400)           \
  X(clz, 0x5ac01000)             \
  X(cls, 0x5ac01400)

// is64, rd, rn, rm, ra.
#define PHYBIN_A64_THREE_SOURCE(X) \
  X(madd, 0x1b000000)              \
  X(msub, 0x1b008000)

// rd, rn, rm, ra: Xd = Xa +/- Wn * Wm.
#define PHYBIN_A64_THREE_SOURCE_LONG(X) \
  X(smaddl, 0x9b200000)                 \
  X(smsubl, 0x9b208000)                 \
  X(umaddl, 0x9ba00000)                 \
  X(umsubl, 0x9ba08000)

// is64, rd, rn, rm, cond.
#define PHYBIN_A64_SELECT(X) \
  X(csel, 0x1a800000)        \
  X(csinc, 0x1a800400)       \
  X(csinv, 0x5a800000)       \
  X(csneg, 0x5a800400)

// is64, rn, rm or imm5, nzcv, cond: NAME, NAME_imm.
#define PHYBIN_A64_COND_COMPARE(X) \
  X(ccmn, 0x3a400000)              \
  X(ccmp, 0x7a400000)

// is64, rd, imm16, position: the immediate lands at bit 16 * position.
#define PHYBIN_A64_MOVE_WIDE(X) \
  X(movn, 0x12800000)           \
  X(movz, 0x52800000)           \
  X(movk, 0x72800000)

// is64, rd, rn, immr, imms.
#define PHYBIN_A64_BITFIELD(X) \
  X(sbfm, 0x13000000)          \
  X(bfm, 0x33000000)           \
  X(ubfm, 0x53000000)

// Extraction (is64, rd, rn, lsb, width) and insertion at lsb (same operands) of a bit field.
#define PHYBIN_A64_EXTRACT(X) \
  X(sbfx, sbfm)               \
  X(bfxil, bfm)               \
  X(ubfx, ubfm)
#define PHYBIN_A64_INSERT(X) \
  X(sbfiz, sbfm)             \
  X(bfi, bfm)                \
  X(ubfiz, ubfm)

// No operands.
#define PHYBIN_A64_PLAIN(X) \
  X(nop, 0xd503201f)        \
  X(yield, 0xd503203f)      \
  X(isb, 0xd5033fdf)        \
  X(clrex, 0xd5033f5f)      \
  X(cfinv, 0xd500401f)      \
  X(axflag, 0xd500405f)     \
  X(xaflag, 0xd500403f)

// One register: the method, the assembler's text before it, the word, the register's position.
#define PHYBIN_A64_ONE_REGISTER(X)        \
  X(br, "br x", 0xd61f0000, 5)            \
  X(blr, "blr x", 0xd63f0000, 5)          \
  X(ret, "ret x", 0xd65f0000, 5)          \
  X(setf8, "setf8 w", 0x3a00080d, 5)      \
  X(setf16, "setf16 w", 0x3a00480d, 5)    \
  X(dc_zva, "dc zva, x", 0xd50b7420, 0)   \
  X(dc_cvau, "dc cvau, x", 0xd50b7b20, 0) \
  X(ic_ivau, "ic ivau, x", 0xd50b7520, 0)

// imm16.
#define PHYBIN_A64_EXCEPTION(X) \
  X(svc, 0xd4000001, 5)         \
  X(brk, 0xd4200000, 5)         \
  X(udf, 0x00000000, 0)

class IntegerForms : public LabelForms {
 public:
  using LabelForms::LabelForms;

#define X(name, op)                                                                                             \
  void name(bool is64, Gpr rd, Gpr rn, Gpr rm) { word(0x0b000000 | (op) | sf(is64) | regs(rd, rn, rm)); }       \
  void name##_shifted(bool is64, Gpr rd, Gpr rn, Gpr rm, Shift shift, unsigned amount) {                        \
    word(0x0b000000 | (op) | sf(is64) | uint32_t{shift} << 22 | amount << 10 | regs(rd, rn, rm));               \
  }                                                                                                             \
  void name##_extended(bool is64, Gpr rd, Gpr rn, Gpr rm, Extend extend, unsigned amount) {                     \
    word(0x0b200000 | (op) | sf(is64) | static_cast<uint32_t>(extend) << 13 | amount << 10 | regs(rd, rn, rm)); \
  }                                                                                                             \
  void name##_imm(bool is64, Gpr rd, Gpr rn, uint32_t imm12, bool shift12 = false) {                            \
    word(0x11000000 | (op) | sf(is64) | uint32_t{shift12} << 22 | (imm12 & 0xfff) << 10 | regs(rd, rn));        \
  }
  PHYBIN_A64_ADD_SUB(X)
#undef X

#define X(name, stem, op)                                                                    \
  void name(bool is64, Gpr rd, Gpr rn, Gpr rm) { word((op) | sf(is64) | regs(rd, rn, rm)); } \
  void stem##_shifted(bool is64, Gpr rd, Gpr rn, Gpr rm, Shift shift, unsigned amount) {     \
    word((op) | sf(is64) | uint32_t{shift} << 22 | amount << 10 | regs(rd, rn, rm));         \
  }
  PHYBIN_A64_LOGICAL(X)
#undef X

#define X(stem, op)                                                      \
  void stem##_bitmask(bool is64, Gpr rd, Gpr rn, uint32_t n_immr_imms) { \
    word((op) | sf(is64) | n_immr_imms << 10 | regs(rd, rn));            \
  }                                                                      \
  void stem##_imm(bool is64, Gpr rd, Gpr rn, uint64_t value) {           \
    uint32_t n_immr_imms = 0;                                            \
    if (!encode_bitmask(value, is64, n_immr_imms)) failed_ = true;       \
    stem##_bitmask(is64, rd, rn, n_immr_imms);                           \
  }
  PHYBIN_A64_LOGICAL_IMM(X)
#undef X

#define X(name, op) \
  void name(bool is64, Gpr rd, Gpr rn, Gpr rm) { word((op) | sf(is64) | regs(rd, rn, rm)); }
  PHYBIN_A64_TWO_SOURCE(X)
#undef X
#define X(name, d, n, m, op) \
  void name(Gpr rd, Gpr rn, Gpr rm) { word((op) | regs(rd, rn, rm)); }
  PHYBIN_A64_TWO_SOURCE_FIXED(X)
#undef X
#define X(name, op) \
  void name(bool is64, Gpr rd, Gpr rn) { word((op) | sf(is64) | regs(rd, rn)); }
  PHYBIN_A64_ONE_SOURCE(X)
#undef X
#define X(name, op)                                                \
  void name(bool is64, Gpr rd, Gpr rn, Gpr rm, Gpr ra) {           \
    word((op) | sf(is64) | uint32_t{ra} << 10 | regs(rd, rn, rm)); \
  }
  PHYBIN_A64_THREE_SOURCE(X)
#undef X
#define X(name, op) \
  void name(Gpr rd, Gpr rn, Gpr rm, Gpr ra) { word((op) | uint32_t{ra} << 10 | regs(rd, rn, rm)); }
  PHYBIN_A64_THREE_SOURCE_LONG(X)
#undef X
#define X(name, op)                                                               \
  void name(bool is64, Gpr rd, Gpr rn, Gpr rm, Cond cond) {                       \
    word((op) | sf(is64) | static_cast<uint32_t>(cond) << 12 | regs(rd, rn, rm)); \
  }
  PHYBIN_A64_SELECT(X)
#undef X
#define X(name, op)                                                                                      \
  void name(bool is64, Gpr rn, Gpr rm, uint32_t nzcv, Cond cond) {                                       \
    word((op) | sf(is64) | static_cast<uint32_t>(cond) << 12 | nzcv | regs(0, rn, rm));                  \
  }                                                                                                      \
  void name##_imm(bool is64, Gpr rn, uint32_t imm5, uint32_t nzcv, Cond cond) {                          \
    word((op) | 0x800 | sf(is64) | imm5 << 16 | static_cast<uint32_t>(cond) << 12 | nzcv | regs(0, rn)); \
  }
  PHYBIN_A64_COND_COMPARE(X)
#undef X
#define X(name, op)                                                      \
  void name(bool is64, Gpr rd, uint32_t imm16, unsigned position = 0) {  \
    word((op) | sf(is64) | position << 21 | (imm16 & 0xffff) << 5 | rd); \
  }
  PHYBIN_A64_MOVE_WIDE(X)
#undef X
#define X(name, op)                                                                        \
  void name(bool is64, Gpr rd, Gpr rn, unsigned immr, unsigned imms) {                     \
    word((op) | sf(is64) | uint32_t{is64} << 22 | immr << 16 | imms << 10 | regs(rd, rn)); \
  }
  PHYBIN_A64_BITFIELD(X)
#undef X
#define X(name, base) \
  void name(bool is64, Gpr rd, Gpr rn, unsigned lsb, unsigned width) { base(is64, rd, rn, lsb, lsb + width - 1); }
  PHYBIN_A64_EXTRACT(X)
#undef X
#define X(name, base)                                                  \
  void name(bool is64, Gpr rd, Gpr rn, unsigned lsb, unsigned width) { \
    base(is64, rd, rn, (0u - lsb) & (is64 ? 63 : 31), width - 1);      \
  }
  PHYBIN_A64_INSERT(X)
#undef X
#define X(name, op) \
  void name() { word(op); }
  PHYBIN_A64_PLAIN(X)
#undef X
#define X(name, text, op, position) \
  void name(Gpr r) { word((op) | uint32_t{r} << (position)); }
  PHYBIN_A64_ONE_REGISTER(X)
#undef X
#define X(name, op, position) \
  void name(uint32_t imm16) { word((op) | (imm16 & 0xffff) << (position)); }
  PHYBIN_A64_EXCEPTION(X)
#undef X

  void rev(bool is64, Gpr rd, Gpr rn) { word(0x5ac00800 | sf(is64) | uint32_t{is64} << 10 | regs(rd, rn)); }
  void rev32(Gpr rd, Gpr rn) { word(0xdac00800 | regs(rd, rn)); }
  void extr(bool is64, Gpr rd, Gpr rn, Gpr rm, unsigned lsb) {
    word(0x13800000 | sf(is64) | uint32_t{is64} << 22 | lsb << 10 | regs(rd, rn, rm));
  }

  // Aliases, named as in the manual.
  void mov(bool is64, Gpr rd, Gpr rm) { orr(is64, rd, kZr, rm); }
  void mov_sp(bool is64, Gpr rd, Gpr rn) { add_imm(is64, rd, rn, 0); }  // one of the two is SP
  void mvn(bool is64, Gpr rd, Gpr rm) { orn(is64, rd, kZr, rm); }
  void neg(bool is64, Gpr rd, Gpr rm) { sub(is64, rd, kZr, rm); }
  void negs(bool is64, Gpr rd, Gpr rm) { subs(is64, rd, kZr, rm); }
  void ngc(bool is64, Gpr rd, Gpr rm) { sbc(is64, rd, kZr, rm); }
  void ngcs(bool is64, Gpr rd, Gpr rm) { sbcs(is64, rd, kZr, rm); }
  void cmp(bool is64, Gpr rn, Gpr rm) { subs(is64, kZr, rn, rm); }
  void cmp_imm(bool is64, Gpr rn, uint32_t imm12, bool shift12 = false) { subs_imm(is64, kZr, rn, imm12, shift12); }
  void cmn(bool is64, Gpr rn, Gpr rm) { adds(is64, kZr, rn, rm); }
  void cmn_imm(bool is64, Gpr rn, uint32_t imm12, bool shift12 = false) { adds_imm(is64, kZr, rn, imm12, shift12); }
  void tst(bool is64, Gpr rn, Gpr rm) { ands(is64, kZr, rn, rm); }
  void tst_imm(bool is64, Gpr rn, uint64_t value) { ands_imm(is64, kZr, rn, value); }
  void cset(bool is64, Gpr rd, Cond cond) { csinc(is64, rd, kZr, kZr, invert(cond)); }
  void csetm(bool is64, Gpr rd, Cond cond) { csinv(is64, rd, kZr, kZr, invert(cond)); }
  void cinc(bool is64, Gpr rd, Gpr rn, Cond cond) { csinc(is64, rd, rn, rn, invert(cond)); }
  void cinv(bool is64, Gpr rd, Gpr rn, Cond cond) { csinv(is64, rd, rn, rn, invert(cond)); }
  void cneg(bool is64, Gpr rd, Gpr rn, Cond cond) { csneg(is64, rd, rn, rn, invert(cond)); }
  void lsl_imm(bool is64, Gpr rd, Gpr rn, unsigned amount) {
    const unsigned top = is64 ? 63 : 31;
    ubfm(is64, rd, rn, (0u - amount) & top, top - amount);
  }
  void lsr_imm(bool is64, Gpr rd, Gpr rn, unsigned amount) { ubfm(is64, rd, rn, amount, is64 ? 63 : 31); }
  void asr_imm(bool is64, Gpr rd, Gpr rn, unsigned amount) { sbfm(is64, rd, rn, amount, is64 ? 63 : 31); }
  void ror_imm(bool is64, Gpr rd, Gpr rn, unsigned amount) { extr(is64, rd, rn, rn, amount); }
  void sxtb(bool is64, Gpr rd, Gpr rn) { sbfm(is64, rd, rn, 0, 7); }
  void sxth(bool is64, Gpr rd, Gpr rn) { sbfm(is64, rd, rn, 0, 15); }
  void sxtw(Gpr rd, Gpr rn) { sbfm(true, rd, rn, 0, 31); }
  void uxtb(Gpr rd, Gpr rn) { ubfm(false, rd, rn, 0, 7); }
  void uxth(Gpr rd, Gpr rn) { ubfm(false, rd, rn, 0, 15); }
  void uxtw(Gpr rd, Gpr rn) { orr(false, rd, kZr, rn); }

  // A constant in at most four words. is_mov_imm() says whether one is enough for all 64 bits, so that the caller can
  // prefer the literal pool.
  void mov_imm(bool is64, Gpr rd, uint64_t value);
  static bool is_mov_imm(uint64_t value);

  // Branch to a displacement in bytes that the caller knows.
  void b_offset(int64_t displacement) { branch26(0x14000000, displacement); }
  void bl_offset(int64_t displacement) { branch26(0x94000000, displacement); }
  // rd = pc + displacement, and rd = (pc & ~4095) + 4096 * pages.
  void adr_offset(Gpr rd, int64_t displacement) { address(0x10000000, rd, displacement); }
  void adrp(Gpr rd, int64_t pages) { address(0x90000000, rd, pages); }

  void rmif(Gpr rn, unsigned rotate, unsigned mask) { word(0xba000400 | rotate << 15 | uint32_t{rn} << 5 | mask); }
  void dmb(Barrier barrier) { word(0xd50330bf | static_cast<uint32_t>(barrier) << 8); }
  void dsb(Barrier barrier) { word(0xd503309f | static_cast<uint32_t>(barrier) << 8); }
  void mrs(Gpr rt, SystemRegister reg) { word(0xd5200000 | static_cast<uint32_t>(reg) << 5 | rt); }
  void msr(SystemRegister reg, Gpr rt) { word(0xd5000000 | static_cast<uint32_t>(reg) << 5 | rt); }

 protected:
  static constexpr uint32_t sf(bool is64) { return uint32_t{is64} << 31; }
  static constexpr uint32_t regs(uint8_t rd, uint8_t rn) { return rd | uint32_t{rn} << 5; }
  static constexpr uint32_t regs(uint8_t rd, uint8_t rn, uint8_t rm) {
    return rd | uint32_t{rn} << 5 | uint32_t{rm} << 16;
  }

 private:
  void branch26(uint32_t op, int64_t displacement) {
    if (displacement + (1 << 27) >= (1 << 28) || displacement < -(1 << 27)) failed_ = true;
    word(op | (static_cast<uint32_t>(displacement >> 2) & 0x3ffffff));
  }
  void address(uint32_t op, Gpr rd, int64_t value) {
    if (value >= (1 << 20) || value < -(1 << 20)) failed_ = true;
    const auto bits = static_cast<uint32_t>(value);
    word(op | (bits & 3) << 29 | (bits >> 2 & 0x7ffff) << 5 | rd);
  }
};

}  // namespace phybin::a64
