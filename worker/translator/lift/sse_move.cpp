// MMX and SSE: moves, element access, masks, MXCSR.
#include "worker/translator/lift/sse.h"

namespace phybin::lift {

using decode::OperandKind;

// MOVUPS, MOVDQU, LDDQU, MOVNTQ: 16 bytes need no alignment.
void lift_vec_move(Lifter& l) {
  if (l.is_memory(0)) {
    const ValueId value = is_mmx(l, 1) ? read_mmx(l, l.operand(1).reg) : l.b.get_vec(l.operand(1).reg);
    l.store_vec(l.memory_address(), value, l.width(0));
    if (is_mmx(l, 1)) enter_mmx(l);
    return;
  }
  l.b.set_vec(l.operand(0).reg, l.read_vec(1, l.width(1)));
}

// MOVAPS, MOVDQA and the non-temporal moves, which are plain ones here.
void lift_vec_move_aligned(Lifter& l) { write_operand(l, 0, read_operand(l, 1)); }

// MOVSS, MOVSD: a load clears the rest of the register, a move between registers keeps it.
void lift_move_scalar(Lifter& l) {
  if (l.is_memory(0) || l.is_memory(1)) return write_operand(l, 0, read_operand(l, 1));
  write_scalar(l, l.b.get_vec(l.operand(1).reg), form_of(l).element);
}

// MOVD, MOVQ in all directions; what is written to a vector register has zeros above.
void lift_movd(Lifter& l) {
  const decode::Operand& to = l.operand(0);
  const decode::Operand& from = l.operand(1);
  const auto bits = static_cast<uint8_t>(form_of(l).element == 2 ? 32 : 64);
  if (to.kind == OperandKind::kGpr) {
    const ValueId source = from.kind == OperandKind::kMmx ? read_mmx(l, from.reg) : l.b.get_vec(from.reg);
    const ValueId value = l.b.op(Opcode::kVecToInt, bits, source);
    l.write_gpr(to.reg, bits, value);
    if (from.kind == OperandKind::kMmx) enter_mmx(l);
    return;
  }
  ValueId value;
  if (from.kind == OperandKind::kGpr) {
    value = l.b.op(Opcode::kVecFromInt, bits, l.b.get_gpr(from.reg));
  } else if (from.kind == OperandKind::kMemory) {
    value = l.load_vec(l.memory_address(), bits);
  } else if (from.kind == OperandKind::kMmx) {
    value = read_mmx(l, from.reg);
  } else {
    value = l.b.get_vec(from.reg);
    if (to.kind == OperandKind::kVector) value = l.b.op(Opcode::kVecMov, 64, value);
  }
  if (to.kind == OperandKind::kMemory) {
    l.store_vec(l.memory_address(), value, bits);
    if (from.kind == OperandKind::kMmx) enter_mmx(l);
  } else {
    write_operand(l, 0, value);
  }
}

void lift_move_low(Lifter& l) {
  if (l.is_memory(0)) {
    const ValueId value = l.b.get_vec(l.operand(1).reg);
    return l.store_vec(l.memory_address(), value, 64);
  }
  write_scalar(l, l.load_vec(l.memory_address(), 64), 3);
}

void lift_move_high(Lifter& l) {
  if (l.is_memory(0)) {
    const ValueId high = vec(l, Opcode::kVecElement, 128, 3, l.b.get_vec(l.operand(1).reg), kNoValue, 1);
    return l.store_vec(l.memory_address(), high, 64);
  }
  const unsigned reg = l.operand(0).reg;
  const ValueId value = l.load_vec(l.memory_address(), 64);
  l.b.set_vec(reg, vec(l, Opcode::kVecInsert, 128, 3, l.b.get_vec(reg), value, 1));
}

void lift_movhlps(Lifter& l) {
  const unsigned reg = l.operand(0).reg;
  const ValueId source = l.b.get_vec(l.operand(1).reg);
  l.b.set_vec(reg, vec(l, Opcode::kVecInsert, 128, 3, l.b.get_vec(reg), source, 0, 1));
}

void lift_movlhps(Lifter& l) {
  const unsigned reg = l.operand(0).reg;
  const ValueId source = l.b.get_vec(l.operand(1).reg);
  l.b.set_vec(reg, vec(l, Opcode::kVecInsert, 128, 3, l.b.get_vec(reg), source, 1, 0));
}

void lift_movddup(Lifter& l) { write_operand(l, 0, vec(l, Opcode::kVecDup, 128, 3, read_operand(l, 1))); }

// MOVSLDUP, MOVSHDUP.
void lift_move_dup(Lifter& l) {
  const ValueId source = read_operand(l, 1);
  write_operand(l, 0, vec(l, form_of(l).code, 128, 2, source, source));
}

// MOVDQ2Q, MOVQ2DQ.
void lift_movdq2q(Lifter& l) {
  if (is_mmx(l, 0)) return write_mmx(l, l.operand(0).reg, l.b.get_vec(l.operand(1).reg));
  l.b.set_vec(l.operand(0).reg, read_mmx(l, l.operand(1).reg));
  enter_mmx(l);
}

// PMOVMSKB, MOVMSKPS, MOVMSKPD.
void lift_move_mask(Lifter& l) {
  const bool mmx = is_mmx(l, 1);
  const ValueId source = read_operand(l, 1);
  const auto bits = static_cast<uint8_t>(mmx ? 64 : 128);
  const ValueId mask = vec(l, Opcode::kVecMoveMask, bits, form_of(l).element, source);
  l.write_gpr(l.operand(0).reg, 32, mask);
  if (mmx) enter_mmx(l);
}

// MASKMOVDQU, MASKMOVQ: to [RDI].
void lift_store_masked(Lifter& l) {
  Address m = l.memory_address();
  m.base = l.b.get_gpr(kRdi);
  if (l.in.memory.address32) m.base = l.b.op(Opcode::kMov, 32, m.base);
  const bool mmx = is_mmx(l, 0);
  const ValueId data = read_operand(l, 0), mask = read_operand(l, 1);
  l.b.op(Opcode::kStoreMasked, mmx ? 64 : 128, l.address_value(m), data, mask);
  if (mmx) enter_mmx(l);
}

// PINSRB, PINSRW, PINSRD, PINSRQ.
void lift_insert(Lifter& l) {
  const uint8_t element = form_of(l).element;
  const auto elements = static_cast<int64_t>((vector_bits(l) / 8u) >> element);
  const ValueId value = l.is_memory(1) ? l.load(l.memory_address(), static_cast<uint8_t>(8u << element))
                                       : l.b.get_gpr(l.operand(1).reg);
  const ValueId into = read_operand(l, 0);
  write_operand(l, 0, vec(l, Opcode::kVecInsertInt, 128, element, into, value, l.in.imm & (elements - 1)));
}

// PEXTRB, PEXTRW, PEXTRD, PEXTRQ, EXTRACTPS; a register gets the element zero-extended.
void lift_extract(Lifter& l) {
  const uint8_t element = form_of(l).element;
  const bool mmx = is_mmx(l, 1);
  const auto elements = static_cast<int64_t>((mmx ? 8u : 16u) >> element);
  const ValueId source = read_operand(l, 1);
  const auto bits = static_cast<uint8_t>(element == 3 ? 64 : 32);
  const ValueId value = vec(l, Opcode::kVecExtractInt, bits, element, source, kNoValue, l.in.imm & (elements - 1));
  if (l.is_memory(0)) {
    l.store(l.memory_address(), value, static_cast<uint8_t>(8u << element));
  } else {
    l.write_gpr(l.operand(0).reg, bits, value);
  }
  if (mmx) enter_mmx(l);
}

// The immediate: element of the source (7:6, registers only), of the destination (5:4), elements to clear (3:0).
void lift_insertps(Lifter& l) {
  const unsigned reg = l.operand(0).reg;
  const bool memory = l.is_memory(1);
  const ValueId source = memory ? l.load_vec(l.memory_address(), 32) : l.b.get_vec(l.operand(1).reg);
  const auto from = static_cast<uint8_t>(memory ? 0 : l.in.imm >> 6 & 3);
  ValueId value = vec(l, Opcode::kVecInsert, 128, 2, l.b.get_vec(reg), source, l.in.imm >> 4 & 3, from);
  if ((l.in.imm & 15) != 0) {
    const ValueId cleared = l.b.op(Opcode::kVecMask, 128, kNoValue, kNoValue, kNoValue, l.in.imm & 15, 2);
    value = vec(l, Opcode::kVecAndNot, 128, 2, value, cleared);
  }
  l.b.set_vec(reg, value);
}

void lift_stmxcsr(Lifter& l) {
  const ValueId value = l.b.op(Opcode::kGetMxcsr, 32);
  l.store(l.memory_address(), value, 32);
}

// Reserved bits (31:16) that are not zero raise #GP. The address is spoiled by them, in bits that a user address may
// not have, and read again: no branch, and the fault is reported like that of a misaligned operand (kAlignedAddress).
void lift_ldmxcsr(Lifter& l) {
  const ValueId address = l.address_value(l.memory_address());
  const ValueId value = l.b.op(Opcode::kLoad, 32, address);
  const ValueId reserved = l.b.op(Opcode::kShiftRight, 32, value, kNoValue, kNoValue, 16);
  const ValueId spoilt = l.b.op_imm(Opcode::kAnd, 64, l.b.op(Opcode::kNeg, 64, reserved), int64_t{0xf} << 52);
  const ValueId again = l.b.op(Opcode::kLoad, 32, l.b.op(Opcode::kXor, 64, address, spoilt));
  l.b.op(Opcode::kSetMxcsr, 32, again);
}

// FXSAVE, FXRSTOR: the operand must be aligned.
void lift_fxsave(Lifter& l) {
  const StateHelper helper =
      l.in.mnemonic == decode::Mnemonic::kFxsave ? StateHelper::k_fxsave : StateHelper::k_fxrstor;
  const ValueId address = l.address_value(aligned_address(l));
  l.b.op(Opcode::kCallState, 64, address, l.b.constant(l.in.operand_size == 8), kNoValue,
         static_cast<int64_t>(helper));
}

}  // namespace phybin::lift
