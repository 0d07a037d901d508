// How an x87 instruction ends: its flags go into the status word, and stack faults get their default response. Shared
// by the files that implement x87_ops.h; not for others.
#pragma once

#include "worker/runtime/helpers/x87_ops.h"

namespace phybin::runtime::x87::detail {

constexpr uint32_t kBeforeOperation = kInvalid | kDenormal | kZeroDivide;
constexpr uint32_t kWithoutStore = kBeforeOperation | kOverflow | kUnderflow;

inline Context context_of(const X87State& state) { return {.control = state.control_word}; }

// Rare half of commit: an exception is unmasked. `blocking` are those that keep the result away.
bool commit_unmasked(X87State& state, uint32_t flags, uint32_t blocking);

// Adds flags (C1 starts cleared); false if the result must not reach its destination.
inline bool commit(X87State& state, uint32_t flags, uint32_t blocking = kBeforeOperation) {
  state.status_word = static_cast<uint16_t>((state.status_word & ~kC1) | flags);
  if (__builtin_expect((flags & ~state.control_word & kExceptionMask) != 0, 0)) {
    return commit_unmasked(state, flags, blocking);
  }
  return true;
}

inline bool stack_underflow(X87State& state) { return commit(state, kInvalid | kStackFault); }

// For instructions on their common path, which raise no exception that could be unmasked.
inline void commit_common(X87State& state, uint32_t flags) {
  state.status_word = static_cast<uint16_t>((state.status_word & ~kC1) | flags);
}

// For results that go to memory.
inline bool commit_store(X87State& state, uint32_t flags) {
  const bool stored = commit(state, flags, kWithoutStore);
  if (__builtin_expect(!stored, 0)) state.result_suppressed = 1;
  return stored;
}

inline void write(X87State& state, unsigned index, Float80 v) {
  st(state, index) = v;
  mark_occupied(state, index);
}

// Pushes a loaded value; unlike arithmetic, a load goes ahead after an unmasked DE.
inline void push(X87State& state, Float80 v, uint32_t flags = 0) {
  if (__builtin_expect(!is_empty(state, 7), 0)) {
    if (!commit(state, kInvalid | kStackFault | kC1)) return;
    v = kIndefinite;
  } else if (!commit(state, flags, kInvalid)) {
    return;
  }
  decrement_top(state);
  write(state, 0, v);
}

// Pushes when ST(7) is empty, without any exception.
inline void push_common(X87State& state, Float80 v) {
  commit_common(state, 0);
  decrement_top(state);
  write(state, 0, v);
}

}  // namespace phybin::runtime::x87::detail
