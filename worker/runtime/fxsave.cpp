// See fxsave.h.
#include "worker/runtime/fxsave.h"

#include <csignal>
#include <cstddef>
#include <cstring>

#include "worker/runtime/helpers/x87_ops.h"
#include "worker/runtime/signals.h"
#include "worker/translator/helper_ids.h"

namespace phybin::runtime {

// FPSR collects IOC, DZC, OFC, UFC, IXC in bits 0 to 4 and IDC in bit 7; MXCSR has IE, DE, ZE, OE, UE, PE.
uint32_t mxcsr_of(const GuestState& state) {
  const uint32_t fpsr = static_cast<uint32_t>(state.fpsr_collected);
  return state.mxcsr | (fpsr & 1) | (fpsr >> 6 & 2) | (fpsr & 0x1e) << 1;
}

// As emit/convert.cpp's SetMxcsr: rounding control with its bits exchanged, FZ for either of FTZ and DAZ.
void set_mxcsr(GuestState& state, uint32_t value) {
  const uint32_t rounding = (value >> 14 & 1) | (value >> 12 & 2);
  const uint32_t flush = (value >> 15 | value >> 6) & 1;
  state.mxcsr = value;
  state.fpcr = (rounding | flush << 2) << 22;
  state.fpsr_collected = 0;
}

void save_fxsave(GuestState& state, FxsaveImage& image, bool wide) {
  std::memset(&image, 0, sizeof image);
  phybin_x87_fxsave(x87_of(state), reinterpret_cast<uint64_t>(&image), wide);
  image.mxcsr = mxcsr_of(state);
  image.mxcsr_mask = kMxcsrMask;
  std::memcpy(image.xmm, state.xmm, sizeof image.xmm);
}

void load_fxsave(GuestState& state, const FxsaveImage& image, bool wide) {
  phybin_x87_fxrstor(x87_of(state), reinterpret_cast<uint64_t>(&image), wide);
  set_mxcsr(state, image.mxcsr & kMxcsrMask);
  std::memcpy(state.xmm, image.xmm, sizeof image.xmm);
}

}  // namespace phybin::runtime

extern "C" void phybin_helper_fxsave(phybin::GuestState* state, uint64_t address, uint64_t wide);
extern "C" void phybin_helper_fxrstor(phybin::GuestState* state, uint64_t address, uint64_t wide);

void phybin_helper_fxsave(phybin::GuestState* state, uint64_t address, uint64_t wide) {
  phybin::runtime::FxsaveImage image;
  phybin::runtime::save_fxsave(*state, image, wide != 0);
  std::memcpy(reinterpret_cast<void*>(address), &image, offsetof(phybin::runtime::FxsaveImage, reserved));
}

void phybin_helper_fxrstor(phybin::GuestState* state, uint64_t address, uint64_t wide) {
  constexpr int kSiKernel = 0x80;
  phybin::runtime::FxsaveImage image;
  std::memcpy(&image, reinterpret_cast<const void*>(address), sizeof image);
  if ((image.mxcsr & ~phybin::runtime::kMxcsrMask) != 0) {  // #GP
    return phybin::runtime::raise_synchronous(*state, SIGSEGV, kSiKernel, 0);
  }
  phybin::runtime::load_fxsave(*state, image, wide != 0);
}
