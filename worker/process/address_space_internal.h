// What the files that implement address_space.h share: address_space.cpp, placement.cpp, heap.cpp,
// system_v_memory.cpp.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <mutex>

#include "worker/process/core/few.h"
#include "worker/process/core/mapping_list.h"
#include "worker/runtime/lock.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace phybin::process {

extern runtime::Lock change_lock;  // one change of mappings at a time
extern runtime::Lock list_lock;    // `mappings` and what the heap's functions keep; the last lock taken
extern MappingList mappings;
extern uint64_t page;  // the host's page size, page_size()
extern uint64_t top;   // guest_top()

// Sets `page`, `top` and the bounds of `mappings`.
void find_bounds();

// What guest memory of that protection has on the host.
int host_protection(int protection);
// The host's system calls; results as of the kernel.
int64_t host_mmap(uint64_t address, uint64_t length, int protection, int flags, int fd, uint64_t offset);
void host_munmap(uint64_t start, uint64_t end);

// Maps at exactly `address` if nothing is there: -EEXIST otherwise. Kernels before 4.17 and qemu take the flag for a
// hint, so that the address that comes back has to be looked at.
int64_t map_if_free(uint64_t address, uint64_t length, int protection, int flags, int fd, uint64_t offset);

// Where a new mapping should go.
struct Placement {
  uint64_t hint = 0;
  uint64_t alignment = 0;
  uint64_t gap = 0;  // addresses behind it that should be free, where there are so many
  bool low32 = false;
};
// Refers to a function of an address, which must outlive it; nothing is copied.
class MapCall {
 public:
  template <typename Function>
  MapCall(const Function& function)  // NOLINT(google-explicit-constructor): stands for it
      : function_(&function),
        call_([](const void* f, uint64_t address) { return (*static_cast<const Function*>(f))(address); }) {}
  int64_t operator()(uint64_t address) const { return call_(function_, address); }

 private:
  const void* function_;
  int64_t (*call_)(const void*, uint64_t);
};
// Calls map(address), which answers as map_if_free does, with good places until one is taken.
int64_t place(const Placement& where, uint64_t length, MapCall map);

struct Piece {
  uint64_t from, to;
};
// What of [start, end) is not the guest's own.
Few<Piece> holes_in(uint64_t start, uint64_t end);

// Makes sure that [start, end) may be mapped over: nothing but guest memory and free addresses, which are filled
// with inaccessible pages so that they stay free of others. False if the worker or the host has something there.
bool claim(uint64_t start, uint64_t end);

// Puts a range into the list; note_new() for memory that the guest may write from now on.
void note(uint64_t start, uint64_t end, const Range& range);
void note_new(uint64_t start, uint64_t end, const Range& range);
// The guest's mapping is about to go: no new translation is made of it, and those that exist are dropped.
void retire_range(uint64_t start, uint64_t end);
struct SavedRange {
  uint64_t start;
  Range range;
};
using SavedRanges = Few<SavedRange>;
SavedRanges save_ranges(uint64_t start, uint64_t end);
void restore_ranges(const SavedRanges& saved);

// Unmaps what of [start, end) is the guest's, with `change_lock` held.
void unmap_guest_pieces(uint64_t start, uint64_t end);

}  // namespace phybin::process
