// The x87 instructions that programs spend their time in: loads, stores, basic arithmetic, comparison.
#include "worker/runtime/helpers/x87_ops.h"

#include <utility>

#include "worker/runtime/helpers/x87_commit.h"

namespace phybin::runtime::x87 {

using namespace detail;

namespace detail {

bool commit_unmasked(X87State& state, uint32_t flags, uint32_t blocking) {
  state.status_word |= kErrorSummary | kBusy;
  state.ordinary = 0;
  return (flags & ~state.control_word & blocking) == 0;
}

}  // namespace detail

namespace {

using FullOperation = Float80 (*)(Float80, Float80, Context&);
using CommonOperation = Common (*)(Float80, Float80);

// ST(destination) = operation(...), for word `a` of register arithmetic, whatever the operands.
template <FullOperation operation>
[[gnu::noinline]] uint64_t arithmetic_in_full(X87State* state, uint64_t a) {
  const unsigned destination = a & 7;
  const unsigned source = a >> 3 & 7;
  Float80 result = kIndefinite;
  Context context = context_of(*state);
  if (is_empty(*state, destination) || is_empty(*state, source)) {
    context.flags = kInvalid | kStackFault;
  } else {
    const Float80 x = st(*state, destination);
    const Float80 y = st(*state, source);
    result = (a & kReversed) != 0 ? operation(y, x, context) : operation(x, y, context);
  }
  if (!commit(*state, context.flags)) return 0;
  write(*state, destination, result);
  if ((a & kArithmeticPop) != 0) pop(*state);
  return 0;
}

template <CommonOperation common, FullOperation operation>
[[gnu::always_inline]] inline uint64_t register_arithmetic(X87State* state, uint64_t a) {
  const unsigned destination = a & 7;
  const unsigned source = a >> 3 & 7;
  if (__builtin_expect((state->occupied >> destination & state->occupied >> source & 1) != 0 &&
                           has_common_control(state->control_word),
                       1)) {
    Float80 x = st(*state, destination);
    Float80 y = st(*state, source);
    if ((a & kReversed) != 0) std::swap(x, y);
    const Common result = common(x, y);
    if (__builtin_expect(result.ok, 1)) {
      st(*state, destination) = result.value;
      commit_common(*state, result.flags);
      if ((a & kArithmeticPop) != 0) pop(*state);
      return 0;
    }
  }
  return arithmetic_in_full<operation>(state, a);
}

[[gnu::always_inline]] inline Common subtract_common(Float80 x, Float80 y) { return add_common(x, negate(y)); }

// ST(0) op operand, for every MemoryOperation that computes.
Float80 memory_operation(uint64_t operation, Float80 x, Float80 y, Context& context) {
  switch (operation) {
    case kMemoryAdd:
      return add(x, y, context);
    case kMemoryMultiply:
      return multiply(x, y, context);
    case kMemorySubtract:
      return subtract(x, y, context);
    case kMemorySubtractReversed:
      return subtract(y, x, context);
    case kMemoryDivide:
      return divide(x, y, context);
    default:
      return divide(y, x, context);
  }
}

[[gnu::always_inline]] inline Common memory_operation_common(uint64_t operation, Float80 x, Float80 y) {
  if (operation == kMemoryMultiply) return multiply_common(x, y);
  if ((operation & 6) == (kMemoryDivide & 6)) {
    if (operation == kMemoryDivideReversed) std::swap(x, y);
    return divide_common(x, y);
  }
  if (operation == kMemorySubtract) y = negate(y);
  if (operation == kMemorySubtractReversed) x = negate(x);
  return add_common(x, y);
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

// An instruction that stores ST(0) to memory, whatever ST(0) is.
template <typename Result, typename Convert>
[[gnu::noinline]] uint64_t store_in_full(X87State& state, bool pops, Result indefinite, Convert convert) {
  uint32_t flags = kInvalid | kStackFault;
  Result bits = indefinite;
  if (!is_empty(state, 0)) {
    Context context = context_of(state);
    bits = convert(st(state, 0), context);
    flags = context.flags;
  }
  if (commit_store(state, flags) && pops) pop(state);
  return static_cast<uint64_t>(bits);
}

[[gnu::noinline]] uint64_t memory_arithmetic_in_full(X87State* state, uint64_t a, uint64_t bits) {
  const uint64_t operation = a & 7;
  const bool empty = is_empty(*state, 0);
  Context context = context_of(*state);
  const Float80 x = st(*state, 0);
  const Float80 y = widen_operand(a >> 3, bits, context);
  if (empty) context.flags = kInvalid | kStackFault;
  if (operation == kMemoryCompare || operation == kMemoryComparePop) {
    const uint32_t condition = empty ? kUnordered : compare(x, y, false, context);
    if (commit_comparison(*state, condition, context.flags) && operation == kMemoryComparePop) pop(*state);
    return 0;
  }
  const Float80 result = empty ? kIndefinite : memory_operation(operation, x, y, context);
  if (commit(*state, context.flags)) write(*state, 0, result);
  return 0;
}

template <typename Bits, Float80 (*widen)(Bits, Context&)>
[[gnu::noinline]] uint64_t load_in_full(X87State* state, Bits bits) {
  Context context = context_of(*state);
  const Float80 v = load_widened(widen(bits, context), context);
  push(*state, v, context.flags);
  return 0;
}

template <typename Bits, Common (*common)(uint64_t), Float80 (*widen)(Bits, Context&)>
[[gnu::always_inline]] inline uint64_t load(X87State* state, Bits bits) {
  const Common v = common(bits);
  if (__builtin_expect(!v.ok || !is_empty(*state, 7), 0)) return load_in_full<Bits, widen>(state, bits);
  push_common(*state, v.value);
  return 0;
}

[[gnu::noinline]] uint64_t exchange_in_full(X87State* state, uint64_t index) {
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

// FCOMI (to_eflags) and FCOM.
[[gnu::noinline]] uint64_t compare_in_full(X87State* state, uint64_t a, bool to_eflags) {
  Context context = context_of(*state);
  uint32_t condition = kUnordered;
  if (is_empty(*state, 0) || is_empty(*state, a & 7)) {
    context.flags = kInvalid | kStackFault;
  } else {
    condition = compare(st(*state, 0), st(*state, a & 7), (a & kCompareQuiet) != 0, context);
  }
  if (to_eflags) {
    // Unlike FCOM it keeps C1 if there is no stack fault.
    if ((context.flags & kStackFault) == 0) context.flags |= state->status_word & kC1;
    if (commit(*state, context.flags)) pop_after_comparison(*state, a);
  } else if (commit_comparison(*state, condition, context.flags)) {
    pop_after_comparison(*state, a);
  }
  // C0, C2 and C3 are where CF, PF and ZF are in the upper byte.
  return condition >> 8;
}

// A store on its common path if the control word lets it, else in full.
template <typename Result, typename CommonConvert, typename Convert>
[[gnu::always_inline]] inline uint64_t store(X87State* state, bool pops, bool common_control, Result indefinite,
                                             CommonConvert common, Convert convert) {
  if (__builtin_expect(!is_empty(*state, 0) && common_control, 1)) {
    const CommonStore stored = common(st(*state, 0));
    if (__builtin_expect(stored.ok, 1)) {
      commit_common(*state, stored.flags);
      if (pops) pop(*state);
      return stored.bits;
    }
  }
  return store_in_full(*state, pops, indefinite, convert);
}

// Both operands of a comparison in registers, on its common path.
[[gnu::always_inline]] inline bool compare_registers(X87State& state, uint64_t a, uint32_t& condition) {
  const unsigned index = a & 7;
  return (state.occupied & state.occupied >> index & 1) != 0 &&
         compare_common(st(state, 0), st(state, index), condition);
}

}  // namespace

}  // namespace phybin::runtime::x87

using namespace phybin::runtime::x87;
using namespace phybin::runtime::x87::detail;

uint64_t phybin_x87_fld_m32(X87State* state, uint64_t bits, uint64_t) {
  return load<uint32_t, widen_float32_common, widen_float32>(state, static_cast<uint32_t>(bits));
}

uint64_t phybin_x87_fld_m64(X87State* state, uint64_t bits, uint64_t) {
  return load<uint64_t, widen_float64_common, widen_float64>(state, bits);
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
      decrement_top(*state);
      write(*state, 0, kIndefinite);
    }
    return 0;
  }
  push(*state, st(*state, static_cast<unsigned>(index)));
  return 0;
}

uint64_t phybin_x87_fst_m32(X87State* state, uint64_t pops, uint64_t) {
  return store(state, pops != 0, has_common_control(state->control_word), uint32_t{0xffc00000}, to_float32_common,
               to_float32);
}

uint64_t phybin_x87_fst_m64(X87State* state, uint64_t pops, uint64_t) {
  return store(state, pops != 0, has_common_control(state->control_word), uint64_t{0xfff8} << 48, to_float64_common,
               to_float64);
}

uint64_t phybin_x87_fist(X87State* state, uint64_t a, uint64_t) {
  const unsigned size = a & 0x7f;
  const uint32_t rounding = state->control_word & kRoundingControl;
  // Compilers convert to integers by FISTP under a control word that truncates, so that is a common path too.
  const bool truncate = (a & kStoreTruncate) != 0 || rounding == kRoundToZero;
  const bool common_control = (truncate || rounding == kRoundNearest) && (state->control_word & kPrecision) != 0;
  return store(
      state, (a & kStorePop) != 0, common_control, static_cast<int64_t>(~uint64_t{0} << (size - 1)),
      [=](Float80 v) { return to_integer_common(v, size, truncate); },
      [=](Float80 v, Context& context) { return to_integer(v, size, truncate, context); });
}

uint64_t phybin_x87_fst_m80_significand(X87State* state, uint64_t, uint64_t) {
  return is_empty(*state, 0) ? kIndefinite.significand : st(*state, 0).significand;
}

uint64_t phybin_x87_fst_m80_sign_exponent(X87State* state, uint64_t pops, uint64_t) {
  return store_in_full(*state, pops != 0, kIndefinite.sign_exponent,
                       [](Float80 v, Context&) { return v.sign_exponent; });
}

uint64_t phybin_x87_fst_sti(X87State* state, uint64_t index, uint64_t pops) {
  const bool empty = is_empty(*state, 0);
  if (!commit(*state, empty ? kInvalid | kStackFault : 0u)) return 0;
  write(*state, static_cast<unsigned>(index), empty ? kIndefinite : st(*state, 0));
  if (pops != 0) pop(*state);
  return 0;
}

uint64_t phybin_x87_fxch(X87State* state, uint64_t index, uint64_t) {
  const unsigned i = index & 7;
  if (__builtin_expect((state->occupied & state->occupied >> i & 1) == 0, 0)) return exchange_in_full(state, index);
  std::swap(st(*state, 0), st(*state, i));
  commit_common(*state, 0);
  return 0;
}

uint64_t phybin_x87_fadd(X87State* state, uint64_t operands, uint64_t) {
  return register_arithmetic<add_common, add>(state, operands);
}

uint64_t phybin_x87_fsub(X87State* state, uint64_t operands, uint64_t) {
  return register_arithmetic<subtract_common, subtract>(state, operands);
}

uint64_t phybin_x87_fmul(X87State* state, uint64_t operands, uint64_t) {
  return register_arithmetic<multiply_common, multiply>(state, operands);
}

uint64_t phybin_x87_fdiv(X87State* state, uint64_t operands, uint64_t) {
  return register_arithmetic<divide_common, divide>(state, operands);
}

uint64_t phybin_x87_arithmetic_memory(X87State* state, uint64_t a, uint64_t bits) {
  const uint64_t operation = a & 7;
  if (__builtin_expect(a >> 3 != kMemoryInteger && !is_empty(*state, 0) && (operation & 6) != kMemoryCompare &&
                           has_common_control(state->control_word),
                       1)) {
    const Common y = a >> 3 == kMemoryFloat32 ? widen_float32_common(bits) : widen_float64_common(bits);
    if (__builtin_expect(y.ok, 1)) {
      const Common result = memory_operation_common(operation, st(*state, 0), y.value);
      if (__builtin_expect(result.ok, 1)) {
        st(*state, 0) = result.value;
        commit_common(*state, result.flags);
        return 0;
      }
    }
  }
  return memory_arithmetic_in_full(state, a, bits);
}

uint64_t phybin_x87_fcom(X87State* state, uint64_t a, uint64_t) {
  uint32_t condition;
  if (__builtin_expect(!compare_registers(*state, a, condition), 0)) return compare_in_full(state, a, false);
  state->status_word = static_cast<uint16_t>((state->status_word & ~(kUnordered | kC1)) | condition);
  pop_after_comparison(*state, a);
  return 0;
}

uint64_t phybin_x87_fcomi(X87State* state, uint64_t a, uint64_t) {
  uint32_t condition;
  if (__builtin_expect(!compare_registers(*state, a, condition), 0)) return compare_in_full(state, a, true);
  pop_after_comparison(*state, a);
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
