// The runtime as the rest of the worker sees it: threads of translated code, and what must be told to it about guest
// memory.
//
// A guest thread is one host thread inside run_thread(): the dispatcher loop. It enters translated code and comes
// back with a reason (a system call, a trap, a fault, a safepoint, code that is missing), deals with it and goes on
// by guest address. The loop never nests: delivering a signal and returning from one change GuestState and nothing
// else.
//
// The runtime stands below process/ and syscalls/ and reaches them only through the functions in Config.
#pragma once

#include <cstddef>
#include <cstdint>

#include "worker/translator/guest_state.h"
#include "worker/translator/host_features.h"

namespace phybin {
struct RegionCode;  // translator/translate.h
}

namespace phybin::runtime {

// What the guest sees mapped around an address. Protection is the guest's own (PROT_*): the host's differs, because
// guest code is never executable there and translated pages are write-protected.
struct GuestMapping {
  uint64_t start = 0, end = 0;
  int protection = 0;
  bool shared = false;  // MAP_SHARED
  uint64_t device = 0, inode = 0,
           offset = 0;  // of the file behind a shared mapping: finds aliases; offset of `start`
  uint32_t module = 0;  // number of the ELF file that a private executable mapping shows, `offset` is valid then too
};

struct Config {
  CodeOptions code;
  HostFeatures host;
  uint64_t code_memory_limit = 256u << 20;  // bytes of private translations (JIT_cache_size)
  unsigned prefetch_depth = 4;
  // Carries out the system call in `state` (number in RAX) and leaves the result in RAX. Runs on the thread's host
  // stack with all guest signals still deliverable; state.rip is already the address of the next instruction.
  void (*handle_syscall)(GuestState& state) = nullptr;
  // The guest mapping that holds `address`; false if there is none. Called from any thread, never from inside a host
  // signal handler, never with a lock of the runtime held.
  bool (*find_mapping)(uint64_t address, GuestMapping& out) = nullptr;
  // Other guest addresses where the page at `page` of a shared mapping can be written; returns how many, at most
  // `limit`. May be null. Called like find_mapping.
  size_t (*find_aliases)(uint64_t page, uint64_t* out, size_t limit) = nullptr;
  // A line of diagnostics (--log); may be null.
  void (*log_line)(const char* format, ...) = nullptr;
  // The image at [start, end) is unmapped now. With the code lock held; may be null.
  void (*image_unmapped)(uint64_t start, uint64_t end) = nullptr;
  // Before something is translated privately, without locks of the runtime; may be null.
  void (*before_translation)() = nullptr;
  // Code at `offset` of the file of module `module` was translated; the process's counters. With
  // proto::kUnalignedAccess in `offset`: code that holds the instruction there was translated with barriers. With the
  // code lock held; may be null.
  void (*translated)(uint32_t module, uint64_t offset, const struct Counters& counters) = nullptr;
  // In the child of fork, before it goes on; may be null.
  void (*forked)() = nullptr;
  // Told of each region translated, for --trace-instruction; may be null.
  void (*trace_region)(const struct TranslatedRegion& region) = nullptr;
};

// For --trace-instruction.
struct TranslatedRegion {
  const uint32_t* code;  // where it runs
  size_t words;
  const RegionCode* tables;
};

// Once, before the first thread; installs the host signal handlers.
void initialise(const Config& config);

// ---- Threads ----------------------------------------------------------------------------------------------------

// State of a new thread: registers zero, stubs, lookup table and shadow stack ready, signal mask that of the calling
// host thread. Null when there is no memory. May be called by the parent; the new thread runs it.
GuestState* create_thread_state();
// Copies what a new thread inherits (clone): registers, segment bases, x87/SSE control, vector state. Not signals.
void copy_registers(GuestState& to, const GuestState& from);
// Only when no host thread is inside run_thread() with it.
void destroy_thread_state(GuestState* state);

// Runs the guest thread from state.rip until end_thread(); returns its status. One call per host thread at a time.
int run_thread(GuestState& state);
// From handle_syscall: makes run_thread() return `status` as soon as the handler returns.
void end_thread(GuestState& state, int status);
// The guest thread that runs on this host thread; null outside run_thread().
GuestState* current_thread();
// After clone(CLONE_VM | CLONE_VFORK) returned in the parent: the child, which shares the host thread's local
// storage, was another guest thread meanwhile.
void adopt_thread(GuestState* state);

// Around fork(), in this order: all locks of the runtime are taken, and released in parent and child. In the child
// only the calling thread is left. (clone with CLONE_VM|CLONE_VFORK shares memory and needs none of it.)
void before_fork();
void after_fork_parent();
void after_fork_child();

// ---- Guest memory and code ----------------------------------------------------------------------------------------

// Guest addresses [start, start + length) no longer hold the code that they held, or are about to change protection
// or to vanish. Call before munmap, mremap, mprotect and before a MAP_FIXED mapping replaces something. Cheap when
// nothing there was translated. Other threads leave the old code at their next safepoint.
void invalidate_code(uint64_t start, uint64_t length);
// The kernel is about to write into this guest range on behalf of a system call: pages that the runtime has
// write-protected become writable (their translations are dropped). Costs one test when no page is protected.
void before_kernel_writes(uint64_t start, uint64_t length);
// Before a second thread starts or memory is shared with another process: from now on translations order ordinary
// loads and stores as x86 does; code translated before is retired. No effect when it is so already.
void switch_memory_model_to_tso();

// Copies that survive bad guest addresses: false (and nothing certain about the destination) if any byte is not
// accessible. copy_to_guest deals with write-protected translated pages like a store of the guest.
bool copy_from_guest(void* to, uint64_t from, size_t size);
bool copy_to_guest(uint64_t to, const void* from, size_t size);
// Length of the guest string at `from`, at most `limit`; -1 if a byte is not accessible.
int64_t guest_string_length(uint64_t from, size_t limit);

template <typename T>
bool read_guest(uint64_t from, T& to) {
  return copy_from_guest(&to, from, sizeof to);
}
template <typename T>
bool write_guest(uint64_t to, const T& from) {
  return copy_to_guest(to, &from, sizeof from);
}

// ---- System calls that can block
// ------------------------------------------------------------------------------------

// A host system call that a guest signal may interrupt: result or -errno as the kernel gives it. Returns
// -kRestartCall, without having had an effect, when a signal must be delivered first: hand that on as the result of
// the guest's system call, and the runtime delivers the signal and issues the guest's call again afterwards if the
// guest's SA_RESTART says so. Signals that come during calls made otherwise wait until these have ended.
inline constexpr int64_t kRestartCall = 512;
int64_t interruptible_syscall(long number, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0, uint64_t d = 0,
                              uint64_t e = 0, uint64_t f = 0);

// ---- Counters
// -------------------------------------------------------------------------------------------------------

struct Counters {
  uint64_t regions;             // translated
  uint64_t guest_instructions;  // translated
  uint64_t guest_bytes;
  uint64_t code_bytes;   // A64 code written
  uint64_t code_memory;  // bytes of chunks now mapped
  uint64_t chunks_retired;
  uint64_t regions_invalidated;
  uint64_t write_faults;  // stores into write-protected translated pages
  uint64_t alignment_faults;
  uint64_t slots_linked;
  uint64_t images, image_bytes;  // attached now
  uint64_t image_links;          // slots of images that were linked
  uint64_t lookups;              // slow ones, in C++
  uint64_t signals_delivered;
  uint64_t threads;  // that exist now
};
Counters counters();

}  // namespace phybin::runtime
