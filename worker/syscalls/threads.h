// Guest threads as host threads.
#pragma once

#include <cstdint>

#include "worker/translator/guest_state.h"

namespace phybin::syscalls {

struct CloneRequest {
  uint64_t flags;  // CLONE_* and, in the low byte, the signal
  uint64_t stack;
  uint64_t parent_id, child_id;  // guest addresses
  uint64_t tls;
};

// clone with CLONE_THREAD: the new thread's id or -errno.
int64_t start_thread(GuestState& state, const CloneRequest& request);

// In the child of a fork: only the calling thread is left.
void after_fork_in_child();

// Guest threads that have not ended.
unsigned thread_count();

// False where vfork is fork (qemu-user): a child then has its own memory whatever the flags say.
bool host_shares_memory_on_vfork();

// The calling thread, the process's first, has ended with this status: the process goes on while others run.
[[noreturn]] void end_first_thread(int status);

}  // namespace phybin::syscalls
