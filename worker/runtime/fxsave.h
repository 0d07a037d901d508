// The FXSAVE image (SDM vol. 1, 10.5.1): what FXSAVE and FXRSTOR and the frames of signals hold of the floating-point
// state, and MXCSR outside translated code.
#pragma once

#include <cstdint>

#include "worker/runtime/helpers/x87_state.h"
#include "worker/translator/guest_state.h"

namespace phybin::runtime {

struct FxsaveImage {
  uint8_t x87_low[24];
  uint32_t mxcsr, mxcsr_mask;
  uint8_t x87_registers[128];
  uint64_t xmm[16][2];
  uint8_t reserved[96];
};
static_assert(sizeof(FxsaveImage) == 512);

constexpr uint32_t kMxcsrMask = 0xffff;

inline x87::X87State* x87_of(GuestState& state) { return reinterpret_cast<x87::X87State*>(state.x87); }

void set_mxcsr(GuestState& state, uint32_t value);
uint32_t mxcsr_of(const GuestState& state);

// Bytes that the instruction does not write are zero. `wide`: 64-bit pointers in the x87 part (REX.W).
void save_fxsave(GuestState& state, FxsaveImage& image, bool wide = true);
void load_fxsave(GuestState& state, const FxsaveImage& image, bool wide = true);

}  // namespace phybin::runtime
