// The guest's x87 state, as it lies in the thread state that translated code addresses.
//
// Registers are kept by physical number, so that the MMX registers are the significands of registers[0..7] whatever
// TOP is. TOP has a byte of its own, because every x87 instruction needs it and only FNSTSW and the save instructions
// need it inside the status word. Of the tag word only "empty or not" is state; the rest is computed when it is
// stored, as the CPU does. `occupied` is FXSAVE's abridged tag byte rotated by TOP: instructions look at ST(i).
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "worker/runtime/helpers/x87_float80.h"
#include "worker/translator/x87_interface.h"

namespace phybin::runtime::x87 {

struct X87State {
  Float80 registers[8];
  uint16_t control_word;
  uint16_t status_word;  // without TOP, whose bits are always zero here
  uint8_t top;           // 0..7
  uint8_t occupied;      // bit i: ST(i) is not empty
  // Set when the last helper met an unmasked exception that keeps its result from being stored: the store to memory
  // that translated code makes of the returned value must then be left out. Helpers set it together with ES; never
  // set while all exceptions are masked.
  uint8_t result_suppressed;
  uint8_t ordinary;      // no exception pending, and a control word that has_common_control()
  uint16_t last_opcode;  // 11 bits, as FXSAVE stores it
  uint16_t reserved2[3];
  uint64_t last_instruction;  // guest address
  uint64_t last_data;         // guest address
  // What a store to memory leaves in the word at control_word once the store is done; until then nothing has changed.
  uint64_t after_store;
};

static_assert(std::is_standard_layout_v<X87State>);
static_assert(sizeof(Float80) == 16 && offsetof(Float80, significand) == 0 && offsetof(Float80, sign_exponent) == 8);
static_assert(sizeof(X87State) == 168 && sizeof(X87State) <= sizeof(GuestState::x87));
static_assert(::phybin::x87::kControlWordOffset == offsetof(GuestState, x87) + offsetof(X87State, control_word) &&
              ::phybin::x87::kStatusWordOffset == offsetof(GuestState, x87) + offsetof(X87State, status_word) &&
              ::phybin::x87::kTopOffset == offsetof(GuestState, x87) + offsetof(X87State, top) &&
              ::phybin::x87::kOccupiedOffset == offsetof(GuestState, x87) + offsetof(X87State, occupied) &&
              ::phybin::x87::kSuppressedOffset == offsetof(GuestState, x87) + offsetof(X87State, result_suppressed) &&
              ::phybin::x87::kAfterStoreOffset == offsetof(GuestState, x87) + offsetof(X87State, after_store));

inline void update_ordinary(X87State& state) {
  state.ordinary = has_common_control(state.control_word) && (state.status_word & kErrorSummary) == 0 ? 1 : 0;
}

inline uint16_t full_status_word(const X87State& state) {
  return static_cast<uint16_t>(state.status_word | state.top << 11);
}

inline Float80& st(X87State& state, unsigned index) { return state.registers[(state.top + index) & 7]; }
inline bool is_empty(const X87State& state, unsigned index) { return (state.occupied >> index & 1) == 0; }
inline void mark_empty(X87State& state, unsigned index) { state.occupied &= static_cast<uint8_t>(~(1u << index)); }
inline void mark_occupied(X87State& state, unsigned index) { state.occupied |= static_cast<uint8_t>(1u << index); }
inline void pop(X87State& state) {
  state.occupied >>= 1;
  state.top = (state.top + 1) & 7;
}
// The register that becomes ST(0) counts as empty.
inline void decrement_top(X87State& state) {
  state.occupied = static_cast<uint8_t>(state.occupied << 1);
  state.top = (state.top - 1) & 7;
}
// Registers keep their physical tags while TOP moves by `distance`.
inline void rotate_top(X87State& state, unsigned distance) {
  const unsigned twice = state.occupied * 0x101u;
  state.occupied = static_cast<uint8_t>(twice >> (distance & 7));
  state.top = (state.top + distance) & 7;
}
// The abridged tag byte: bit i is for physical register i.
inline uint8_t physical_tags(const X87State& state) {
  return static_cast<uint8_t>(state.occupied * 0x101u >> ((8u - state.top) & 7));
}
inline void set_physical_tags(X87State& state, uint8_t tags) {
  state.occupied = static_cast<uint8_t>(tags * 0x101u >> state.top);
}

// ES and B follow the exception flags and masks (SDM vol. 1, 8.1.3.3).
inline void update_error_summary(X87State& state) {
  const bool pending = (state.status_word & ~state.control_word & kExceptionMask) != 0;
  state.status_word =
      static_cast<uint16_t>((state.status_word & ~(kErrorSummary | kBusy)) | (pending ? kErrorSummary | kBusy : 0u));
  state.result_suppressed = 0;
  update_ordinary(state);
}

// Bit 6 of the control word reads as 1; the infinity control in bit 12 is stored and means nothing.
inline void set_control_word(X87State& state, uint16_t value) {
  state.control_word = (value & 0x1f3f) | 0x40;
  update_error_summary(state);
}

}  // namespace phybin::runtime::x87
