// What the lifters of MMX and SSE instructions share: their table, and operands that may be XMM or MMX registers.
//
// The families are large and regular, so a row of the table (sse_table.cpp) names for each mnemonic the lifter of its
// family and what that lifter is to do: an IR operation and its element size.
#pragma once

#include "worker/translator/lift/lifter.h"

namespace phybin::lift {

struct SseForm {
  LiftFunction lift = nullptr;
  Opcode code = Opcode::kInvalid;
  uint8_t element = 0;  // log2 of bytes
  uint8_t extra = 0;    // as the lifter says
};

// A form without a lifter if the mnemonic is none of MMX or SSE.
const SseForm& sse_form(decode::Mnemonic mnemonic);
inline const SseForm& form_of(const Lifter& l) { return sse_form(l.in.mnemonic); }

// MMX registers are the significands of the x87 registers; an instruction that uses them makes all of these valid and
// TOP zero, and a register that is written gets an exponent field of ones (SDM vol. 1, 9.5).
ValueId read_mmx(Lifter& l, unsigned reg);
void write_mmx(Lifter& l, unsigned reg, ValueId value);
void enter_mmx(Lifter& l);

inline bool is_mmx(const Lifter& l, unsigned i) { return l.operand(i).kind == decode::OperandKind::kMmx; }
inline bool is_register(const Lifter& l, unsigned i) { return !l.is_memory(i); }
inline uint8_t vector_bits(const Lifter& l) { return is_mmx(l, 0) ? 64 : 128; }

// Address of a 16-byte memory operand that must be aligned: an access through it faults if it is not.
Address aligned_address(Lifter& l);

// XMM or MMX register, or memory of the operand's size; 16 bytes must be aligned.
ValueId read_operand(Lifter& l, unsigned i);
// The whole register, or memory of the operand's size.
void write_operand(Lifter& l, unsigned i, ValueId value);
// An operand of which only the low element matters.
ValueId read_scalar(Lifter& l, unsigned i, uint8_t element);
// The low element of XMM operand 0, the rest kept.
void write_scalar(Lifter& l, ValueId value, uint8_t element);

// Vector operations with `aux` and friends in the order in which the lifters mostly need them.
inline ValueId vec(Lifter& l, Opcode code, uint8_t width, uint8_t element, ValueId a, ValueId b = kNoValue,
                   int64_t imm = 0, uint8_t aux2 = 0) {
  return l.b.op(code, width, a, b, kNoValue, imm, element, aux2);
}
// `result` of an operation on a and b (b may be absent) with x86's choice of NaN, unless --fast-math.
ValueId with_x86_nan(Lifter& l, uint8_t width, uint8_t element, ValueId result, ValueId a, ValueId b = kNoValue);
inline ValueId vec_zero(Lifter& l) { return l.b.op(Opcode::kVecZero, 128); }

// sse_move.cpp
void lift_vec_move(Lifter& l);
void lift_vec_move_aligned(Lifter& l);
void lift_move_scalar(Lifter& l);
void lift_movd(Lifter& l);
void lift_move_low(Lifter& l);
void lift_move_high(Lifter& l);
void lift_movhlps(Lifter& l);
void lift_movlhps(Lifter& l);
void lift_movddup(Lifter& l);
void lift_move_dup(Lifter& l);
void lift_movdq2q(Lifter& l);
void lift_move_mask(Lifter& l);
void lift_store_masked(Lifter& l);
void lift_insert(Lifter& l);
void lift_extract(Lifter& l);
void lift_insertps(Lifter& l);
void lift_emms(Lifter& l);
void lift_ldmxcsr(Lifter& l);
void lift_stmxcsr(Lifter& l);
void lift_fxsave(Lifter& l);
// sse_float.cpp
void lift_float_packed(Lifter& l);
void lift_float_scalar(Lifter& l);
void lift_float_unary_packed(Lifter& l);
void lift_float_unary_scalar(Lifter& l);
void lift_minmax_packed(Lifter& l);
void lift_minmax_scalar(Lifter& l);
void lift_compare_packed(Lifter& l);
void lift_compare_scalar(Lifter& l);
void lift_comis(Lifter& l);
void lift_horizontal_float(Lifter& l);
void lift_addsub(Lifter& l);
void lift_round_packed(Lifter& l);
void lift_round_scalar(Lifter& l);
void lift_dot_product(Lifter& l);
// sse_convert.cpp
void lift_convert_packed(Lifter& l);
void lift_convert_scalar(Lifter& l);
void lift_convert_from_int(Lifter& l);
void lift_convert_to_int(Lifter& l);
void lift_convert_from_mmx(Lifter& l);
void lift_convert_to_mmx(Lifter& l);
// sse_integer.cpp
void lift_vec_binary(Lifter& l);
void lift_vec_and_not(Lifter& l);
void lift_vec_unary(Lifter& l);
void lift_vec_shift(Lifter& l);
void lift_vec_shift_bytes(Lifter& l);
void lift_horizontal_integer(Lifter& l);
void lift_sign(Lifter& l);
void lift_extend(Lifter& l);
void lift_ptest(Lifter& l);
// sse_shuffle.cpp
void lift_shuffle(Lifter& l);
void lift_shufps(Lifter& l);
void lift_shufpd(Lifter& l);
void lift_palignr(Lifter& l);
void lift_blend_imm(Lifter& l);
void lift_blend_variable(Lifter& l);
void lift_vec_binary_imm(Lifter& l);
// sse_crypto.cpp
void lift_aes_round(Lifter& l);
void lift_aes_unary(Lifter& l);
void lift_pclmulqdq(Lifter& l);
void lift_sha(Lifter& l);
void lift_sha1msg1(Lifter& l);
void lift_sha1msg2(Lifter& l);
void lift_sha256rnds2(Lifter& l);
// sse_string.cpp
void lift_pcmpstr(Lifter& l);

}  // namespace phybin::lift
