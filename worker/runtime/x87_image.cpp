// The instructions that save and restore x87 state, and the rare case of FSTP m80, which translated code calls as
// state helpers. They move whole images between guest memory and a buffer, and read before they change anything or
// change only after they have written, so that a fault leaves the state as it was.
#include <cstring>

#include "worker/runtime/helpers/x87_ops.h"

namespace phybin::runtime {
namespace {

PhybinX87State* x87_of(GuestState* state) { return reinterpret_cast<PhybinX87State*>(state->x87); }

uint64_t host(void* image) { return reinterpret_cast<uint64_t>(image); }
void* guest(uint64_t address) { return reinterpret_cast<void*>(address); }

size_t environment_size(uint64_t operand16) { return operand16 != 0 ? x87::kEnvironment16 : x87::kEnvironment32; }

}  // namespace
}  // namespace phybin::runtime

using namespace phybin::runtime;  // NOLINT: C functions of this file

extern "C" {

void phybin_helper_x87_fstp_m80(phybin::GuestState* state, uint64_t address, uint64_t);
void phybin_helper_x87_fnstenv(phybin::GuestState* state, uint64_t address, uint64_t operand16);
void phybin_helper_x87_fldenv(phybin::GuestState* state, uint64_t address, uint64_t operand16);
void phybin_helper_x87_fnsave(phybin::GuestState* state, uint64_t address, uint64_t operand16);
void phybin_helper_x87_frstor(phybin::GuestState* state, uint64_t address, uint64_t operand16);

void phybin_helper_x87_fstp_m80(phybin::GuestState* state, uint64_t address, uint64_t) {
  constexpr size_t kBytes = 10;
  PhybinX87State unit = *x87_of(state);
  const uint64_t significand = phybin_x87_fst_m80_significand(&unit, 0, 0);
  const uint64_t parts[2] = {significand, phybin_x87_fst_m80_sign_exponent(&unit, 1, 0)};
  if (unit.result_suppressed == 0) memcpy(guest(address), parts, kBytes);
  *x87_of(state) = unit;
}

void phybin_helper_x87_fnstenv(phybin::GuestState* state, uint64_t address, uint64_t operand16) {
  uint8_t image[x87::kEnvironment32];
  PhybinX87State unit = *x87_of(state);
  phybin_x87_fnstenv(&unit, host(image), operand16);
  memcpy(guest(address), image, environment_size(operand16));
  *x87_of(state) = unit;
}

void phybin_helper_x87_fldenv(phybin::GuestState* state, uint64_t address, uint64_t operand16) {
  uint8_t image[x87::kEnvironment32];
  memcpy(image, guest(address), environment_size(operand16));
  phybin_x87_fldenv(x87_of(state), host(image), operand16);
}

void phybin_helper_x87_fnsave(phybin::GuestState* state, uint64_t address, uint64_t operand16) {
  uint8_t image[x87::kEnvironment32 + x87::kRegistersImage];
  PhybinX87State unit = *x87_of(state);
  phybin_x87_fnsave(&unit, host(image), operand16);
  memcpy(guest(address), image, environment_size(operand16) + x87::kRegistersImage);
  *x87_of(state) = unit;
}

void phybin_helper_x87_frstor(phybin::GuestState* state, uint64_t address, uint64_t operand16) {
  uint8_t image[x87::kEnvironment32 + x87::kRegistersImage];
  memcpy(image, guest(address), environment_size(operand16) + x87::kRegistersImage);
  phybin_x87_frstor(x87_of(state), host(image), operand16);
}

}  // extern "C"
