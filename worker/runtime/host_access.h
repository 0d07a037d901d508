// What an A64 load or store that faulted does: host signal handlers ask.
#pragma once

#include <ucontext.h>

#include <cstdint>

namespace phybin::runtime {

// True if the instruction writes memory. For kernels (and emulators) that give no ESR record.
bool is_store_instruction(uint32_t word);

// Before LSE2 (Arm ARM B2.5.2) load-acquire and store-release fault when they are not aligned. Carries out the
// interrupted one with barriers and plain accesses and steps over it; false if it is another instruction.
bool complete_ordered_access(ucontext_t& context);

}  // namespace phybin::runtime
