// ADD, ADC, SUB, SBB, CMP, AND, OR, XOR, TEST, INC, DEC, NEG, NOT, XADD, XCHG, CMPXCHG: register and memory forms,
// LOCKed or not.
//
// Each operation names PF and AF itself (ir.h); then the result is written.
#include "worker/translator/lift/lift_functions.h"

namespace phybin::lift {

using decode::OperandKind;
using ir::AfKind;
using ir::AtomicKind;
using ir::kAllFlags;
using ir::kPfOfOperand;
using ir::kPfOfResult;
using ir::raw_flags;

namespace {

struct Source {
  ValueId value = kNoValue;  // kNoValue: the immediate
  int64_t imm = 0;
};

Source source(Lifter& l, unsigned i) {
  if (l.operand(i).kind == OperandKind::kImmediate) return {kNoValue, l.in.imm};
  return {l.read(i), 0};
}

constexpr AfKind af_kind(Opcode code, bool same_operands) {
  switch (code) {
    case Opcode::kAdd:
      return same_operands ? AfKind::kZero : AfKind::kSum;
    case Opcode::kSub:
      return AfKind::kDifference;
    case Opcode::kAdc:
    case Opcode::kSbb:
      return AfKind::kPlain;
    default:
      return AfKind::kUndefined;
  }
}

// The operation with all its flags. Where `code` is known, so is most of what is written for it.
[[gnu::always_inline]] inline ValueId with_flags(Lifter& l, Opcode code, uint8_t width, ValueId x, Source y) {
  const uint8_t raw = raw_flags(kPfOfResult, af_kind(code, x == y.value));
  const ValueId result = l.b.op_flags(code, width, x, y.value, y.imm, kAllFlags, raw);
  if (code == Opcode::kAdc || code == Opcode::kSbb) l.b.last_op().flags_use = ir::kC;
  return result;
}

bool same_register(const Lifter& l) { return l.operand(0).kind == OperandKind::kGpr && l.operand(0) == l.operand(1); }

// The flags of the number 0, and the number. AF is 0 after SUB, undefined after XOR.
ValueId zero_with_flags(Lifter& l, Opcode code, uint8_t width) {
  const ValueId zero = l.b.constant(0);
  const AfKind af = code == Opcode::kSub ? AfKind::kZero : AfKind::kUndefined;
  l.b.op_flags(Opcode::kSub, width, zero, kNoValue, 0, kAllFlags, raw_flags(kPfOfOperand, af));
  return zero;
}

// Flags of a value compared with 0: what TEST r,r, AND r,r and OR r,r define.
void test_with_itself(Lifter& l, uint8_t width, ValueId x) {
  l.b.op_flags(Opcode::kSub, width, x, kNoValue, 0, kAllFlags, raw_flags(kPfOfOperand, AfKind::kUndefined));
}

AtomicKind atomic_kind(Opcode code) {
  switch (code) {
    case Opcode::kAnd:
      return AtomicKind::kAnd;
    case Opcode::kOr:
      return AtomicKind::kOr;
    case Opcode::kXor:
      return AtomicKind::kXor;
    case Opcode::kSub:
    case Opcode::kSbb:
      return AtomicKind::kSub;
    default:
      return AtomicKind::kAdd;
  }
}

ValueId atomic(Lifter& l, AtomicKind kind, uint8_t width, ValueId address, ValueId value) {
  return l.b.op(Opcode::kAtomicRmw, width, address, value, kNoValue, 0, 0, static_cast<uint8_t>(kind));
}

void locked(Lifter& l, Opcode code) {
  const uint8_t width = l.width(0);
  const Source y = source(l, 1);
  ValueId value = y.value == kNoValue ? l.b.constant(y.imm) : y.value;
  const ValueId operand = value;
  if (code == Opcode::kAdc || code == Opcode::kSbb) {
    value = l.b.op(Opcode::kAdd, 64, value, l.b.op_condition(Opcode::kSetCc, 32, 2));
  }
  const ValueId old = atomic(l, atomic_kind(code), width, l.address_value(l.memory_address()), value);
  with_flags(l, code, width, old, {operand, 0});
}

template <Opcode code>
void binary(Lifter& l) {
  const uint8_t width = l.width(0);
  if (l.is_memory(0)) {
    if (l.in.has_prefix(decode::kPrefixLock)) {
      locked(l, code);
      return;
    }
    const Address m = l.memory_address();
    const Source y = source(l, 1);
    const ValueId x = l.load(m, width);
    l.store(m, with_flags(l, code, width, x, y), width);
    return;
  }
  if (same_register(l)) {
    if (code == Opcode::kXor || code == Opcode::kSub) {
      l.write_gpr(l.operand(0), zero_with_flags(l, code, width));
      return;
    }
    if (code == Opcode::kAnd || code == Opcode::kOr) {
      const ValueId x = l.read_gpr(l.operand(0));
      test_with_itself(l, width, x);
      if (width == 32) l.write_gpr(l.operand(0), x);
      return;
    }
  }
  const Source y = source(l, 1);
  const ValueId x = l.read_updated_gpr(l.operand(0));
  l.write_gpr(l.operand(0), with_flags(l, code, width, x, y));
}

void step(Lifter& l, Opcode code, AtomicKind kind) {
  const uint8_t width = l.width(0);
  const uint8_t raw = raw_flags(kPfOfResult, code == Opcode::kInc ? AfKind::kSum : AfKind::kDifference);
  const auto compute = [&](ValueId x) { return l.b.op_flags(code, width, x, kNoValue, 1, kAllFlags & ~ir::kC, raw); };
  if (l.is_memory(0)) {
    const Address m = l.memory_address();
    if (l.in.has_prefix(decode::kPrefixLock)) {
      compute(atomic(l, kind, width, l.address_value(m), kNoValue));
    } else {
      l.store(m, compute(l.load(m, width)), width);
    }
    return;
  }
  l.write_gpr(l.operand(0), compute(l.read_updated_gpr(l.operand(0))));
}

}  // namespace

void lift_add(Lifter& l) { binary<Opcode::kAdd>(l); }
void lift_adc(Lifter& l) { binary<Opcode::kAdc>(l); }
void lift_sub(Lifter& l) { binary<Opcode::kSub>(l); }
void lift_sbb(Lifter& l) { binary<Opcode::kSbb>(l); }
void lift_and(Lifter& l) { binary<Opcode::kAnd>(l); }
void lift_or(Lifter& l) { binary<Opcode::kOr>(l); }
void lift_xor(Lifter& l) { binary<Opcode::kXor>(l); }

void lift_cmp(Lifter& l) {
  const uint8_t width = l.width(0);
  const ValueId x = l.read(0);
  const Source y = source(l, 1);
  with_flags(l, Opcode::kSub, width, x, y);
}

void lift_test(Lifter& l) {
  const uint8_t width = l.width(0);
  if (same_register(l)) {
    test_with_itself(l, width, l.read_gpr(l.operand(0)));
    return;
  }
  const ValueId x = l.read(0);
  const Source y = source(l, 1);
  with_flags(l, Opcode::kAnd, width, x, y);
}

void lift_inc(Lifter& l) { step(l, Opcode::kInc, AtomicKind::kInc); }
void lift_dec(Lifter& l) { step(l, Opcode::kDec, AtomicKind::kDec); }

void lift_neg(Lifter& l) {
  const uint8_t width = l.width(0);
  const auto compute = [&](ValueId x) {
    return l.b.op_flags(Opcode::kNeg, width, x, kNoValue, 0, kAllFlags, raw_flags(kPfOfResult, AfKind::kNegation));
  };
  if (l.is_memory(0)) {
    const Address m = l.memory_address();
    if (l.in.has_prefix(decode::kPrefixLock)) {
      compute(atomic(l, AtomicKind::kNeg, width, l.address_value(m), kNoValue));
    } else {
      l.store(m, compute(l.load(m, width)), width);
    }
    return;
  }
  l.write_gpr(l.operand(0), compute(l.read_updated_gpr(l.operand(0))));
}

void lift_not(Lifter& l) {
  const uint8_t width = l.width(0);
  if (l.is_memory(0)) {
    const Address m = l.memory_address();
    if (l.in.has_prefix(decode::kPrefixLock)) {
      atomic(l, AtomicKind::kNot, width, l.address_value(m), kNoValue);
    } else {
      l.store(m, l.b.op(Opcode::kNot, width, l.load(m, width)), width);
    }
    return;
  }
  l.write_gpr(l.operand(0), l.b.op(Opcode::kNot, width, l.read_updated_gpr(l.operand(0))));
}

void lift_xchg(Lifter& l) {
  const uint8_t width = l.width(0);
  // Memory may be either operand; an exchange with it is always locked.
  const unsigned memory = l.is_memory(0) ? 0 : 1;
  const unsigned other = 1 - memory;
  if (l.is_memory(memory)) {
    const ValueId address = l.address_value(l.memory_address());
    const ValueId value = l.read_gpr(l.operand(other));
    l.write_gpr(l.operand(other), atomic(l, AtomicKind::kExchange, width, address, value));
    return;
  }
  ValueId x = l.read_gpr(l.operand(0));
  const ValueId y = l.read_gpr(l.operand(1));
  if (width < 32 && l.operand(0).reg == l.operand(1).reg) x = l.b.op(Opcode::kMov, width, x);
  l.write_gpr(l.operand(0), y);
  l.write_gpr(l.operand(1), x);
}

void lift_xadd(Lifter& l) {
  const uint8_t width = l.width(0);
  const ValueId y = l.read_gpr(l.operand(1));
  if (l.is_memory(0)) {
    const Address m = l.memory_address();
    ValueId old;
    if (l.in.has_prefix(decode::kPrefixLock)) {
      old = atomic(l, AtomicKind::kAdd, width, l.address_value(m), y);
      with_flags(l, Opcode::kAdd, width, old, {y, 0});
    } else {
      old = l.load(m, width);
      l.store(m, with_flags(l, Opcode::kAdd, width, old, {y, 0}), width);
    }
    l.write_gpr(l.operand(1), old);
    return;
  }
  const ValueId x = l.read_gpr(l.operand(0));
  const ValueId sum = with_flags(l, Opcode::kAdd, width, x, {y, 0});
  l.write_gpr(l.operand(1), x);
  l.write_gpr(l.operand(0), sum);
}

// CMPXCHG: compares the accumulator with the destination; equal: destination = source, else accumulator =
// destination.
void lift_cmpxchg(Lifter& l) {
  const uint8_t width = l.width(0);
  const ValueId expected = l.b.get_gpr(kRax);
  ValueId desired = l.read_gpr(l.operand(1));
  if (l.is_memory(0)) {
    const Address m = l.memory_address();
    ValueId old;
    if (l.in.has_prefix(decode::kPrefixLock)) {
      old = l.b.op(Opcode::kAtomicCas, width, l.address_value(m), expected, desired);
      with_flags(l, Opcode::kSub, width, expected, {old, 0});
      if (width == 64) {
        l.b.set_gpr(kRax, old);  // equal: it is the accumulator
        return;
      }
    } else {
      old = l.load(m, width);
      with_flags(l, Opcode::kSub, width, expected, {old, 0});
      // x86 writes the destination in both cases.
      l.store(m, l.b.op_condition(Opcode::kSelect, 64, 4, desired, old), width);
    }
    // Equal: the accumulator keeps its value, upper half included.
    if (width >= 32) {
      l.b.set_gpr(kRax, l.b.op_condition(Opcode::kSelect, 64, 4, expected, old));
    } else {
      l.write_gpr(kRax, width, old);
    }
    return;
  }
  const ValueId old = l.read_gpr(l.operand(0));
  with_flags(l, Opcode::kSub, width, expected, {old, 0});
  // Not equal: a 32-bit destination keeps its upper half (as the CPUs do it; the SDM is silent).
  if (width == 32) desired = l.b.op(Opcode::kMov, 32, desired);
  const ValueId fresh = l.b.op_condition(Opcode::kSelect, 64, 4, desired, old);
  if (width >= 32) {
    const ValueId loaded = width == 32 ? l.b.op(Opcode::kMov, 32, old) : old;
    l.b.set_gpr(kRax, l.b.op_condition(Opcode::kSelect, 64, 4, expected, loaded));
  } else {
    l.write_gpr(kRax, width, old);
  }
  if (width >= 32) {
    l.b.set_gpr(l.operand(0).reg, fresh);
  } else {
    l.write_gpr(l.operand(0), fresh);
  }
}

// CMPXCHG8B, CMPXCHG16B: only ZF changes.
void lift_cmpxchg_pair(Lifter& l) {
  const ValueId address = l.address_value(l.memory_address());
  const uint8_t bytes = l.in.mnemonic == decode::Mnemonic::kCmpxchg16b ? 16 : 8;
  const ValueId equal = l.b.op(Opcode::kAtomicCas16, 64, address, kNoValue, kNoValue, 0, bytes);
  const ValueId at_zf = l.b.op_imm(Opcode::kShiftLeft, 32, equal, 6);
  l.b.op(Opcode::kSetNzcv, 32, at_zf, kNoValue, kNoValue, 0, 0, 0, ir::kZ);
}

}  // namespace phybin::lift
