// See lifter.h.
#include "worker/translator/lift/lifter.h"

#include "worker/translator/guest_state.h"

namespace phybin::lift {

using decode::Operand;
using decode::OperandKind;

namespace {

// The address with what the prefixes 67 and FS, GS make of it.
[[gnu::noinline, gnu::cold]] Address with_prefixes(Lifter& l, Address r) {
  const decode::Memory& m = l.in.memory;
  if (m.address32) {
    r.base = l.b.op(Opcode::kLea, 32, r.base, r.index, kNoValue, r.disp, r.scale);
    r.index = kNoValue;
    r.scale = 0;
    r.disp = 0;
  }
  if (m.segment == 4 || m.segment == 5) {
    const auto offset = m.segment == 4 ? offsetof(GuestState, fs_base) : offsetof(GuestState, gs_base);
    const ValueId segment = l.b.op(Opcode::kGetState, 64, kNoValue, kNoValue, kNoValue, static_cast<int64_t>(offset));
    if (r.base == kNoValue) {
      r.base = segment;
    } else if (r.index == kNoValue) {
      r.index = r.base;
      r.base = segment;
      r.scale = 0;
    } else {
      r.base = l.b.op(Opcode::kAdd, 64, segment, r.base);
    }
  }
  return r;
}

[[gnu::always_inline]] inline Address address_of_operand(Lifter& l) {
  const decode::Memory& m = l.in.memory;
  Address r;
  if (m.base == decode::kRipBase) {
    r.base = l.b.guest_address(static_cast<uint64_t>(m.disp));
  } else {
    if (m.base != decode::kNoRegister) r.base = l.b.get_gpr(m.base);
    r.disp = m.disp;
  }
  if (m.index != decode::kNoRegister && !m.vsib) {
    r.index = l.b.get_gpr(m.index);
    r.scale = m.scale_log2;
  }
  if (m.address32 || m.segment != decode::kNoRegister) [[unlikely]]
    return with_prefixes(l, r);
  return r;
}

}  // namespace

Address Lifter::memory_address() { return address_of_operand(*this); }

ValueId Lifter::load_operand(uint8_t bits) {
  const Address m = address_of_operand(*this);
  return b.op(Opcode::kLoad, bits, m.base, m.index, kNoValue, m.disp, m.scale);
}

void Lifter::store_operand(ValueId value, uint8_t bits) {
  const Address m = address_of_operand(*this);
  b.op(Opcode::kStore, bits, m.base, m.index, value, m.disp, m.scale);
}

ValueId Lifter::address_value(const Address& m) {
  if (m.index == kNoValue && m.disp == 0 && m.base != kNoValue) return m.base;
  return b.op(Opcode::kLea, 64, m.base, m.index, kNoValue, m.disp, m.scale);
}

ValueId Lifter::load(const Address& m, uint8_t bits) {
  return b.op(Opcode::kLoad, bits, m.base, m.index, kNoValue, m.disp, m.scale);
}

void Lifter::store(const Address& m, ValueId value, uint8_t bits) {
  b.op(Opcode::kStore, bits, m.base, m.index, value, m.disp, m.scale);
}

ValueId Lifter::load_vec(const Address& m, uint8_t bits) {
  return b.op(Opcode::kLoadVec, bits, m.base, m.index, kNoValue, m.disp, m.scale);
}

void Lifter::store_vec(const Address& m, ValueId value, uint8_t bits) {
  b.op(Opcode::kStoreVec, bits, m.base, m.index, value, m.disp, m.scale);
}

ValueId Lifter::read_byte_gpr(const Operand& o) {
  if (o.kind == OperandKind::kGprHigh8) return b.op(Opcode::kExtract, 8, b.get_gpr(o.reg), kNoValue, kNoValue, 0, 8);
  const ValueId value = b.get_gpr(o.reg);
  // `setz al; movzx eax, al`
  const ir::Op& op = b.at(value);
  return op.code == Opcode::kInsert && op.width == 8 && op.aux == 0 && b.is_narrow(op.b, 8) ? op.b : value;
}

ValueId Lifter::read_updated_gpr(const Operand& o) {
  const ValueId value = read_gpr(o);
  const ir::Op& op = b.at(value);
  return op.code == Opcode::kMov && op.width == 32 && o.size <= 4 ? op.a : value;
}

void Lifter::write_part_of_gpr(const Operand& o, ValueId value) {
  if (o.kind == OperandKind::kGprHigh8) {
    b.set_gpr(o.reg, b.op(Opcode::kInsert, 8, b.get_gpr(o.reg), value, kNoValue, 0, 8));
    return;
  }
  const auto bits = static_cast<uint8_t>(o.size * 8);
  const ValueId old = b.get_gpr(o.reg);
  if (b.is_constant(old) && b.at(old).imm == 0) {  // XOR r,r; SETcc r
    b.set_gpr(o.reg, b.is_narrow(value, bits) ? value : b.op(Opcode::kMov, bits, value));
  } else {
    b.set_gpr(o.reg, b.op(Opcode::kInsert, bits, old, value));
  }
}

ValueId Lifter::read_vec(unsigned i, uint8_t bits) {
  const Operand& o = in.operands[i];
  if (o.kind == OperandKind::kMemory) return load_vec(memory_address(), bits);
  return b.get_vec(o.reg);
}

void Lifter::trap(ir::TrapKind kind, int64_t imm) {
  b.op(Opcode::kTrap, 0, kNoValue, kNoValue, kNoValue, imm, static_cast<uint8_t>(kind));
}

}  // namespace phybin::lift
