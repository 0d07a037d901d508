// What an A64 load or store that faulted does: host signal handlers ask.
#pragma once

#include <ucontext.h>

#include <cstdint>

namespace phybin::runtime {

// True if the instruction writes memory. For kernels (and emulators) that give no ESR record.
bool is_store_instruction(uint32_t word);

enum class Completion : uint8_t {
  kDone,      // the access was made, the context stands behind the instruction
  kNotKnown,  // an instruction that is not completed here
  kFaulted,   // its memory is not accessible
};
// Ordered and atomic accesses fault when they are not aligned (Arm ARM B2.5.2); x86 does them anywhere. Carries out
// the interrupted one.
Completion complete_unaligned_access(ucontext_t& context);

// True for the loads and stores that DMB and a plain access can replace.
bool is_ordered_access(uint32_t word);

}  // namespace phybin::runtime
