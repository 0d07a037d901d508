// The guest's system calls. The runtime calls handle() for each; the table (table.cpp, abi/syscall_list.inc) says
// what becomes of it.
#pragma once

#include "worker/translator/guest_state.h"

namespace phybin::syscalls {

// Number in RAX, arguments in RDI, RSI, RDX, R10, R8, R9; result in RAX.
void handle(GuestState& state);

// Ends the process with this status, the counters of --stats printed.
[[noreturn]] void leave_process(int status);

}  // namespace phybin::syscalls
