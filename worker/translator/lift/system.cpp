// Flags as a whole, string operations, and what looks at the machine: CPUID, counters, fences, segment bases.
#include "worker/translator/guest_state.h"
#include "worker/translator/lift/lift_functions.h"

namespace phybin::lift {

using ir::FenceKind;
using ir::RepKind;
using ir::StringOp;

namespace {

constexpr auto kDirection = static_cast<int64_t>(offsetof(GuestState, direction));
constexpr auto kSystemFlags = static_cast<int64_t>(offsetof(GuestState, system_flags));
constexpr int64_t kDf = 1 << 10;
// Flags that POPF can change in user mode besides the arithmetic ones and DF: TF, NT, AC, ID.
constexpr int64_t kUserSystemFlags = (1 << 8) | (1 << 14) | (1 << 18) | (1 << 21);

ValueId arithmetic_flags(Lifter& l, ir::FlagMask which) {
  const ValueId value = l.b.op(Opcode::kGetRflags, 64);
  l.b.last_op().flags_use = which;
  return value;
}

// All arithmetic flags of `mask` from a value in RFLAGS layout.
void set_arithmetic_flags(Lifter& l, ValueId value, ir::FlagMask nzcv) {
  l.b.op(Opcode::kSetNzcv, 64, value, kNoValue, kNoValue, 0, 0, 0, nzcv);
  // Raw PF: a byte whose parity is even when PF is set, bit 4 of it 0; raw AF then is AF's own bit.
  const ValueId pf = l.b.op(Opcode::kExtract, 1, value, kNoValue, kNoValue, 0, 2);
  l.b.op_flags(Opcode::kXor, 32, pf, kNoValue, 1, ir::kP, ir::raw_flags(ir::kPfOfResult, ir::AfKind::kUndefined));
  l.b.set_af(ir::AfKind::kPlain, value, kNoValue, 0);
}

void fence(Lifter& l, FenceKind kind) {
  l.b.op(Opcode::kFence, 0, kNoValue, kNoValue, kNoValue, 0, static_cast<uint8_t>(kind));
}

void string_operation(Lifter& l, StringOp kind) {
  if (l.in.memory.segment == 4 || l.in.memory.segment == 5 || l.in.memory.address32) {
    // Overrides on string operations: nobody emits them.
    l.trap(ir::TrapKind::kInvalidOpcode);
    return;
  }
  const bool compares = kind == StringOp::kScas || kind == StringOp::kCmps;
  RepKind rep = RepKind::kNone;
  if (l.in.has_prefix(decode::kPrefixRep)) rep = RepKind::kRep;
  if (l.in.has_prefix(decode::kPrefixRepne)) rep = compares ? RepKind::kRepne : RepKind::kRep;
  l.b.op(Opcode::kString, static_cast<uint8_t>(l.in.operand_size * 8), kNoValue, kNoValue, kNoValue, 0,
         static_cast<uint8_t>(kind), static_cast<uint8_t>(rep), compares ? ir::kAllFlags : ir::FlagMask{0});
}

void call_state(Lifter& l, StateHelper helper, ValueId x = kNoValue, ValueId y = kNoValue) {
  l.b.op(Opcode::kCallState, 0, x, y, kNoValue, static_cast<int64_t>(helper));
}

}  // namespace

void lift_nop(Lifter&) {}

// A hint to the other threads of a core; A64 has YIELD, which means the same.
void lift_pause(Lifter&) {}

// CLFLUSH, CLFLUSHOPT, CLWB: caches are coherent here, so what is left is the order of stores around it.
void lift_cache_flush(Lifter& l) {
  l.b.op(Opcode::kFence, 0, kNoValue, kNoValue, kNoValue, 0, static_cast<uint8_t>(ir::FenceKind::kFull));
}

void lift_prefetch(Lifter& l) {
  const Address m = l.memory_address();
  l.b.op(Opcode::kPrefetch, 0, m.base, m.index, kNoValue, m.disp, m.scale, 0);
}

void lift_lfence(Lifter& l) { fence(l, FenceKind::kLoad); }
void lift_sfence(Lifter& l) { fence(l, FenceKind::kStore); }
void lift_mfence(Lifter& l) { fence(l, FenceKind::kFull); }

void lift_clc(Lifter& l) { l.b.op(Opcode::kSetCarry, 0, kNoValue, kNoValue, kNoValue, 0, 0, 0, ir::kC); }
void lift_stc(Lifter& l) { l.b.op(Opcode::kSetCarry, 0, kNoValue, kNoValue, kNoValue, 1, 0, 0, ir::kC); }
void lift_cmc(Lifter& l) {
  l.b.op(Opcode::kSetCarry, 0, kNoValue, kNoValue, kNoValue, 2, 0, 0, ir::kC);
  l.b.last_op().flags_use = ir::kC;
}

void lift_cld(Lifter& l) { l.b.op(Opcode::kSetState, 64, l.b.constant(1), kNoValue, kNoValue, kDirection); }
void lift_std(Lifter& l) { l.b.op(Opcode::kSetState, 64, l.b.constant(-1), kNoValue, kNoValue, kDirection); }

void lift_lahf(Lifter& l) {
  const ValueId flags = arithmetic_flags(l, ir::kAllFlags & ~ir::kV);
  const ValueId ah = l.b.op_imm(Opcode::kOr, 32, flags, 2);
  l.b.set_gpr(kRax, l.b.op(Opcode::kInsert, 8, l.b.get_gpr(kRax), ah, kNoValue, 0, 8));
}

void lift_sahf(Lifter& l) {
  const ValueId ah = l.b.op(Opcode::kExtract, 8, l.b.get_gpr(kRax), kNoValue, kNoValue, 0, 8);
  set_arithmetic_flags(l, ah, ir::kN | ir::kZ | ir::kC);
}

void lift_pushf(Lifter& l) {
  ValueId flags = arithmetic_flags(l, ir::kAllFlags);
  flags = l.b.op(Opcode::kOr, 64, flags, l.b.op(Opcode::kGetState, 64, kNoValue, kNoValue, kNoValue, kSystemFlags));
  const ValueId direction = l.b.op(Opcode::kGetState, 64, kNoValue, kNoValue, kNoValue, kDirection);
  flags = l.b.op(Opcode::kOr, 64, flags, l.b.op_imm(Opcode::kAnd, 64, direction, kDf));
  // direction is 1 or -1: bit 10 is set for -1 alone.
  l.b.push(flags, l.in.operand_size == 2 ? 16 : 64);
}

void lift_popf(Lifter& l) {
  const uint8_t width = l.in.operand_size == 2 ? 16 : 64;
  const ValueId flags = l.b.pop(width);
  // DF: 1 - 2 * bit.
  const ValueId df = l.b.op(Opcode::kExtract, 1, flags, kNoValue, kNoValue, 0, 10);
  const ValueId twice = l.b.op_imm(Opcode::kShiftLeft, 64, df, 1);
  l.b.op(Opcode::kSetState, 64, l.b.op(Opcode::kSub, 64, l.b.constant(1), twice), kNoValue, kNoValue, kDirection);
  const int64_t changeable = width == 16 ? kUserSystemFlags & 0xffff : kUserSystemFlags;
  const ValueId old = l.b.op(Opcode::kGetState, 64, kNoValue, kNoValue, kNoValue, kSystemFlags);
  const ValueId kept = l.b.op_imm(Opcode::kAnd, 64, old, ~changeable);
  const ValueId taken = l.b.op_imm(Opcode::kAnd, 64, flags, changeable);
  l.b.op(Opcode::kSetState, 64, l.b.op(Opcode::kOr, 64, kept, taken), kNoValue, kNoValue, kSystemFlags);
  set_arithmetic_flags(l, flags, ir::kNzcv);
}

void lift_movs(Lifter& l) { string_operation(l, StringOp::kMovs); }
void lift_stos(Lifter& l) { string_operation(l, StringOp::kStos); }
void lift_lods(Lifter& l) { string_operation(l, StringOp::kLods); }
void lift_scas(Lifter& l) { string_operation(l, StringOp::kScas); }
void lift_cmps(Lifter& l) { string_operation(l, StringOp::kCmps); }

void lift_cpuid(Lifter& l) { call_state(l, StateHelper::k_cpuid); }
void lift_rdtscp(Lifter& l) { call_state(l, StateHelper::k_rdtscp); }

void lift_rdtsc(Lifter& l) {
  const ValueId count = l.b.op(Opcode::kReadCounter, 64);
  const uint8_t shift = l.host.tsc_shift;
  const ValueId low = shift == 0 ? l.b.op(Opcode::kMov, 32, count) : l.b.op_imm(Opcode::kShiftLeft, 32, count, shift);
  const ValueId high = l.b.op(Opcode::kExtract, 32, count, kNoValue, kNoValue, 0, static_cast<uint8_t>(32 - shift));
  l.b.set_gpr(kRax, low);
  l.b.set_gpr(kRdx, high);
}

}  // namespace phybin::lift
