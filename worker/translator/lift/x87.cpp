// See x87.h.
#include "worker/translator/lift/x87.h"

namespace phybin::lift {

using namespace x87;  // NOLINT: the file is about nothing else

namespace {

const X87Form& form_of(const Lifter& l) { return x87_form(l.in.mnemonic); }

void check(Lifter& l) { l.b.op(Opcode::kX87Check, 0); }

ValueId call(Lifter& l, LightHelper helper, ValueId x = kNoValue, ValueId y = kNoValue) {
  return l.b.op(Opcode::kCallHelper, 64, x, y, kNoValue, static_cast<int64_t>(helper));
}

ValueId call_word(Lifter& l, LightHelper helper, uint64_t x, ValueId y = kNoValue) {
  return call(l, helper, l.b.constant(static_cast<int64_t>(x)), y);
}

// i of the last operand, ST(i).
unsigned stack_index(const Lifter& l) { return l.operand(l.in.operand_count - 1u).reg; }

// Stores what a helper has returned; the last store of an instruction changes the state.
void store(Lifter& l, const Address& m, ValueId value, uint8_t width, bool last = true) {
  l.b.op(Opcode::kX87Store, width, m.base, m.index, value, m.disp, m.scale, last ? 1 : 0);
}

// An instruction that is done inline; its words of the helper are ST(index) and option.
void inline_st(Lifter& l, Opcode code, unsigned index, bool option = false) {
  l.b.op(code, 0, kNoValue, kNoValue, kNoValue, index, option ? 1 : 0);
}

void push(Lifter& l, ValueId significand, ValueId sign_exponent) {
  l.b.op(Opcode::kX87Push, 64, significand, sign_exponent);
}

// Loads the two parts of a 10-byte operand.
struct Pair {
  ValueId low, high;
};
Pair load_pair(Lifter& l) {
  Address m = l.memory_address();
  const ValueId low = l.load(m, 64);
  m.disp += 8;
  return {low, l.load(m, 16)};
}

ValueId load_integer(Lifter& l) {
  const Address m = l.memory_address();
  const uint8_t width = l.width(0);
  if (width == 64) return l.load(m, 64);
  return l.b.op(Opcode::kLoadSigned, width, m.base, m.index, kNoValue, m.disp, m.scale, 64);
}

constexpr uint64_t kOperationMask = 7;

MemoryKind float_kind(const Lifter& l) { return l.width(0) == 32 ? kMemoryFloat32 : kMemoryFloat64; }

// A comparison or division, or an operation on an integer.
void memory_call(Lifter& l, uint64_t operation, MemoryKind kind, ValueId bits) {
  const uint64_t word = memory_arithmetic(static_cast<MemoryOperation>(operation), kind);
  call_word(l, LightHelper::k_x87_arithmetic_memory, word, bits);
}

// Which operand of addition is to change its sign, by MemoryOperation.
constexpr uint8_t inverted_operand(uint64_t operation) {
  return operation == kMemorySubtract ? 2 : operation == kMemorySubtractReversed ? 1 : 0;
}

void inline_arithmetic(Lifter& l, Opcode code, uint8_t width, ValueId bits, uint64_t word, ArithmeticKind kind,
                       uint8_t inverted) {
  l.b.op(code, width, bits, kNoValue, kNoValue, static_cast<int64_t>(word), static_cast<uint8_t>(kind), inverted);
}

ValueId get_state(Lifter& l, uint8_t width, uint32_t offset) {
  return l.b.op(Opcode::kGetState, width, kNoValue, kNoValue, kNoValue, offset);
}

}  // namespace

void lift_x87_call_no_wait(Lifter& l) { call_word(l, form_of(l).helper, form_of(l).detail); }

void lift_x87_call(Lifter& l) {
  check(l);
  lift_x87_call_no_wait(l);
}

// Register forms list both operands, destination first; FADDP and so on have ST(0) as the source.
void lift_x87_arithmetic(Lifter& l) {
  const X87Form& form = form_of(l);
  const bool divides = form.helper == LightHelper::k_x87_fdiv;
  const bool subtracts = form.helper == LightHelper::k_x87_fsub;
  const ArithmeticKind kind = form.helper == LightHelper::k_x87_fmul ? ArithmeticKind::kMultiply
                              : subtracts                            ? ArithmeticKind::kSubtract
                                                                     : ArithmeticKind::kAdd;
  if (divides) check(l);
  if (l.is_memory(0)) {
    const uint64_t operation = form.detail & kOperationMask;
    const ValueId bits = l.read(0);
    if (divides) return memory_call(l, operation, float_kind(l), bits);
    const uint64_t word = memory_arithmetic(static_cast<MemoryOperation>(operation), float_kind(l));
    return inline_arithmetic(l, Opcode::kX87ArithmeticMemory, l.width(0), bits, word, kind,
                             inverted_operand(operation));
  }
  const bool reversed = (form.detail & kReversed) != 0, pops = (form.detail & kArithmeticPop) != 0;
  const uint64_t word = arithmetic_operands(l.operand(0).reg, l.operand(1).reg, reversed, pops);
  if (divides) {
    call_word(l, form.helper, word);
  } else {
    inline_arithmetic(l, Opcode::kX87Arithmetic, 0, kNoValue, word, kind, !subtracts ? 0 : reversed ? 1 : 2);
  }
}

void lift_x87_integer_arithmetic(Lifter& l) {
  check(l);
  memory_call(l, form_of(l).detail, kMemoryInteger, load_integer(l));
}

void lift_fcom(Lifter& l) {
  check(l);
  const X87Form& form = form_of(l);
  if (l.in.operand_count != 0 && l.is_memory(0)) {
    const uint64_t operation = (form.detail & kComparePop) != 0 ? kMemoryComparePop : kMemoryCompare;
    memory_call(l, operation, float_kind(l), l.read(0));
    return;
  }
  // FCOMPP and FUCOMPP list no operand: it is ST(1).
  call_word(l, form.helper, form.detail | (l.in.operand_count != 0 ? stack_index(l) : 1));
}

void lift_ficom(Lifter& l) { lift_x87_integer_arithmetic(l); }

void lift_fcomi(Lifter& l) {
  const int64_t word = form_of(l).detail | stack_index(l);
  const ValueId pf = l.b.op(Opcode::kX87Compare, 64, kNoValue, kNoValue, kNoValue, word, 0, 0, ir::kNzcv);
  l.b.set_pf(pf);
  l.b.set_af(ir::AfKind::kPlain, kNoValue, kNoValue, 0);  // bit 4 of PF's value is 0, as AF is
}

void lift_fcmov(Lifter& l) {
  check(l);
  const ValueId taken = l.b.op_condition(Opcode::kSetCc, 32, l.in.condition);
  call_word(l, form_of(l).helper, stack_index(l), taken);
}

void lift_fld(Lifter& l) {
  if (!l.is_memory(0)) {
    inline_st(l, Opcode::kX87PushSt, stack_index(l));
  } else if (l.operand(0).size == 10) {
    const Pair value = load_pair(l);
    push(l, value.low, value.high);
  } else {
    l.b.op(Opcode::kX87PushFloat, l.width(0), l.read(0));
  }
}

// FLDZ and FLD1 do not depend on rounding.
void lift_fldz(Lifter& l) {
  const ValueId zero = l.b.constant(0);
  push(l, zero, zero);
}
void lift_fld1(Lifter& l) {
  const ValueId significand = l.b.constant(INT64_MIN);
  push(l, significand, l.b.constant(0x3fff));
}

void lift_fild(Lifter& l) { l.b.op(Opcode::kX87PushInt, 64, load_integer(l)); }

void lift_fxch(Lifter& l) { inline_st(l, Opcode::kX87Exchange, stack_index(l)); }
void lift_fchs(Lifter& l) { inline_st(l, Opcode::kX87Sign, 0); }
void lift_fabs(Lifter& l) { inline_st(l, Opcode::kX87Sign, 0, true); }

void lift_fbld(Lifter& l) {
  check(l);
  const Pair value = load_pair(l);
  call(l, LightHelper::k_x87_fbld, value.low, value.high);
}

void lift_fst(Lifter& l) {
  const bool pops = form_of(l).detail != 0;
  if (!l.is_memory(0)) {
    inline_st(l, Opcode::kX87Copy, stack_index(l), pops);
    return;
  }
  const Address m = l.memory_address();
  if (l.operand(0).size == 10) {
    l.b.op(Opcode::kX87StoreExtended, 64, m.base, m.index, kNoValue, m.disp, m.scale);
    return;
  }
  check(l);
  const LightHelper helper = l.width(0) == 64 ? LightHelper::k_x87_fst_m64 : LightHelper::k_x87_fst_m32;
  store(l, m, call_word(l, helper, form_of(l).detail), l.width(0));
}

void lift_fbstp(Lifter& l) {
  check(l);
  Address m = l.memory_address();
  const ValueId low = call(l, LightHelper::k_x87_fbst_low);
  const ValueId high = call_word(l, LightHelper::k_x87_fbst_high, 1);
  store(l, m, low, 64, false);
  m.disp += 8;
  store(l, m, high, 16);
}

void lift_fist(Lifter& l) {
  check(l);
  const Address m = l.memory_address();
  store(l, m, call_word(l, LightHelper::k_x87_fist, l.width(0) | form_of(l).detail), l.width(0));
}

void lift_ffree(Lifter& l) {
  check(l);
  call_word(l, LightHelper::k_x87_ffree, stack_index(l), l.b.constant(form_of(l).detail));
}

void lift_fwait(Lifter& l) { check(l); }

void lift_fldcw(Lifter& l) {
  check(l);
  call(l, LightHelper::k_x87_fldcw, l.read(0));
}

void lift_fnstcw(Lifter& l) { l.write(0, get_state(l, 16, kControlWordOffset)); }

void lift_fnstsw(Lifter& l) {
  const ValueId top = l.b.op_imm(Opcode::kShiftLeft, 32, get_state(l, 8, kTopOffset), 11);
  l.write(0, l.b.op(Opcode::kOr, 32, get_state(l, 16, kStatusWordOffset), top));
}

void lift_x87_image_no_wait(Lifter& l) {
  const ValueId address = l.address_value(l.memory_address());
  const ValueId operand16 = l.b.constant(l.in.operand_size == 2 ? 1 : 0);
  l.b.op(Opcode::kCallState, 64, address, operand16, kNoValue, form_of(l).detail);
}

void lift_x87_image(Lifter& l) {
  check(l);
  lift_x87_image_no_wait(l);
}

}  // namespace phybin::lift
