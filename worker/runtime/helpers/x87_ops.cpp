// The x87 instructions that programs spend their time in: loads, stores, basic arithmetic, comparison.
#include "worker/runtime/helpers/x87_ops.h"

#include "worker/runtime/helpers/x87_commit.h"

namespace phybin::runtime::x87 {

using namespace detail;

namespace detail {

bool commit_unmasked(X87State& state, uint32_t flags, uint32_t blocking) {
  state.status_word |= kErrorSummary | kBusy;
  return (flags & ~state.control_word & blocking) == 0;
}

}  // namespace detail

namespace {

// ST(destination) = operation(...), for word `a` of register arithmetic.
template <typename Operation>
inline uint64_t register_arithmetic(X87State& state, uint64_t a, Operation operation) {
  const unsigned destination = a & 7;
  const unsigned source = a >> 3 & 7;
  Float80 result = kIndefinite;
  if (__builtin_expect(is_empty(state, destination) || is_empty(state, source), 0)) {
    if (!stack_underflow(state)) return 0;
    mark_occupied(state, destination);
  } else {
    Context context = context_of(state);
    const Float80 x = st(state, destination);
    const Float80 y = st(state, source);
    result = (a & kReversed) != 0 ? operation(y, x, context) : operation(x, y, context);
    if (!commit(state, context.flags)) return 0;
  }
  st(state, destination) = result;
  if ((a & kArithmeticPop) != 0) pop(state);
  return 0;
}

Float80 memory_operation(uint64_t operation, Float80 x, Float80 y, Context& context) {
  // A memory operand that was denormal is a normal number now, but still has to raise DE.
  const bool slow = context.source_denormal;
  switch (operation) {
    case kMemoryAdd:
      return slow ? add_slow(x, y, context) : add(x, y, context);
    case kMemoryMultiply:
      return slow ? multiply_slow(x, y, context) : multiply(x, y, context);
    case kMemorySubtract:
      return slow ? subtract_slow(x, y, context) : subtract(x, y, context);
    case kMemorySubtractReversed:
      return slow ? subtract_slow(y, x, context) : subtract(y, x, context);
    case kMemoryDivide:
      return slow ? divide_slow(x, y, context) : divide(x, y, context);
    default:
      return slow ? divide_slow(y, x, context) : divide(y, x, context);
  }
}

Float80 widen_operand(uint64_t kind, uint64_t bits, Context& context) {
  if (kind == kMemoryFloat64) return widen_float64(bits, context);
  if (kind == kMemoryFloat32) return widen_float32(static_cast<uint32_t>(bits), context);
  return from_int64(static_cast<int64_t>(bits));
}

constexpr uint32_t kUnordered = kC0 | kC2 | kC3;

// Sets the condition codes of a comparison that raised `flags`, after an unmasked exception too; false if it then
// must not pop.
bool commit_comparison(X87State& state, uint32_t condition, uint32_t flags) {
  const bool completed = commit(state, flags);
  state.status_word = static_cast<uint16_t>((state.status_word & ~kUnordered) | condition);
  return completed;
}

void pop_after_comparison(X87State& state, uint64_t a) {
  if ((a & (kComparePop | kComparePopTwice)) != 0) pop(state);
  if ((a & kComparePopTwice) != 0) pop(state);
}

// What an instruction that stores ST(0) to memory finds there.
template <typename Result, typename Convert>
inline uint64_t store(X87State& state, bool pops, Result indefinite, Convert convert) {
  uint32_t flags = kInvalid | kStackFault;
  Result bits = indefinite;
  if (__builtin_expect(!is_empty(state, 0), 1)) {
    Context context = context_of(state);
    bits = convert(st(state, 0), context);
    flags = context.flags;
  }
  if (commit_store(state, flags) && pops) pop(state);
  return static_cast<uint64_t>(bits);
}

}  // namespace

}  // namespace phybin::runtime::x87

using namespace phybin::runtime::x87;
using namespace phybin::runtime::x87::detail;

uint64_t phybin_x87_fld_m32(X87State* state, uint64_t bits, uint64_t) {
  Context context = context_of(*state);
  const Float80 v = load_widened(widen_float32(static_cast<uint32_t>(bits), context), context);
  push(*state, v, context.flags);
  return 0;
}

uint64_t phybin_x87_fld_m64(X87State* state, uint64_t bits, uint64_t) {
  Context context = context_of(*state);
  const Float80 v = load_widened(widen_float64(bits, context), context);
  push(*state, v, context.flags);
  return 0;
}

uint64_t phybin_x87_fld_m80(X87State* state, uint64_t significand, uint64_t sign_exponent) {
  push(*state, {significand, static_cast<uint16_t>(sign_exponent)});
  return 0;
}

uint64_t phybin_x87_fld_i64(X87State* state, uint64_t value, uint64_t) {
  push(*state, from_int64(static_cast<int64_t>(value)));
  return 0;
}

uint64_t phybin_x87_fld_sti(X87State* state, uint64_t index, uint64_t) {
  if (__builtin_expect(is_empty(*state, static_cast<unsigned>(index)), 0)) {
    if (stack_underflow(*state)) {
      state->top = (state->top - 1) & 7;
      write(*state, 0, kIndefinite);
    }
    return 0;
  }
  push(*state, st(*state, static_cast<unsigned>(index)));
  return 0;
}

uint64_t phybin_x87_fst_m32(X87State* state, uint64_t pops, uint64_t) {
  return store(*state, pops != 0, uint32_t{0xffc00000}, to_float32);
}

uint64_t phybin_x87_fst_m64(X87State* state, uint64_t pops, uint64_t) {
  return store(*state, pops != 0, uint64_t{0xfff8} << 48, to_float64);
}

uint64_t phybin_x87_fist(X87State* state, uint64_t a, uint64_t) {
  const unsigned size = a & 0x7f;
  return store(*state, (a & kStorePop) != 0, static_cast<int64_t>(~uint64_t{0} << (size - 1)),
               [=](Float80 v, Context& context) { return to_integer(v, size, (a & kStoreTruncate) != 0, context); });
}

uint64_t phybin_x87_fstp_m80_significand(X87State* state, uint64_t, uint64_t) {
  return is_empty(*state, 0) ? kIndefinite.significand : st(*state, 0).significand;
}

uint64_t phybin_x87_fstp_m80_sign_exponent(X87State* state, uint64_t, uint64_t) {
  return store(*state, true, kIndefinite.sign_exponent, [](Float80 v, Context&) { return v.sign_exponent; });
}

uint64_t phybin_x87_fst_sti(X87State* state, uint64_t index, uint64_t pops) {
  const bool empty = is_empty(*state, 0);
  if (!commit(*state, empty ? kInvalid | kStackFault : 0u)) return 0;
  write(*state, static_cast<unsigned>(index), empty ? kIndefinite : st(*state, 0));
  if (pops != 0) pop(*state);
  return 0;
}

uint64_t phybin_x87_fxch(X87State* state, uint64_t index, uint64_t) {
  const unsigned i = static_cast<unsigned>(index);
  const bool empty_0 = is_empty(*state, 0);
  const bool empty_i = is_empty(*state, i);
  const Float80 x = empty_0 ? kIndefinite : st(*state, 0);
  const Float80 y = empty_i ? kIndefinite : st(*state, i);
  if (!commit(*state, empty_0 || empty_i ? kInvalid | kStackFault : 0u)) return 0;
  write(*state, 0, y);
  write(*state, i, x);
  return 0;
}

uint64_t phybin_x87_fadd(X87State* state, uint64_t operands, uint64_t) {
  return register_arithmetic(*state, operands, [](Float80 x, Float80 y, Context& c) { return add(x, y, c); });
}

uint64_t phybin_x87_fsub(X87State* state, uint64_t operands, uint64_t) {
  return register_arithmetic(*state, operands, [](Float80 x, Float80 y, Context& c) { return subtract(x, y, c); });
}

uint64_t phybin_x87_fmul(X87State* state, uint64_t operands, uint64_t) {
  return register_arithmetic(*state, operands, [](Float80 x, Float80 y, Context& c) { return multiply(x, y, c); });
}

uint64_t phybin_x87_fdiv(X87State* state, uint64_t operands, uint64_t) {
  return register_arithmetic(*state, operands, [](Float80 x, Float80 y, Context& c) { return divide(x, y, c); });
}

uint64_t phybin_x87_arithmetic_memory(X87State* state, uint64_t a, uint64_t bits) {
  const uint64_t operation = a & 7;
  const bool compares = operation == kMemoryCompare || operation == kMemoryComparePop;
  const bool empty = is_empty(*state, 0);
  Context context = context_of(*state);
  const Float80 x = st(*state, 0);
  const Float80 y = widen_operand(a >> 3, bits, context);
  if (__builtin_expect(empty, 0)) context.flags = kInvalid | kStackFault;
  if (compares) {
    uint32_t condition = kUnordered;
    if (!empty)
      condition = context.source_denormal ? compare_slow(x, y, false, context) : compare(x, y, false, context);
    if (commit_comparison(*state, condition, context.flags) && operation == kMemoryComparePop) pop(*state);
    return 0;
  }
  const Float80 result = empty ? kIndefinite : memory_operation(operation, x, y, context);
  if (commit(*state, context.flags)) write(*state, 0, result);
  return 0;
}

uint64_t phybin_x87_fcom(X87State* state, uint64_t a, uint64_t) {
  Context context = context_of(*state);
  uint32_t condition = kUnordered;
  if (is_empty(*state, 0) || is_empty(*state, a & 7)) {
    context.flags = kInvalid | kStackFault;
  } else {
    condition = compare(st(*state, 0), st(*state, a & 7), (a & kCompareQuiet) != 0, context);
  }
  if (commit_comparison(*state, condition, context.flags)) pop_after_comparison(*state, a);
  return 0;
}

uint64_t phybin_x87_fcomi(X87State* state, uint64_t a, uint64_t) {
  Context context = context_of(*state);
  uint32_t condition = kUnordered;
  if (__builtin_expect(is_empty(*state, 0) || is_empty(*state, a & 7), 0)) {
    context.flags = kInvalid | kStackFault;
  } else {
    condition = compare(st(*state, 0), st(*state, a & 7), (a & kCompareQuiet) != 0, context);
  }
  // Unlike FCOM it keeps C1 if there is no stack fault.
  const uint32_t kept = state->status_word & ((context.flags & kStackFault) != 0 ? 0 : kC1);
  if (commit(*state, context.flags | kept)) pop_after_comparison(*state, a);
  // C0, C2 and C3 are where CF, PF and ZF are in the upper byte.
  return condition >> 8;
}

uint64_t phybin_x87_fchs(X87State* state, uint64_t, uint64_t) {
  const bool empty = is_empty(*state, 0);
  if (commit(*state, empty ? kInvalid | kStackFault : 0u))
    write(*state, 0, empty ? kIndefinite : negate(st(*state, 0)));
  return 0;
}

uint64_t phybin_x87_fabs(X87State* state, uint64_t, uint64_t) {
  const bool empty = is_empty(*state, 0);
  if (commit(*state, empty ? kInvalid | kStackFault : 0u)) {
    write(*state, 0, empty ? kIndefinite : absolute(st(*state, 0)));
  }
  return 0;
}
