// Guest threads. See threads.h.
//
// Each is a detached host thread made by libc, so that the worker's own code has thread-local data and malloc there.
// The kernel clears the guest's CLONE_CHILD_CLEARTID word itself, in its right order behind the robust futexes: the
// thread registers that address in place of libc's. libc must not manage the stack then, since it would wait for its
// own word to be cleared; stacks are ours, and one is used again when the kernel no longer knows its thread.
#include "worker/syscalls/threads.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <mutex>
#include <vector>

#include "worker/process/address_space.h"
#include "worker/runtime/worker_memory.h"
#include "worker/syscalls/handlers.h"
#include "worker/syscalls/syscalls.h"

namespace phybin::syscalls {
namespace {

constexpr size_t kStackSize = 256 << 10;

std::atomic<unsigned> threads = 1;

struct UsedStack {
  void* memory;
  int thread;
};
std::mutex stacks_lock;
std::vector<UsedStack> used_stacks;  // their threads are ending or have ended

bool has_ended(int thread) {
  return raw_syscall(SYS_tgkill, static_cast<uint64_t>(raw_syscall(SYS_getpid)), extend(thread), 0) == -ESRCH;
}

void* take_stack() {
  {
    std::lock_guard guard(stacks_lock);
    for (UsedStack& stack : used_stacks) {
      if (!has_ended(stack.thread)) continue;
      void* memory = stack.memory;
      stack = used_stacks.back();
      used_stacks.pop_back();
      return memory;
    }
  }
  void* memory = runtime::map_worker_memory(kStackSize, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
  if (memory) mprotect(memory, runtime::host_page_size(), PROT_NONE);
  return memory;
}

struct Start {
  GuestState* state;
  const CloneRequest* request;
  void* stack;
  uint64_t signal_mask;
  std::atomic<int> id = 0;
};

constexpr uint64_t kAllSignals = UINT64_MAX;

uint64_t change_mask(uint64_t mask) {
  uint64_t old = 0;
  raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, word(&mask), word(&old), 8);
  return old;
}

void* run(void* data) {
  auto* start = static_cast<Start*>(data);
  GuestState* state = start->state;
  void* stack = start->stack;
  const uint64_t flags = start->request->flags, child_id = start->request->child_id;
  const uint64_t mask = start->signal_mask;
  const int id = static_cast<int>(raw_syscall(SYS_gettid));
  if (!(flags & CLONE_FS)) unshare(CLONE_FS);
  if (!(flags & CLONE_FILES)) unshare(CLONE_FILES);
  if (flags & CLONE_PARENT_SETTID) runtime::write_guest(start->request->parent_id, id);
  if (flags & CLONE_CHILD_SETTID) runtime::write_guest(child_id, id);
  raw_syscall(SYS_set_tid_address, flags & CLONE_CHILD_CLEARTID ? child_id : 0);
  // The parent goes on, and `start` is gone.
  start->id = id;
  raw_syscall(SYS_futex, word(&start->id), FUTEX_WAKE_PRIVATE, INT_MAX);

  change_mask(mask);
  runtime::run_thread(*state);
  change_mask(kAllSignals);
  runtime::destroy_thread_state(state);
  if (flags & CLONE_CHILD_CLEARTID) runtime::before_kernel_writes(child_id, sizeof(uint32_t));
  {
    std::lock_guard guard(stacks_lock);
    used_stacks.push_back({stack, id});
  }
  --threads;
  return nullptr;
}

}  // namespace

int64_t start_thread(GuestState& state, const CloneRequest& request) {
  if (!(request.flags & CLONE_VM) || !(request.flags & CLONE_SIGHAND)) return -EINVAL;
  process::begin_sharing();
  Start start;
  start.state = runtime::create_thread_state();
  start.request = &request;
  start.stack = start.state ? take_stack() : nullptr;
  if (!start.stack) {
    if (start.state) runtime::destroy_thread_state(start.state);
    return -EAGAIN;
  }
  GuestState& child = *start.state;
  runtime::copy_registers(child, state);
  child.gpr[0] = 0;
  if (request.stack) child.gpr[4] = request.stack;
  if (request.flags & CLONE_SETTLS) child.fs_base = request.tls;

  // No signal may reach the new thread before it runs guest code.
  start.signal_mask = change_mask(kAllSignals);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  const size_t guard = runtime::host_page_size();
  pthread_attr_setstack(&attributes, static_cast<char*>(start.stack) + guard, kStackSize - guard);
  pthread_t thread;
  ++threads;
  int error = pthread_create(&thread, &attributes, run, &start);
  pthread_attr_destroy(&attributes);
  int64_t result;
  if (error) {
    --threads;
    runtime::destroy_thread_state(start.state);
    runtime::unmap_worker_memory(start.stack, kStackSize);
    result = -EAGAIN;
  } else {
    while (start.id == 0) raw_syscall(SYS_futex, word(&start.id), FUTEX_WAIT_PRIVATE, 0, 0);
    result = start.id;
  }
  change_mask(start.signal_mask);
  return result;
}

void after_fork_in_child() { threads = 1; }

unsigned thread_count() { return threads; }

bool host_shares_memory_on_vfork() {
  // Asked once, of the host itself: a child that writes into our memory.
  static const bool shares = [] {
    volatile int written = 0;
    pid_t child = vfork();
    if (child == 0) {
      written = 1;
      _exit(0);
    }
    while (child > 0 && waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
    return written == 1;
  }();
  return shares;
}

void end_first_thread(int status) {
  --threads;
  if (threads == 0) leave_process(status);
  raw_syscall(SYS_exit, extend(status));
  __builtin_unreachable();
}

}  // namespace phybin::syscalls
