// Moves, extensions, address computation, stack, conditional moves.
#include "worker/translator/guest_state.h"
#include "worker/translator/lift/lift_functions.h"

namespace phybin::lift {

using decode::OperandKind;

namespace {

// MOV from and to segment, control and debug registers.
[[gnu::noinline, gnu::cold]] void move_system_register(Lifter& l) {
  const decode::Operand& to = l.operand(0);
  const decode::Operand& from = l.operand(1);
  if (from.kind == OperandKind::kSegment) {
    // Reading gives the selectors that Linux has in 64-bit mode; loading one that is not null or these would fault.
    static constexpr int64_t kSelectors[6] = {0, 0x33, 0x2b, 0, 0, 0};
    const ValueId selector = l.b.constant(kSelectors[from.reg % 6]);
    if (l.is_memory(0)) {
      l.store(l.memory_address(), selector, 16);
    } else {
      l.write_gpr(to, selector);
    }
  } else if (to.kind == OperandKind::kSegment) {
    l.read(1);
  } else {
    l.trap(ir::TrapKind::kGeneralProtection);
  }
}

constexpr unsigned bit_of(OperandKind kind) { return 1u << static_cast<unsigned>(kind); }

}  // namespace

void lift_mov(Lifter& l) {
  constexpr unsigned kSystem =
      bit_of(OperandKind::kSegment) | bit_of(OperandKind::kControl) | bit_of(OperandKind::kDebug);
  if (((bit_of(l.operand(0).kind) | bit_of(l.operand(1).kind)) & kSystem) != 0) [[unlikely]] {
    move_system_register(l);
    return;
  }
  const ValueId value = l.read(1);
  l.write(0, value);
}

void lift_movzx(Lifter& l) {
  const uint8_t from = l.width(1);
  const ValueId value = l.read(1);
  l.write_gpr(l.operand(0), l.b.is_narrow(value, from) ? value : l.b.op(Opcode::kMov, from, value));
}

void lift_movsx(Lifter& l) {
  const uint8_t from = l.width(1), to = l.width(0);
  const uint8_t result = to == 64 ? 64 : 32;
  ValueId value;
  if (from >= to) {
    value = l.read(1);  // MOVSXD r32, r/m32 is a plain move
  } else if (l.is_memory(1)) {
    const Address m = l.memory_address();
    value = l.b.op(Opcode::kLoadSigned, from, m.base, m.index, kNoValue, m.disp, m.scale, result);
  } else {
    value = l.b.op(Opcode::kSignExtend, from, l.read_gpr(l.operand(1)), kNoValue, kNoValue, 0, result);
  }
  l.write_gpr(l.operand(0), value);
}

void lift_lea(Lifter& l) {
  Address m = l.memory_address();
  // A segment override does not take part in LEA; lifter.cpp adds the base only for FS and GS, which no compiler
  // uses.
  const uint8_t width = l.width(0) == 64 ? 64 : 32;
  ValueId value;
  if (m.index == kNoValue && m.disp == 0 && m.base != kNoValue) {
    value = m.base;
  } else {
    value = l.b.op(Opcode::kLea, width, m.base, m.index, kNoValue, m.disp, m.scale);
  }
  l.write_gpr(l.operand(0), value);
}

void lift_push(Lifter& l) {
  const decode::Operand& o = l.operand(0);
  const uint8_t width = l.in.operand_size == 2 ? 16 : 64;
  if (o.kind == OperandKind::kSegment) {
    l.b.push(l.b.constant(0), width);
    return;
  }
  l.b.push(l.read(0), width);
}

void lift_pop(Lifter& l) {
  const decode::Operand& o = l.operand(0);
  const uint8_t width = l.in.operand_size == 2 ? 16 : 64;
  const int64_t bytes = width / 8;
  if (o.kind == OperandKind::kSegment) {
    l.b.pop(width);
    return;
  }
  if (o.kind == OperandKind::kGpr && o.reg != kRsp) {
    l.write_gpr(o.reg, width, l.b.pop(width));
    return;
  }
  const ValueId rsp = l.b.get_gpr(kRsp);
  const ValueId value = l.load({rsp, kNoValue, 0, 0}, width);
  if (o.kind == OperandKind::kGpr) {
    if (width == 64) {
      l.b.set_gpr(kRsp, value);
    } else {
      l.b.set_gpr(kRsp, l.b.op_imm(Opcode::kAdd, 64, rsp, bytes));
      l.write_gpr(kRsp, width, value);
    }
    return;
  }
  // The address of the destination is computed with RSP already incremented.
  Address m = l.memory_address();
  if (l.in.memory.base == kRsp) m.disp += bytes;
  l.store(m, value, width);
  l.b.set_gpr(kRsp, l.b.op_imm(Opcode::kAdd, 64, rsp, bytes));
}

void lift_leave(Lifter& l) {
  const ValueId rbp = l.b.get_gpr(kRbp);
  const ValueId saved = l.load({rbp, kNoValue, 0, 0}, 64);
  l.b.set_gpr(kRsp, l.b.op_imm(Opcode::kAdd, 64, rbp, 8));
  l.b.set_gpr(kRbp, saved);
}

// ENTER with nesting level 0 is all that anybody uses; deeper levels copy frame pointers.
void lift_enter(Lifter& l) {
  const auto level = static_cast<unsigned>(l.in.imm2) & 31;
  const ValueId rsp = l.b.get_gpr(kRsp), rbp = l.b.get_gpr(kRbp);
  l.store({rsp, kNoValue, 0, -8}, rbp, 64);
  const ValueId frame = l.b.op_imm(Opcode::kSub, 64, rsp, 8);
  int64_t used = 8;
  for (unsigned i = 1; i < level; ++i) {
    const ValueId pointer = l.load({rbp, kNoValue, 0, -8 * static_cast<int64_t>(i)}, 64);
    used += 8;
    l.store({rsp, kNoValue, 0, -used}, pointer, 64);
  }
  if (level > 0) {
    used += 8;
    l.store({rsp, kNoValue, 0, -used}, frame, 64);
  }
  used += l.in.imm & 0xffff;
  l.b.set_gpr(kRsp, l.b.op_imm(Opcode::kSub, 64, rsp, used));
  l.b.set_gpr(kRbp, frame);
}

void lift_cmovcc(Lifter& l) {
  // Memory is read whether the condition holds or not.
  const uint8_t width = l.width(0);
  ValueId value = l.read(1);
  const ValueId old = l.read_gpr(l.operand(0));
  const uint8_t select = width == 64 ? 64 : 32;
  l.write_gpr(l.operand(0), l.b.op_condition(Opcode::kSelect, select, l.in.condition, value, old));
}

void lift_setcc(Lifter& l) { l.write(0, l.b.op_condition(Opcode::kSetCc, 32, l.in.condition)); }

// CBW, CWDE, CDQE: the accumulator's lower half extended over the whole.
void lift_cbw(Lifter& l) {
  const auto width = static_cast<uint8_t>(l.in.operand_size * 8);
  const ValueId value = l.b.op(Opcode::kSignExtend, static_cast<uint8_t>(width / 2), l.b.get_gpr(kRax), kNoValue,
                               kNoValue, 0, width == 64 ? 64 : 32);
  l.write_gpr(kRax, width, value);
}

// CWD, CDQ, CQO: RDX becomes the accumulator's sign.
void lift_cwd(Lifter& l) {
  const auto width = static_cast<uint8_t>(l.in.operand_size * 8);
  ValueId value = l.b.get_gpr(kRax);
  if (width == 16) value = l.b.op(Opcode::kSignExtend, 16, value, kNoValue, kNoValue, 0, 32);
  const uint8_t wide = width == 64 ? 64 : 32;
  l.write_gpr(kRdx, width, l.b.op_imm(Opcode::kShiftRightSigned, wide, value, wide - 1));
}

void lift_bswap(Lifter& l) {
  const uint8_t width = l.width(0) == 64 ? 64 : 32;
  l.write_gpr(l.operand(0).reg, width, l.b.op(Opcode::kByteSwap, width, l.b.get_gpr(l.operand(0).reg)));
}

void lift_movbe(Lifter& l) {
  const uint8_t width = l.width(0);
  const ValueId value = l.b.op(Opcode::kByteSwap, width, l.read(1));
  l.write(0, value);
}

void lift_xlat(Lifter& l) {
  const ValueId al = l.b.op(Opcode::kMov, 8, l.b.get_gpr(kRax));
  ValueId base = l.b.get_gpr(kRbx);
  if (l.in.memory.segment == 4 || l.in.memory.segment == 5) {
    const auto offset = l.in.memory.segment == 4 ? offsetof(GuestState, fs_base) : offsetof(GuestState, gs_base);
    base = l.b.op(Opcode::kAdd, 64, base,
                  l.b.op(Opcode::kGetState, 64, kNoValue, kNoValue, kNoValue, static_cast<int64_t>(offset)));
  }
  l.write_gpr(kRax, 8, l.load({base, al, 0, 0}, 8));
}

void lift_movnti(Lifter& l) {
  const ValueId value = l.read_gpr(l.operand(1));
  l.store(l.memory_address(), value, l.width(1));
}

}  // namespace phybin::lift
