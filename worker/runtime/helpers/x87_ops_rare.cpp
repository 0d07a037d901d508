// The x87 instructions that are rare: those of one operand with a long computation behind them, constants, packed
// decimal, conditional moves, control.
#include "worker/runtime/helpers/x87_commit.h"
#include "worker/runtime/helpers/x87_ops.h"
#include "worker/runtime/helpers/x87_transcendental.h"

namespace phybin::runtime::x87 {

using namespace detail;

namespace {

// What an operation works on and gives back: x is ST(0), y is ST(1).
struct Operands {
  Float80 x;
  Float80 y;
};

enum class Shape : uint8_t {
  kReplace,  // ST(0) = x
  kPop,      // ST(1) = x, pop
  kPush,     // ST(0) = x, push y
};

struct OperationEntry {
  void (*compute)(Operands& operands, Context& context);
  Shape shape;
  bool reads_st1;
  bool clears_c2;  // it can be incomplete, or out of range
};

constexpr uint32_t kAllConditions = kC0 | kC2 | kC3;

// Indexed by Operation, from kFsqrt on.
constexpr OperationEntry kOperations[] = {
    {[](Operands& o, Context& c) { o.x = square_root(o.x, c); }, Shape::kReplace, false, false},
    {[](Operands& o, Context& c) { o.x = round_to_integer(o.x, c); }, Shape::kReplace, false, false},
    {[](Operands& o, Context& c) { o.x = scale(o.x, o.y, c); }, Shape::kReplace, true, false},
    {[](Operands& o, Context& c) {
       const Float80 significand = extract(o.x, o.y, c);
       o.x = o.y;
       o.y = significand;
     },
     Shape::kPush, false, false},
    {[](Operands& o, Context& c) { o.x = remainder(o.x, o.y, false, c); }, Shape::kReplace, true, true},
    {[](Operands& o, Context& c) { o.x = remainder(o.x, o.y, true, c); }, Shape::kReplace, true, true},
    {[](Operands& o, Context& c) { o.x = exp2_minus_1(o.x, c); }, Shape::kReplace, false, false},
    {[](Operands& o, Context& c) { o.x = y_log2(o.y, o.x, c); }, Shape::kPop, true, false},
    {[](Operands& o, Context& c) { o.x = y_log2_plus_1(o.y, o.x, c); }, Shape::kPop, true, false},
    {[](Operands& o, Context& c) { o.x = tangent(o.x, o.y, c); }, Shape::kPush, false, true},
    {[](Operands& o, Context& c) { o.x = arctangent(o.y, o.x, c); }, Shape::kPop, true, false},
    {[](Operands& o, Context& c) { o.x = sine(o.x, c); }, Shape::kReplace, false, true},
    {[](Operands& o, Context& c) { o.x = cosine(o.x, c); }, Shape::kReplace, false, true},
    {[](Operands& o, Context& c) { o.x = sine_cosine(o.x, o.y, c); }, Shape::kPush, false, true},
};
static_assert(sizeof(kOperations) / sizeof(kOperations[0]) == kOperationCount - kFsqrt);

void test_and_examine(X87State& state, uint64_t operation) {
  Context context = context_of(state);
  uint32_t condition = kAllConditions;
  const bool empty = is_empty(state, 0);
  if (operation == kFxam) {
    condition = empty ? kC3 | kC0 | (sign_of(st(state, 0)) != 0 ? kC1 : 0) : classify(st(state, 0));
    state.status_word = static_cast<uint16_t>((state.status_word & ~kConditionMask) | condition);
    return;
  }
  if (empty) {
    context.flags = kInvalid | kStackFault;
  } else {
    condition = compare(st(state, 0), {}, false, context);
  }
  commit(state, context.flags);
  state.status_word = static_cast<uint16_t>((state.status_word & ~kAllConditions) | condition);
}

void operate(X87State& state, const OperationEntry& entry) {
  const bool pushes = entry.shape == Shape::kPush;
  const bool underflow = is_empty(state, 0) || (entry.reads_st1 && is_empty(state, 1));
  const bool overflow = pushes && !is_empty(state, 7);
  Operands operands{st(state, 0), st(state, 1)};
  Context context = context_of(state);
  if (entry.clears_c2) state.status_word &= static_cast<uint16_t>(~kC2);
  if (underflow || overflow) {
    context.flags = kInvalid | kStackFault | (underflow ? 0 : kC1);
    operands = {kIndefinite, kIndefinite};
  } else {
    entry.compute(operands, context);
    state.status_word &= static_cast<uint16_t>(~context.conditions);
  }
  if (!commit(state, context.flags)) return;
  const bool incomplete = (context.flags & kC2) != 0;
  switch (entry.shape) {
    case Shape::kReplace:
      write(state, 0, operands.x);
      break;
    case Shape::kPop:
      write(state, 1, operands.x);
      pop(state);
      break;
    case Shape::kPush:
      write(state, 0, operands.x);
      if (incomplete) break;
      decrement_top(state);
      write(state, 0, operands.y);
      break;
  }
}

void initialize(X87State& state) {
  state.control_word = kDefaultControlWord;
  state.status_word = 0;
  state.top = 0;
  state.occupied = 0;
  state.result_suppressed = 0;
  update_ordinary(state);
  state.last_opcode = 0;
  state.last_instruction = 0;
  state.last_data = 0;
}

}  // namespace

}  // namespace phybin::runtime::x87

using namespace phybin::runtime::x87;
using namespace phybin::runtime::x87::detail;

uint64_t phybin_x87_operation(X87State* state, uint64_t operation, uint64_t) {
  if (operation < kFsqrt) {
    test_and_examine(*state, operation);
  } else {
    operate(*state, kOperations[operation - kFsqrt]);
  }
  return 0;
}

uint64_t phybin_x87_fld_constant(X87State* state, uint64_t constant, uint64_t) {
  push(*state, constant_value(static_cast<Constant>(constant), state->control_word));
  return 0;
}

uint64_t phybin_x87_fbld(X87State* state, uint64_t digits, uint64_t sign_and_high_digits) {
  push(*state, from_packed_decimal(digits, static_cast<uint16_t>(sign_and_high_digits)));
  return 0;
}

namespace {

uint64_t packed_decimal(const X87State& state, uint16_t& high, uint32_t& flags) {
  Context context = context_of(state);
  const bool empty = is_empty(state, 0);
  const uint64_t low = to_packed_decimal(empty ? kIndefinite : st(const_cast<X87State&>(state), 0), high, context);
  flags = context.flags | (empty ? kStackFault : 0u);
  return low;
}

}  // namespace

uint64_t phybin_x87_fbst_low(X87State* state, uint64_t, uint64_t) {
  uint16_t high;
  uint32_t flags;
  return packed_decimal(*state, high, flags);
}

uint64_t phybin_x87_fbst_high(X87State* state, uint64_t pops, uint64_t) {
  uint16_t high;
  uint32_t flags;
  packed_decimal(*state, high, flags);
  if (commit_store(*state, flags) && pops != 0) pop(*state);
  return high;
}

uint64_t phybin_x87_fcmov(X87State* state, uint64_t index, uint64_t taken) {
  const unsigned i = static_cast<unsigned>(index);
  if (is_empty(*state, 0) || is_empty(*state, i)) {
    if (stack_underflow(*state)) write(*state, 0, kIndefinite);
    return 0;
  }
  if (taken != 0) st(*state, 0) = st(*state, i);
  return 0;
}

uint64_t phybin_x87_fincstp(X87State* state, uint64_t, uint64_t) {
  commit(*state, 0);
  rotate_top(*state, 1);
  return 0;
}

uint64_t phybin_x87_fdecstp(X87State* state, uint64_t, uint64_t) {
  commit(*state, 0);
  rotate_top(*state, 7);
  return 0;
}

uint64_t phybin_x87_ffree(X87State* state, uint64_t index, uint64_t pops) {
  commit(*state, 0);
  mark_empty(*state, static_cast<unsigned>(index));
  if (pops != 0) pop(*state);
  return 0;
}

uint64_t phybin_x87_fninit(X87State* state, uint64_t, uint64_t) {
  initialize(*state);
  return 0;
}

uint64_t phybin_x87_fnclex(X87State* state, uint64_t, uint64_t) {
  state->status_word &= kConditionMask;
  update_error_summary(*state);
  return 0;
}

uint64_t phybin_x87_fnstsw(X87State* state, uint64_t, uint64_t) { return full_status_word(*state); }

uint64_t phybin_x87_fnstcw(X87State* state, uint64_t, uint64_t) { return state->control_word; }

uint64_t phybin_x87_fldcw(X87State* state, uint64_t control_word, uint64_t) {
  set_control_word(*state, static_cast<uint16_t>(control_word));
  return 0;
}

uint64_t phybin_x87_enter_mmx(X87State* state, uint64_t, uint64_t) {
  state->top = 0;
  state->occupied = 0xff;
  return 0;
}

uint64_t phybin_x87_emms(X87State* state, uint64_t, uint64_t) {
  state->top = 0;
  state->occupied = 0;
  return 0;
}

bool phybin_x87_pending(const X87State* state) { return (state->status_word & kErrorSummary) != 0; }
