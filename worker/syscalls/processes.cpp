// fork, vfork, clone without CLONE_THREAD, and the end of processes.
//
// A child that shares the parent's memory (CLONE_VM|CLONE_VFORK: vfork, posix_spawn) runs on a host stack and with a
// GuestState of its own while the parent is suspended; the worker's thread-local data is the parent's meanwhile,
// which is safe for that reason.
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "worker/process/address_space.h"
#include "worker/process/descriptors.h"
#include "worker/runtime/signals.h"
#include "worker/runtime/thread.h"
#include "worker/runtime/worker_memory.h"
#include "worker/syscalls/handlers.h"
#include "worker/syscalls/syscalls.h"
#include "worker/syscalls/threads.h"

namespace phybin::syscalls {
namespace {

// Flags that fork() covers; others need the kernel's clone.
constexpr uint64_t kForkFlags =
    CSIGNAL | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | CLONE_PARENT_SETTID | CLONE_SETTLS | CLONE_VFORK | CLONE_VM;

void become_child(GuestState& state, const CloneRequest& request) {
  if (request.stack) state.gpr[4] = request.stack;
  if (request.flags & CLONE_SETTLS) state.fs_base = request.tls;
  auto id = static_cast<uint32_t>(raw_syscall(SYS_gettid));
  if (request.flags & CLONE_CHILD_SETTID) runtime::write_guest(request.child_id, id);
  if (request.flags & CLONE_CHILD_CLEARTID) raw_syscall(SYS_set_tid_address, request.child_id);
}

int64_t fork_process(GuestState& state, const CloneRequest& request) {
  process::lock_address_space();
  runtime::before_fork();
  process::lock_mapping_list();
  int64_t child;
  const uint64_t extra = request.flags & ~kForkFlags;
  if (extra == 0 && (request.flags & CSIGNAL) == SIGCHLD) {
    // libc's fork keeps malloc usable in a child of a process with threads.
    child = fork();
    if (child < 0) child = -errno;
  } else {
    child = raw_syscall(SYS_clone, extra | (request.flags & CSIGNAL), 0, 0, 0, 0);
  }
  process::unlock_mapping_list();
  if (child == 0)
    runtime::after_fork_child();
  else
    runtime::after_fork_parent();
  process::unlock_address_space();
  if (child == 0) {
    after_fork_in_child();
    become_child(state, request);
  } else if (child > 0 && request.flags & CLONE_PARENT_SETTID) {
    runtime::write_guest(request.parent_id, static_cast<uint32_t>(child));
  }
  return child;
}

struct SharedChild {
  GuestState* state;
  const CloneRequest* request;
};

int run_shared_child(void* data) {
  auto* child = static_cast<SharedChild*>(data);
  become_child(*child->state, *child->request);
  return runtime::run_thread(*child->state);
}

int64_t spawn_sharing_memory(GuestState& state, const CloneRequest& request) {
  constexpr size_t kStackSize = 256 << 10;
  auto* stack = static_cast<char*>(runtime::map_worker_memory(
      kStackSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0));
  if (!stack) return -ENOMEM;
  SharedChild child{runtime::create_thread_state(), &request};
  int64_t result = -ENOMEM;
  if (child.state) {
    runtime::copy_registers(*child.state, state);
    runtime::take_own_actions(*child.state);
    child.state->gpr[0] = 0;
    constexpr uint64_t kOurs = CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | CLONE_SETTLS | CLONE_PARENT_SETTID;
    result = clone(run_shared_child, stack + kStackSize, static_cast<int>(request.flags & ~kOurs), &child);
    if (result < 0) result = -errno;
    runtime::this_thread = &runtime::thread_of(state);
    runtime::destroy_thread_state(child.state);
  }
  runtime::unmap_worker_memory(stack, kStackSize);
  if (result > 0 && request.flags & CLONE_PARENT_SETTID) {
    runtime::write_guest(request.parent_id, static_cast<uint32_t>(result));
  }
  return result;
}

int64_t start(GuestState& state, const CloneRequest& request) {
  if (request.flags & CLONE_THREAD) return start_thread(state, request);
  if (!(request.flags & CLONE_VM)) return fork_process(state, request);
  if (request.flags & CLONE_VFORK) {
    if (host_shares_memory_on_vfork()) return spawn_sharing_memory(state, request);
    return fork_process(state, request);
  }
  // Two processes in one memory at the same time: the worker's own data has no place for that.
  process::log_line("clone with CLONE_VM but neither CLONE_THREAD nor CLONE_VFORK is not implemented");
  return -ENOSYS;
}

}  // namespace

#define HANDLER(name) int64_t sys_##name([[maybe_unused]] GuestState& state, [[maybe_unused]] const uint64_t* a)

HANDLER(fork) { return start(state, {SIGCHLD, 0, 0, 0, 0}); }
HANDLER(vfork) { return start(state, {CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0, 0, 0}); }
// The order on x86_64: flags, stack, parent's id, child's id, TLS.
HANDLER(clone) { return start(state, {a[0] & 0xffffffff, a[1], a[2], a[3], a[4]}); }

HANDLER(exit) {
  runtime::end_thread(state, as_int(a[0]) & 0xff);
  return 0;
}
HANDLER(exit_group) { leave_process(as_int(a[0])); }

void leave_process(int status) {
  if (process::program().options.stats) {
    runtime::Counters counters = runtime::counters();
    timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    char text[512];
    int length =
        snprintf(text, sizeof text,
                 "phybin[%d]: %lu guest instructions (%lu bytes) translated in %lu regions to %lu bytes of "
                 "code, %lu KiB of code "
                 "memory; %lu lookups, %lu links, %lu write faults, %lu alignment faults, %lu regions "
                 "invalidated, %lu signals; %lu images (%lu KiB) attached, %lu links in images; "
                 "%ld.%06ld s of processor time\n",
                 getpid(), counters.guest_instructions, counters.guest_bytes, counters.regions, counters.code_bytes,
                 counters.code_memory >> 10, counters.lookups, counters.slots_linked, counters.write_faults,
                 counters.alignment_faults, counters.regions_invalidated, counters.signals_delivered, counters.images,
                 counters.image_bytes >> 10, counters.image_links, used.tv_sec, used.tv_nsec / 1000);
    raw_syscall(SYS_write, extend(process::message_descriptor()), word(text), static_cast<uint64_t>(length));
  }
  for (;;) raw_syscall(SYS_exit_group, extend(status));
}

}  // namespace phybin::syscalls
