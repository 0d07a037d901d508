// What is mapped where in the guest's address space, as a list of disjoint ranges.
//
// The kernel's own list cannot serve: it mixes the worker's memory with the guest's, shows the host's protection
// instead of the guest's, and lets unhinted mappings go above 2^47 on 48-bit hosts. The list also finds free places,
// with the two remembered values that Linux 2.6 used: where the last search ended and the largest hole it skipped.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

namespace phybin::process {

enum class RangeKind : uint8_t {
  kGuest,     // the guest's own mapping
  kReserved,  // nothing is mapped; kept free for the heap to grow into
  kForeign,   // seen to be taken by the worker or the host; only placement looks at it
};

struct Range {
  uint64_t end = 0;
  RangeKind kind = RangeKind::kGuest;
  int protection = 0;  // the guest's PROT_*
  bool shared = false;
  uint64_t device = 0, inode = 0, offset = 0;  // of the file behind a shared mapping; offset of the range's start
  uint32_t module = 0;  // number of the file behind a private executable mapping (modules.h); has an offset too

  // Whether `next`, which starts where this ends, continues it.
  bool continued_by(const Range& next, uint64_t start) const;
};

class MappingList {
 public:
  // Free places are looked for in [low, high).
  void set_bounds(uint64_t low, uint64_t high);

  // [start, end) becomes one range like `range` (whose end is ignored), whatever was there before.
  void assign(uint64_t start, uint64_t end, Range range);
  void erase(uint64_t start, uint64_t end);

  // The range that holds `address`; null if none. Valid until the next change.
  const Range* find(uint64_t address, uint64_t* start = nullptr) const;
  // Calls visit(start, end, range) for the part within [start, end) of each range there, ascending.
  void visit(uint64_t start, uint64_t end, const std::function<void(uint64_t, uint64_t, const Range&)>& visit) const;
  bool is_free(uint64_t start, uint64_t end) const;
  // True if kGuest ranges cover [start, end) without a hole; else `hole` is where the first one begins.
  bool is_covered(uint64_t start, uint64_t end, uint64_t* hole = nullptr) const;

  // Start of a free place of `length` bytes, aligned, as high as possible below `high` and not below `low`; 0 if
  // none.
  uint64_t find_free(uint64_t length, uint64_t alignment, uint64_t low, uint64_t high) const;
  uint64_t find_free(uint64_t length, uint64_t alignment);

  size_t size() const { return ranges_.size(); }

 private:
  std::map<uint64_t, Range> ranges_;
  uint64_t low_ = 0, high_ = 0;
  uint64_t cursor_ = 0;        // the search goes down from here
  uint64_t largest_hole_ = 0;  // no hole above the cursor is larger

  std::map<uint64_t, Range>::iterator split(uint64_t address);
  uint64_t search(uint64_t length, uint64_t alignment, uint64_t low, uint64_t high, uint64_t* largest_skipped) const;
};

}  // namespace phybin::process
