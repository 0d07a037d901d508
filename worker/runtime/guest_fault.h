// Synchronous exceptions of guest code: what the x86 kernel makes of them (Linux arch/x86/kernel/traps.c tells the
// signals and codes, SDM vol. 3 chapter 6 the vectors and error codes).
#pragma once

#include <cstdint>

#include "worker/runtime/thread.h"
#include "worker/translator/ir/ir.h"

namespace phybin::runtime {

// A trap that translated code, or a state helper for it, asks for; state.rip is the instruction. Leaves a fault to be
// delivered.
void raise_trap(Thread& thread, ir::TrapKind kind, uint64_t immediate);
// Nothing can be executed at `address`.
void raise_fetch_fault(Thread& thread, uint64_t address);
// A fault of the host's MMU at `address`, as the frame will show it.
Fault host_fault(const SignalInfo& info, bool write);

// Prints a line and dies: the worker itself is broken.
[[noreturn]] void worker_error(const char* message);

}  // namespace phybin::runtime
