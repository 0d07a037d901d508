// Memory of guest threads, the list of them, and safepoints.
//
// One mapping holds a thread's poll page, its GuestState and the rest of Thread; the shadow stack has a mapping of
// its own between inaccessible pages, because overflow and underflow are noticed by faulting.
#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <new>

#include "worker/runtime/cpuid.h"
#include "worker/runtime/helpers/x87_ops.h"
#include "worker/runtime/lock.h"
#include "worker/runtime/regions.h"
#include "worker/runtime/runtime.h"
#include "worker/runtime/signal_state.h"
#include "worker/runtime/thread.h"
#include "worker/runtime/worker_memory.h"

namespace phybin::runtime {

static_assert(offsetof(GuestState, rip) == STATE_RIP && offsetof(GuestState, nzcv) == STATE_NZCV);
static_assert(offsetof(GuestState, pf_raw) == STATE_PF && offsetof(GuestState, af_raw) == STATE_AF);
static_assert(STATE_AF == STATE_PF + 8);
static_assert(offsetof(GuestState, host_sp) == STATE_HOST_SP && offsetof(GuestState, shadow_stack) == STATE_SHADOW);
static_assert(offsetof(GuestState, mxcsr) == STATE_MXCSR && offsetof(GuestState, fpcr) == STATE_FPCR);
static_assert(offsetof(GuestState, lookup) == STATE_LOOKUP && kLookupBits == LOOKUP_MASK_BITS);
static_assert(offsetof(GuestState, gpr) == STATE_GPR && offsetof(GuestState, xmm) == STATE_XMM);
static_assert(STATE_XMM == STATE_GPR + 128);
static_assert(offsetof(GuestState, fpsr_collected) == STATE_FPSR);
static_assert(offsetof(Thread, state) == 0);
static_assert(offsetof(Thread, helper_return) == THREAD_HELPER_RETURN);
static_assert(offsetof(Thread, shadow_top) == THREAD_SHADOW_TOP);
static_assert(offsetof(Thread, shadow_bottom) == THREAD_SHADOW_BOTTOM);
static_assert(THREAD_SHADOW_BOTTOM == THREAD_SHADOW_TOP + 8);
static_assert(offsetof(Thread, leave_helper) == THREAD_LEAVE_HELPER);
static_assert(offsetof(Thread, pending) == THREAD_PENDING);
static_assert(offsetof(Thread, trap_info) == THREAD_TRAP_INFO && offsetof(Thread, slot) == THREAD_SLOT);
static_assert(offsetof(Thread, code_index) == THREAD_CODE_INDEX);
static_assert(offsetof(Thread, resolved) == THREAD_RESOLVED);

constinit thread_local Thread* this_thread = nullptr;

namespace {

constexpr size_t kShadowBytes = 64 << 10;

Lock list_lock;
Thread* first_thread = nullptr;

size_t round_up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

// The poll page is followed by the thread, then by the stack of the worker's signal handlers.
size_t thread_bytes() { return host_page_size() + round_up(sizeof(Thread), host_page_size()) + kHandlerStackBytes; }

void (*const kStubAddresses[])() = {
    phybin_stub_resolve_slot, phybin_stub_lookup,      phybin_stub_return_miss,  phybin_stub_syscall,
    phybin_stub_trap,         phybin_stub_helper,      phybin_stub_helper_state, phybin_stub_x87_add,
    phybin_stub_x87_multiply, phybin_stub_x87_compare,
};
static_assert(X87_C1_BIT == ::phybin::x87::kC1Bit && X87_PRECISION_BIT == ::phybin::x87::kStatusBit + 5);
static_assert(sizeof kStubAddresses / sizeof kStubAddresses[0] == static_cast<size_t>(Stub::kCount));

// With the list locked; counters are read under another lock.
void count_threads(int change) {
  std::atomic_ref<uint64_t> threads(counts.threads);
  threads.store(threads.load(std::memory_order_relaxed) + static_cast<uint64_t>(int64_t{change}),
                std::memory_order_relaxed);
}

// What tables of zeros lack to be empty. Zero is the key of guest address 0, and only the first entry of the lookup
// table is asked for that: in all others zero matches nothing, so that their pages stay untouched.
void make_code_tables_empty(Thread& thread) {
  thread.state.lookup[0] = {1, 0};
  auto* sentinels = reinterpret_cast<LookupEntry*>(thread.shadow_top);
  sentinels[0] = sentinels[1] = {1, 0};
  thread.state.shadow_stack = thread.shadow_top;
}

}  // namespace

size_t shadow_stack_bytes() { return round_up(kShadowBytes, host_page_size()) + 2 * host_page_size(); }

void* poll_page(const Thread& thread) {
  return reinterpret_cast<char*>(const_cast<Thread*>(&thread)) - host_page_size();
}

GuestState* create_thread_state() {
  char* memory = static_cast<char*>(
      map_worker_memory(thread_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  char* shadow = static_cast<char*>(
      map_worker_memory(shadow_stack_bytes(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  const size_t page = host_page_size();
  if (memory == nullptr || shadow == nullptr ||
      mprotect(shadow + page, shadow_stack_bytes() - 2 * page, PROT_READ | PROT_WRITE) != 0) {
    unmap_worker_memory(memory, thread_bytes());
    unmap_worker_memory(shadow, shadow_stack_bytes());
    return nullptr;
  }
  Thread* thread = new (memory + page) Thread;
  thread->handler_stack = memory + page + round_up(sizeof(Thread), page);
  thread->shadow_mapping = shadow;
  thread->shadow_bottom = reinterpret_cast<uint64_t>(shadow) + page;
  // Two sentinels: a return on the empty stack pops one, and the miss that follows looks at the next.
  thread->shadow_top = reinterpret_cast<uint64_t>(shadow) + shadow_stack_bytes() - page - 2 * sizeof(LookupEntry);
  for (unsigned i = 0; i < static_cast<unsigned>(Stub::kCount); ++i)
    thread->state.stubs[i] = reinterpret_cast<uint64_t>(kStubAddresses[i]);
  phybin_x87_fninit(reinterpret_cast<x87::X87State*>(thread->state.x87), 0, 0);
  thread->guest_mask = inherited_mask();
  thread->code_index = code_index_for_stubs();
  thread->passed_epoch.store(retire_epoch());
  make_code_tables_empty(*thread);

  lock_thread_list();
  thread->next = first_thread;
  if (first_thread != nullptr) first_thread->previous = thread;
  first_thread = thread;
  count_threads(1);
  unlock_thread_list();
  return &thread->state;
}

void copy_registers(GuestState& to, const GuestState& from) {
  to.rip = from.rip;
  to.fs_base = from.fs_base;
  to.gs_base = from.gs_base;
  to.direction = from.direction;
  to.system_flags = from.system_flags;
  to.nzcv = from.nzcv;
  to.pf_raw = from.pf_raw;
  to.af_raw = from.af_raw;
  to.mxcsr = from.mxcsr;
  to.fpcr = from.fpcr;
  to.fpsr_collected = from.fpsr_collected;
  memcpy(to.x87, from.x87, sizeof to.x87);
  memcpy(to.gpr, from.gpr, sizeof to.gpr);
  memcpy(to.xmm, from.xmm, sizeof to.xmm);
  memcpy(to.ymm_high, from.ymm_high, sizeof to.ymm_high);
}

void destroy_thread_state(GuestState* state) {
  Thread* thread = &thread_of(*state);
  lock_thread_list();
  if (thread->previous != nullptr) thread->previous->next = thread->next;
  if (thread->next != nullptr) thread->next->previous = thread->previous;
  if (first_thread == thread) first_thread = thread->next;
  count_threads(-1);
  unlock_thread_list();
  drop_own_actions(*thread);
  unmap_worker_memory(thread->shadow_mapping, shadow_stack_bytes());
  unmap_worker_memory(poll_page(*thread), thread_bytes());
}

GuestState* current_thread() { return this_thread != nullptr ? &this_thread->state : nullptr; }

void raise_safepoint(Thread& thread) {
  thread.attention.store(1);
  mprotect(poll_page(thread), host_page_size(), PROT_NONE);
}

void clear_safepoint(Thread& thread) {
  thread.attention.store(0);
  mprotect(poll_page(thread), host_page_size(), PROT_READ);
}

void clear_code_tables(Thread& thread) {
  memset(thread.state.lookup, 0, sizeof thread.state.lookup);
  make_code_tables_empty(thread);
  // Pages of the shadow stack that were never used stay untouched: everything below the lowest use is zero already,
  // and zero is the key of no entry that translated code can look for and find code in.
  const uint64_t bottom = thread.shadow_bottom;
  auto* entry = reinterpret_cast<LookupEntry*>(thread.shadow_top);
  for (--entry; reinterpret_cast<uint64_t>(entry) >= bottom; --entry) {
    if (entry->key == 0) break;
    *entry = {1, 0};
  }
}

void lock_thread_list() { list_lock.lock(); }
void unlock_thread_list() { list_lock.unlock(); }

void for_each_thread(void (*visit)(Thread& thread, void* data), void* data) {
  lock_thread_list();
  for (Thread* thread = first_thread; thread != nullptr; thread = thread->next) visit(*thread, data);
  unlock_thread_list();
}

void keep_only_this_thread() {
  for (Thread* thread = first_thread; thread != nullptr;) {
    Thread* next = thread->next;
    if (thread != this_thread) {
      unmap_worker_memory(thread->shadow_mapping, shadow_stack_bytes());
      unmap_worker_memory(poll_page(*thread), thread_bytes());
    }
    thread = next;
  }
  first_thread = this_thread;
  counts.threads = 1;
  if (this_thread != nullptr) this_thread->next = this_thread->previous = nullptr;
}

}  // namespace phybin::runtime
