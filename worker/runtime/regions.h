// The index of translations: from guest addresses to code, from code addresses back to guest state, and the links
// between translations.
//
// Finding the code of a guest address takes no lock. Everything else happens under one lock, the code lock; it is
// never held while guest memory is read, nor while waiting for another thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "worker/runtime/code_memory.h"
#include "worker/runtime/lock.h"
#include "worker/runtime/runtime.h"
#include "worker/translator/translate.h"

namespace phybin::runtime {

struct CodeAddress {
  uint64_t host = 0;         // 0: none
  bool needs_flags = false;  // takes canonical flags
  bool checked = false;      // good for one entry now: nothing may be linked to it (write_watch.h)
};

// Lock-free. run_thread() says how this stays right while code is retired.
CodeAddress find_code(uint64_t guest);
// Where phybin_stub_lookup finds the index (CodeIndex::current_table).
const void* code_index_for_stubs();
// The same, translating if there is none. None if no code can be executed there.
CodeAddress find_or_translate(uint64_t guest);
// Code for the one instruction at `guest`, which is about to write into its own page.
CodeAddress translate_single_step(uint64_t guest);
// Links the slot pair at address `slot`, of private code or an image, which leads to `guest`, if both still exist.
void link_slot(uint64_t slot, uint64_t guest);

// The guest instruction behind the one at `host`, which must be a known place; false if it is not. The code may be
// retired, but not freed: call while Thread::in_code is set.
bool locate_code(uint64_t host, KnownPlace& out);
// Lock-free and async-signal-safe.
bool is_code_address(uint64_t host);

// The ordered access of guest instruction `guest` in the code at `host` is unaligned often: that region or image is
// retired, and from now on what holds the instruction is translated with barriers in place of ordered accesses.
void use_barriers(uint64_t host, uint64_t guest);

// ---- Retiring (design: docs/design.md, "Retiring code") ---------------------------------------------------------

// Number of the last retirement; a thread whose passed_epoch is older must clear its tables before it enters code.
extern std::atomic<uint64_t> code_epoch;
inline uint64_t retire_epoch() { return code_epoch.load(); }
// With the code lock held: nothing leads to these regions any more once finish_retiring() has been called.
void retire_regions(const std::vector<uint32_t>& regions);
// After any number of the above: makes all threads pass a safepoint. With the code lock held.
void finish_retiring();
void retire_private_code();
// With the code lock held: unmaps retired code that all threads have left.
void free_passed();

struct RegionRecord {
  uint32_t chunk = 0;
  uint32_t offset = 0;  // of the code in the chunk
  uint32_t bytes = 0;
  uint32_t first_entry = 0, entry_count = 0;  // in Chunk::entries
  bool retired = false;
  bool checked = false;
  bool has_barriers = false;  // in place of ordered accesses
};
const RegionRecord& region_record(uint32_t region);  // code lock held

extern Config config;
extern Counters counts;

extern Lock code_lock;
class CodeLock {
 public:
  CodeLock() { code_lock.lock(); }
  ~CodeLock() { code_lock.unlock(); }
  CodeLock(const CodeLock&) = delete;
  CodeLock& operator=(const CodeLock&) = delete;
};
void regions_after_fork_child();

}  // namespace phybin::runtime
