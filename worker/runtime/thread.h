// What the runtime keeps for a guest thread beyond GuestState, which it begins with: x28 points at both.
//
// The poll page lies directly before it. Fields that other threads or the thread's own signal handlers touch are
// atomic; all others belong to the thread.
#pragma once

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>

#include "worker/runtime/stub_offsets.h"
#include "worker/translator/guest_state.h"

namespace phybin::runtime {

// Layout of the kernel's 128-byte siginfo_t, the same on both machines.
struct SignalInfo {
  int32_t signal = 0;
  int32_t error = 0;
  int32_t code = 0;
  int32_t pad = 0;
  uint64_t fields[14] = {};

  uint64_t& address() { return fields[0]; }
};
static_assert(sizeof(SignalInfo) == 128);

// A synchronous exception of guest code, as the frame shows it.
struct Fault {
  SignalInfo info;
  uint32_t trap = 0;     // x86 vector number
  uint32_t error = 0;    // x86 error code
  uint64_t address = 0;  // CR2
  bool write = false;
  bool from_host = false;  // a fault of the host's MMU, which a write-protected translated page may explain
};

struct AlternateStack {
  uint64_t start = 0;
  uint64_t size = 0;
  int32_t flags = 2;  // SS_DISABLE
};

struct Thread {
  GuestState state;

  uint64_t helper_return = 0;  // return address into translated code while a state helper runs, else 0
  uint64_t shadow_top = 0;     // x27 of an empty shadow stack; the sentinel entry stands there
  uint64_t shadow_bottom = 0;
  uint64_t leave_helper = 0;  // a state helper wants the dispatcher to go on at state.rip
  // A signal is queued: interruptible_syscall() gives up, and the dispatcher delivers it.
  std::atomic<uint64_t> pending = 0;
  uint64_t trap_info = 0;  // of EXIT_TRAP
  uint64_t slot = 0;       // of EXIT_SLOT

  const void* code_index = nullptr;  // CodeIndex::current_table(), for the stubs
  uint64_t resolved = 0;             // counts uses of empty slots (stubs.S)

  // Safepoints. `attention` is set before the poll page is made inaccessible.
  std::atomic<uint32_t> attention = 0;
  std::atomic<uint32_t> in_code = 0;       // translated code may be running, or a host signal handler above it
  std::atomic<uint64_t> passed_epoch = 0;  // tables hold no code retired in this epoch or before

  // Where translated code was left by a signal handler.
  uint64_t left_pc = 0;
  uint64_t left_registers[32] = {};
  // The next instruction is executed alone: it writes into its own page of code (write_watch.h), or is the first of
  // those that a fault goes back to (`goes_back`: the last fault does; emit::kGoesBack).
  bool step_once = false;
  bool goes_back = false;
  bool state_replaced = false;  // the system call set all registers itself (rt_sigreturn)

  // Guest memory that the kernel may write to until the present system call ends (write_watch.cpp).
  struct KernelWrite {
    uint64_t start, end;
  };
  static constexpr uint32_t kKernelWrites = 8;
  KernelWrite kernel_writes[kKernelWrites] = {};
  std::atomic<uint32_t> kernel_write_count = 0;

  // Signals.
  struct ActionTable* own_actions = nullptr;  // of a child of vfork; else the process's table counts
  uint64_t guest_mask = 0;                    // bit n-1: signal n is blocked
  SignalInfo queued;                          // valid while pending is set
  uint64_t held = 0;                          // signals that came while the guest blocked them but the host did not
  SignalInfo held_info[6];
  bool has_fault = false;  // `fault` waits for delivery
  Fault fault;
  AlternateStack alternate_stack;
  uint64_t last_fault_rip = 0, last_fault_address = 0;
  uint32_t fault_repeats = 0;

  bool ended = false;
  int status = 0;

  void* handler_stack = nullptr;  // alternate stack of the worker's own signal handlers
  void* shadow_mapping = nullptr;
  Thread* next = nullptr;  // list of all threads (threads.cpp)
  Thread* previous = nullptr;
};

inline Thread& thread_of(GuestState& state) { return reinterpret_cast<Thread&>(state); }

// The guest thread of this host thread; readable in signal handlers.
extern constinit thread_local Thread* this_thread;

inline constexpr size_t kHandlerStackBytes = 64 << 10;

void* poll_page(const Thread& thread);
size_t shadow_stack_bytes();  // of Thread::shadow_mapping, guard pages included
// Any thread: makes `thread` come to the dispatcher soon. Async-signal-safe.
void raise_safepoint(Thread& thread);
// The owner, in the dispatcher: the poll page is readable again.
void clear_safepoint(Thread& thread);
// The owner: nothing in the lookup table and on the shadow stack refers to code any more.
void clear_code_tables(Thread& thread);

// The list of all threads; the lock is held while `visit` runs.
void for_each_thread(void (*visit)(Thread& thread, void* data), void* data);
void lock_thread_list();
void unlock_thread_list();
// In the child of fork: only the calling thread goes on.
void keep_only_this_thread();

// ---- stubs.S
// --------------------------------------------------------------------------------------------------------

extern "C" {
// Runs translated code at `code` until it is left; returns EXIT_*.
uint64_t phybin_enter(GuestState* state, uint64_t code);
// Where signal handlers send a thread whose guest state they have put into memory: x0 = EXIT_*, x28 = state.
void phybin_leave();
void phybin_stub_resolve_slot();
void phybin_stub_lookup();
void phybin_stub_return_miss();
void phybin_stub_syscall();
void phybin_stub_trap();
void phybin_stub_helper();
void phybin_stub_helper_state();
void phybin_stub_x87_add();
void phybin_stub_x87_multiply();
void phybin_stub_x87_compare();
void phybin_stubs_end();

// See interruptible_syscall(). The range up to and including the SVC is rewound by signal handlers.
int64_t phybin_syscall(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f,
                       const std::atomic<uint64_t>* pending);
void phybin_syscall_begin();
void phybin_syscall_end();
void phybin_syscall_abort();

// Copies whose faults the SIGSEGV handler turns into a result of 1. 0: done.
uint64_t phybin_guarded_copy(void* to, const void* from, uint64_t size);
// Replaces 16 aligned bytes if they are as expected. 0: done, 1: fault, 2: they were not.
uint64_t phybin_guarded_cas16(void* at, uint64_t expected_low, uint64_t expected_high, uint64_t low, uint64_t high);
void phybin_guarded_begin();
void phybin_guarded_end();
void phybin_guarded_fail();
}

}  // namespace phybin::runtime
