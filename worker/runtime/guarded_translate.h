// Reading guest code that may vanish meanwhile: another guest thread unmaps it, or its file was cut short.
#pragma once

#include <csetjmp>
#include <cstddef>
#include <cstdint>

#include "worker/translator/translate.h"

namespace phybin::runtime {

// translate(), but false as well when the guest's bytes cannot be read.
bool guarded_translate(const TranslateInput& input, RegionCode& out);
// True if guest memory at `address` is readable and equals `expected`.
bool guest_equals(uint64_t address, const uint8_t* expected, size_t size);

// Set while this thread reads guest memory in C++ code that is not prepared for faults; the fault handler leaves by
// it.
extern thread_local sigjmp_buf* fault_exit;

}  // namespace phybin::runtime
