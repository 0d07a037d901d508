// Branches, calls, returns, and what ends a program's stretch of code.
#include "worker/translator/lift/lift_functions.h"

namespace phybin::lift {

using decode::Mnemonic;
using ir::TrapKind;

namespace {

void branch_on_zero(Lifter& l, uint8_t width, ValueId value, bool taken_if_not_zero) {
  l.b.op(Opcode::kBranchZero, width, value, kNoValue, kNoValue, l.in.imm, taken_if_not_zero ? 1 : 0);
}

}  // namespace

void lift_jcc(Lifter& l) {
  l.b.op(Opcode::kBranch, 0, kNoValue, kNoValue, kNoValue, l.in.imm, l.in.condition);
  l.b.last_op().flags_use = ir::condition_flags(l.in.condition);
}

void lift_jmp(Lifter& l) { l.b.op(Opcode::kJump, 0, kNoValue, kNoValue, kNoValue, l.in.imm); }
void lift_jmp_indirect(Lifter& l) { l.b.op(Opcode::kJumpIndirect, 64, l.read(0)); }
void lift_call(Lifter& l) { l.b.op(Opcode::kCall, 64, kNoValue, kNoValue, kNoValue, l.in.imm); }
void lift_call_indirect(Lifter& l) { l.b.op(Opcode::kCallIndirect, 64, l.read(0)); }

// A call of a stub that jumps through `pointer`: as if the stub had been executed, whose jump stands at `jump`.
void lift_call_through(Lifter& l, uint64_t pointer, uint64_t jump) {
  l.b.op(Opcode::kCallThrough, 64, l.b.guest_address(jump), kNoValue, kNoValue, static_cast<int64_t>(pointer));
}

void lift_ret(Lifter& l) {
  const int64_t released = l.in.operand_count > 0 ? l.in.imm & 0xffff : 0;
  l.b.op(Opcode::kReturn, 64, kNoValue, kNoValue, kNoValue, released);
}

// The counter is RCX, or ECX with an address-size prefix.
void lift_jrcxz(Lifter& l) { branch_on_zero(l, l.in.memory.address32 ? 32 : 64, l.b.get_gpr(kRcx), false); }

void lift_loop(Lifter& l) {
  const uint8_t width = l.in.memory.address32 ? 32 : 64;
  const ValueId count = l.b.op_imm(Opcode::kSub, width, l.b.get_gpr(kRcx), 1);
  l.b.set_gpr(kRcx, count);
  if (l.in.mnemonic == Mnemonic::kLoop) {
    branch_on_zero(l, width, count, true);
    return;
  }
  // LOOPE, LOOPNE: count != 0 and ZF as asked for. A mask of all ones or zeros makes that one number.
  const uint8_t condition = l.in.mnemonic == Mnemonic::kLoope ? 4 : 5;
  const ValueId mask = l.b.op(Opcode::kNeg, 64, l.b.op_condition(Opcode::kSetCc, 32, condition));
  branch_on_zero(l, width, l.b.op(Opcode::kAnd, width, count, mask), true);
}

void lift_syscall(Lifter& l) { l.b.op(Opcode::kSyscall, 0); }
void lift_invalid(Lifter& l) { l.trap(TrapKind::kInvalidOpcode); }
void lift_privileged(Lifter& l) { l.trap(TrapKind::kGeneralProtection); }
void lift_int3(Lifter& l) { l.trap(TrapKind::kBreakpoint); }
void lift_int(Lifter& l) { l.trap(TrapKind::kInt, l.in.imm); }

}  // namespace phybin::lift
