// Loads and stores of general and vector registers, exclusives, ordered accesses and the atomics of ARMv8.1.
//
// Single accesses are described by one MemOp, which is the part of the word that says what is moved; the addressing
// mode is the method: mem (scaled unsigned offset), mem_unscaled, mem_pre, mem_post, mem_reg. The manual's names
// (ldr, ldrsb, stur, ...) are the same with the MemOp filled in. All offsets are in bytes.
#pragma once

#include <cassert>
#include <cstdint>

#include "worker/translator/emit/a64_integer.h"

namespace phybin::a64 {

// size, V and opc of the load/store register group: the MemOp, the assembler's names (scaled, unscaled), the
// register.
#define PHYBIN_A64_MEM_OPS(X)                    \
  X(STRB, "strb", "sturb", 'w', 0x00000000)      \
  X(LDRB, "ldrb", "ldurb", 'w', 0x00400000)      \
  X(LDRSB_X, "ldrsb", "ldursb", 'x', 0x00800000) \
  X(LDRSB_W, "ldrsb", "ldursb", 'w', 0x00c00000) \
  X(STRH, "strh", "sturh", 'w', 0x40000000)      \
  X(LDRH, "ldrh", "ldurh", 'w', 0x40400000)      \
  X(LDRSH_X, "ldrsh", "ldursh", 'x', 0x40800000) \
  X(LDRSH_W, "ldrsh", "ldursh", 'w', 0x40c00000) \
  X(STR_W, "str", "stur", 'w', 0x80000000)       \
  X(LDR_W, "ldr", "ldur", 'w', 0x80400000)       \
  X(LDRSW, "ldrsw", "ldursw", 'x', 0x80800000)   \
  X(STR_X, "str", "stur", 'x', 0xc0000000)       \
  X(LDR_X, "ldr", "ldur", 'x', 0xc0400000)       \
  X(STR_B, "str", "stur", 'b', 0x04000000)       \
  X(LDR_B, "ldr", "ldur", 'b', 0x04400000)       \
  X(STR_Q, "str", "stur", 'q', 0x04800000)       \
  X(LDR_Q, "ldr", "ldur", 'q', 0x04c00000)       \
  X(STR_H, "str", "stur", 'h', 0x44000000)       \
  X(LDR_H, "ldr", "ldur", 'h', 0x44400000)       \
  X(STR_S, "str", "stur", 's', 0x84000000)       \
  X(LDR_S, "ldr", "ldur", 's', 0x84400000)       \
  X(STR_D, "str", "stur", 'd', 0xc4000000)       \
  X(LDR_D, "ldr", "ldur", 'd', 0xc4400000)

enum class MemOp : uint32_t {
#define X(name, scaled, unscaled, reg, op) name = op,
  PHYBIN_A64_MEM_OPS(X)
#undef X
};

// log2 of the bytes that the access moves.
constexpr unsigned mem_size_log2(MemOp op) {
  const auto bits = static_cast<uint32_t>(op);
  return (bits & 0x04800000) == 0x04800000 ? 4 : bits >> 30;
}
// The plain access of 1 << size bytes: general register (B to D, a W register below D) or vector register (B to Q).
constexpr MemOp load_op(Size size) { return MemOp{uint32_t{size.log2} << 30 | 0x00400000}; }
constexpr MemOp store_op(Size size) { return MemOp{uint32_t{size.log2} << 30}; }
constexpr MemOp vector_store_op(Size size) {
  return MemOp{0x04000000 | (size.log2 == 4 ? 0x00800000 : uint32_t{size.log2} << 30)};
}
constexpr MemOp vector_load_op(Size size) { return MemOp{static_cast<uint32_t>(vector_store_op(size)) | 0x00400000}; }

constexpr bool fits_scaled(MemOp op, int64_t offset) {
  const unsigned size = mem_size_log2(op);
  return offset >= 0 && (offset & ((1 << size) - 1)) == 0 && offset >> size < 4096;
}
constexpr bool fits_unscaled(int64_t offset) { return offset >= -256 && offset < 256; }
// Offset of a pair of registers of 1 << size bytes.
constexpr bool fits_pair(Size size, int64_t offset) {
  return (offset & ((1 << size.log2) - 1)) == 0 && offset >> size.log2 >= -64 && offset >> size.log2 < 64;
}

// Methods with `is64` first: name, unscaled name, MemOp for X and for W.
#define PHYBIN_A64_MEM_SIZED(X)      \
  X(ldr, ldur, LDR_X, LDR_W)         \
  X(str, stur, STR_X, STR_W)         \
  X(ldrsb, ldursb, LDRSB_X, LDRSB_W) \
  X(ldrsh, ldursh, LDRSH_X, LDRSH_W)
// Methods without.
#define PHYBIN_A64_MEM_FIXED(X) \
  X(ldrb, ldurb, LDRB)          \
  X(ldrh, ldurh, LDRH)          \
  X(ldrsw, ldursw, LDRSW)       \
  X(strb, sturb, STRB)          \
  X(strh, sturh, STRH)

// Pairs with offset, pre- and post-index: the assembler's name, the registers, log2 of their size, opc, V and L.
#define PHYBIN_A64_PAIR_OPS(X)          \
  X(STP_W, "stp", 'w', 2, 0x28000000)   \
  X(LDP_W, "ldp", 'w', 2, 0x28400000)   \
  X(LDPSW, "ldpsw", 'x', 2, 0x68400000) \
  X(STP_X, "stp", 'x', 3, 0xa8000000)   \
  X(LDP_X, "ldp", 'x', 3, 0xa8400000)   \
  X(STP_S, "stp", 's', 2, 0x2c000000)   \
  X(LDP_S, "ldp", 's', 2, 0x2c400000)   \
  X(STP_D, "stp", 'd', 3, 0x6c000000)   \
  X(LDP_D, "ldp", 'd', 3, 0x6c400000)   \
  X(STP_Q, "stp", 'q', 4, 0xac000000)   \
  X(LDP_Q, "ldp", 'q', 4, 0xac400000)

enum class PairOp : uint32_t {
#define X(name, text, reg, size, op) name = op,
  PHYBIN_A64_PAIR_OPS(X)
#undef X
};

constexpr unsigned pair_size_log2(PairOp op) {
  const auto bits = static_cast<uint32_t>(op);
  return 2 + ((bits & 0x04000000) != 0 ? bits >> 30 : bits >> 31);
}

// Accesses [rn] of 1 << size bytes, size B to D: the name without its size suffix, what precedes the size, the word.
#define PHYBIN_A64_ORDERED(X) \
  X(ldar, 0x08dffc00)         \
  X(stlr, 0x089ffc00)         \
  X(ldxr, 0x085f7c00)         \
  X(ldaxr, 0x085ffc00)        \
  X(ldapr, 0x38bfc000)

// size, rs (status), rt, rn.
#define PHYBIN_A64_STORE_EXCLUSIVE(X) \
  X(stxr, 0x08007c00)                 \
  X(stlxr, 0x0800fc00)

// is64, rt, rt2, rn.
#define PHYBIN_A64_LOAD_EXCLUSIVE_PAIR(X) \
  X(ldxp, 0x887f0000)                     \
  X(ldaxp, 0x887f8000)

// is64, rs (status), rt, rt2, rn.
#define PHYBIN_A64_STORE_EXCLUSIVE_PAIR(X) \
  X(stxp, 0x88200000)                      \
  X(stlxp, 0x88208000)

// Ordered with an unscaled offset (LRCPC2). size, rt, rn, offset.
#define PHYBIN_A64_ORDERED_UNSCALED(X) \
  X(stlur, 0x19000000)                 \
  X(ldapur, 0x19400000)

// The same, sign-extended: is64, rt, rn, offset.
#define PHYBIN_A64_ORDERED_UNSCALED_SIGNED(X) \
  X(ldapursb, 0x19800000)                     \
  X(ldapursh, 0x59800000)

// LSE: size, rs (operand), rt (old value), rn. Relaxed, acquire, release and both.
#define PHYBIN_A64_ATOMIC(X) \
  X(ldadd, 0x38200000)       \
  X(ldclr, 0x38201000)       \
  X(ldeor, 0x38202000)       \
  X(ldset, 0x38203000)       \
  X(ldsmax, 0x38204000)      \
  X(ldsmin, 0x38205000)      \
  X(ldumax, 0x38206000)      \
  X(ldumin, 0x38207000)      \
  X(swp, 0x38208000)

class MemoryForms : public IntegerForms {
 public:
  using IntegerForms::IntegerForms;

  void mem(MemOp op, uint8_t rt, Gpr rn, uint32_t offset) {
    assert(fits_scaled(op, offset));
    word(0x39000000 | static_cast<uint32_t>(op) | offset >> mem_size_log2(op) << 10 | regs(rt, rn));
  }
  void mem_unscaled(MemOp op, uint8_t rt, Gpr rn, int32_t offset) {
    word(0x38000000 | static_cast<uint32_t>(op) | imm9(offset) | regs(rt, rn));
  }
  void mem_post(MemOp op, uint8_t rt, Gpr rn, int32_t offset) {
    word(0x38000400 | static_cast<uint32_t>(op) | imm9(offset) | regs(rt, rn));
  }
  void mem_pre(MemOp op, uint8_t rt, Gpr rn, int32_t offset) {
    word(0x38000c00 | static_cast<uint32_t>(op) | imm9(offset) | regs(rt, rn));
  }
  // The same with the addressing mode encoded beforehand: by at_scaled (in units of the access's size), at_unscaled
  // or at_index.
  void mem_at(MemOp op, uint8_t rt, uint32_t address) { word(address | static_cast<uint32_t>(op) | rt); }
  static constexpr uint32_t at_scaled(Gpr rn, uint32_t units) { return 0x39000000 | units << 10 | uint32_t{rn} << 5; }
  static constexpr uint32_t at_unscaled(Gpr rn, int32_t offset) {
    return 0x38000000 | imm9(offset) | uint32_t{rn} << 5;
  }
  static constexpr uint32_t at_index(Gpr rn, Gpr rm, bool scaled) {
    return 0x38200800 | static_cast<uint32_t>(Extend::UXTX) << 13 | uint32_t{scaled} << 12 | uint32_t{rm} << 16 |
           uint32_t{rn} << 5;
  }
  // The index is extended (UXTW, UXTX as LSL, SXTW, SXTX) and, if `scaled`, multiplied by the size of the access.
  void mem_reg(MemOp op, uint8_t rt, Gpr rn, Gpr rm, Extend extend = Extend::UXTX, bool scaled = false) {
    word(0x38200800 | static_cast<uint32_t>(op) | static_cast<uint32_t>(extend) << 13 | uint32_t{scaled} << 12 |
         regs(rt, rn, rm));
  }

#define X(name, unscaled, op_x, op_w)                                                                     \
  void name(bool is64, Gpr rt, Gpr rn, uint32_t offset = 0) {                                             \
    mem(is64 ? MemOp::op_x : MemOp::op_w, rt, rn, offset);                                                \
  }                                                                                                       \
  void unscaled(bool is64, Gpr rt, Gpr rn, int32_t offset) {                                              \
    mem_unscaled(is64 ? MemOp::op_x : MemOp::op_w, rt, rn, offset);                                       \
  }                                                                                                       \
  void name##_post(bool is64, Gpr rt, Gpr rn, int32_t offset) {                                           \
    mem_post(is64 ? MemOp::op_x : MemOp::op_w, rt, rn, offset);                                           \
  }                                                                                                       \
  void name##_pre(bool is64, Gpr rt, Gpr rn, int32_t offset) {                                            \
    mem_pre(is64 ? MemOp::op_x : MemOp::op_w, rt, rn, offset);                                            \
  }                                                                                                       \
  void name##_reg(bool is64, Gpr rt, Gpr rn, Gpr rm, Extend extend = Extend::UXTX, bool scaled = false) { \
    mem_reg(is64 ? MemOp::op_x : MemOp::op_w, rt, rn, rm, extend, scaled);                                \
  }
  PHYBIN_A64_MEM_SIZED(X)
#undef X
#define X(name, unscaled, op)                                                                  \
  void name(Gpr rt, Gpr rn, uint32_t offset = 0) { mem(MemOp::op, rt, rn, offset); }           \
  void unscaled(Gpr rt, Gpr rn, int32_t offset) { mem_unscaled(MemOp::op, rt, rn, offset); }   \
  void name##_post(Gpr rt, Gpr rn, int32_t offset) { mem_post(MemOp::op, rt, rn, offset); }    \
  void name##_pre(Gpr rt, Gpr rn, int32_t offset) { mem_pre(MemOp::op, rt, rn, offset); }      \
  void name##_reg(Gpr rt, Gpr rn, Gpr rm, Extend extend = Extend::UXTX, bool scaled = false) { \
    mem_reg(MemOp::op, rt, rn, rm, extend, scaled);                                            \
  }
  PHYBIN_A64_MEM_FIXED(X)
#undef X

  // Vector registers, size B to Q.
  void ldr_v(Size size, Vec rt, Gpr rn, uint32_t offset = 0) { mem(vector_load_op(size), rt, rn, offset); }
  void str_v(Size size, Vec rt, Gpr rn, uint32_t offset = 0) { mem(vector_store_op(size), rt, rn, offset); }
  void ldur_v(Size size, Vec rt, Gpr rn, int32_t offset) { mem_unscaled(vector_load_op(size), rt, rn, offset); }
  void stur_v(Size size, Vec rt, Gpr rn, int32_t offset) { mem_unscaled(vector_store_op(size), rt, rn, offset); }
  void ldr_v_reg(Size size, Vec rt, Gpr rn, Gpr rm, Extend extend = Extend::UXTX, bool scaled = false) {
    mem_reg(vector_load_op(size), rt, rn, rm, extend, scaled);
  }
  void str_v_reg(Size size, Vec rt, Gpr rn, Gpr rm, Extend extend = Extend::UXTX, bool scaled = false) {
    mem_reg(vector_store_op(size), rt, rn, rm, extend, scaled);
  }

  void prfm(Prefetch what, Gpr rn, uint32_t offset = 0) {
    word(0xf9800000 | offset >> 3 << 10 | regs(static_cast<uint8_t>(what), rn));
  }
  void prfum(Prefetch what, Gpr rn, int32_t offset) {
    word(0xf8800000 | imm9(offset) | regs(static_cast<uint8_t>(what), rn));
  }
  void prfm_reg(Prefetch what, Gpr rn, Gpr rm, Extend extend = Extend::UXTX, bool scaled = false) {
    word(0xf8a00800 | static_cast<uint32_t>(extend) << 13 | uint32_t{scaled} << 12 |
         regs(static_cast<uint8_t>(what), rn, rm));
  }

  void pair(PairOp op, uint8_t rt, uint8_t rt2, Gpr rn, int32_t offset) { pair_mode(op, 2, rt, rt2, rn, offset); }
  void pair_post(PairOp op, uint8_t rt, uint8_t rt2, Gpr rn, int32_t offset) {
    pair_mode(op, 1, rt, rt2, rn, offset);
  }
  void pair_pre(PairOp op, uint8_t rt, uint8_t rt2, Gpr rn, int32_t offset) { pair_mode(op, 3, rt, rt2, rn, offset); }
  void ldp(bool is64, Gpr rt, Gpr rt2, Gpr rn, int32_t offset = 0) {
    pair(is64 ? PairOp::LDP_X : PairOp::LDP_W, rt, rt2, rn, offset);
  }
  void stp(bool is64, Gpr rt, Gpr rt2, Gpr rn, int32_t offset = 0) {
    pair(is64 ? PairOp::STP_X : PairOp::STP_W, rt, rt2, rn, offset);
  }
  void ldpsw(Gpr rt, Gpr rt2, Gpr rn, int32_t offset = 0) { pair(PairOp::LDPSW, rt, rt2, rn, offset); }
  // Vector registers, size S, D or Q.
  void ldp_v(Size size, Vec rt, Vec rt2, Gpr rn, int32_t offset = 0) {
    pair(PairOp{0x2c400000 | (size.log2 - 2u) << 30}, rt, rt2, rn, offset);
  }
  void stp_v(Size size, Vec rt, Vec rt2, Gpr rn, int32_t offset = 0) {
    pair(PairOp{0x2c000000 | (size.log2 - 2u) << 30}, rt, rt2, rn, offset);
  }

#define X(name, op) \
  void name(Size size, Gpr rt, Gpr rn) { word((op) | uint32_t{size.log2} << 30 | regs(rt, rn)); }
  PHYBIN_A64_ORDERED(X)
#undef X
#define X(name, op) \
  void name(Size size, Gpr rs, Gpr rt, Gpr rn) { word((op) | uint32_t{size.log2} << 30 | regs(rt, rn, rs)); }
  PHYBIN_A64_STORE_EXCLUSIVE(X)
#undef X
#define X(name, op)                                                         \
  void name(bool is64, Gpr rt, Gpr rt2, Gpr rn) {                           \
    word((op) | uint32_t{is64} << 30 | uint32_t{rt2} << 10 | regs(rt, rn)); \
  }
  PHYBIN_A64_LOAD_EXCLUSIVE_PAIR(X)
#undef X
#define X(name, op)                                                             \
  void name(bool is64, Gpr rs, Gpr rt, Gpr rt2, Gpr rn) {                       \
    word((op) | uint32_t{is64} << 30 | uint32_t{rt2} << 10 | regs(rt, rn, rs)); \
  }
  PHYBIN_A64_STORE_EXCLUSIVE_PAIR(X)
#undef X
#define X(name, op)                                                       \
  void name(Size size, Gpr rt, Gpr rn, int32_t offset) {                  \
    word((op) | uint32_t{size.log2} << 30 | imm9(offset) | regs(rt, rn)); \
  }
  PHYBIN_A64_ORDERED_UNSCALED(X)
#undef X
#define X(name, op)                                                   \
  void name(bool is64, Gpr rt, Gpr rn, int32_t offset) {              \
    word((op) | uint32_t{!is64} << 22 | imm9(offset) | regs(rt, rn)); \
  }
  PHYBIN_A64_ORDERED_UNSCALED_SIGNED(X)
#undef X
  void ldapursw(Gpr rt, Gpr rn, int32_t offset) { word(0x99800000 | imm9(offset) | regs(rt, rn)); }
#define X(name, op)                                                                                \
  void name(Size size, Gpr rs, Gpr rt, Gpr rn) { atomic((op), size, rs, rt, rn); }                 \
  void name##a(Size size, Gpr rs, Gpr rt, Gpr rn) { atomic((op) | 0x00800000, size, rs, rt, rn); } \
  void name##l(Size size, Gpr rs, Gpr rt, Gpr rn) { atomic((op) | 0x00400000, size, rs, rt, rn); } \
  void name##al(Size size, Gpr rs, Gpr rt, Gpr rn) { atomic((op) | 0x00c00000, size, rs, rt, rn); }
  PHYBIN_A64_ATOMIC(X)
#undef X

  // rs: expected value, replaced by the old one; rt: new value.
  void cas(Size size, Gpr rs, Gpr rt, Gpr rn) { atomic(0x08a07c00, size, rs, rt, rn); }
  void casal(Size size, Gpr rs, Gpr rt, Gpr rn) { atomic(0x08e0fc00, size, rs, rt, rn); }
  // Pairs: rs, rs + 1 and rt, rt + 1, both even.
  void casp(bool is64, Gpr rs, Gpr rt, Gpr rn) { word(0x08207c00 | uint32_t{is64} << 30 | regs(rt, rn, rs)); }
  void caspal(bool is64, Gpr rs, Gpr rt, Gpr rn) { word(0x0860fc00 | uint32_t{is64} << 30 | regs(rt, rn, rs)); }

 private:
  static constexpr uint32_t imm9(int32_t offset) {
    assert(fits_unscaled(offset));
    return (static_cast<uint32_t>(offset) & 0x1ff) << 12;
  }
  void pair_mode(PairOp op, uint32_t mode, uint8_t rt, uint8_t rt2, Gpr rn, int32_t offset) {
    assert(fits_pair(pair_size_log2(op), offset));
    const uint32_t imm7 = static_cast<uint32_t>(offset >> pair_size_log2(op)) & 0x7f;
    word(static_cast<uint32_t>(op) | mode << 23 | imm7 << 15 | uint32_t{rt2} << 10 | regs(rt, rn));
  }
  void atomic(uint32_t op, Size size, Gpr rs, Gpr rt, Gpr rn) {
    word(op | uint32_t{size.log2} << 30 | regs(rt, rn, rs));
  }
};

}  // namespace phybin::a64
