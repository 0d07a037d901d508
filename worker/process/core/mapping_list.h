// What is mapped where in the guest's address space, as a list of disjoint ranges.
//
// The kernel's own list cannot serve: it mixes the worker's memory with the guest's, shows the host's protection
// instead of the guest's, and lets unhinted mappings go above 2^47 on 48-bit hosts. The list also finds free places,
// with the two remembered values that Linux 2.6 used: where the last search ended and the largest hole it skipped.
//
// Programs have some dozens of mappings, changed by system calls that should cost little, or hundreds of thousands.
// So the ranges stand in order in blocks of a page each: a search is two binary searches, a change moves some of one
// block, and nothing is allocated for a range.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

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
  MappingList();

  // Free places are looked for in [low, high).
  void set_bounds(uint64_t low, uint64_t high);

  // [start, end) becomes one range like `range` (whose end is ignored), whatever was there before.
  void assign(uint64_t start, uint64_t end, Range range);
  void erase(uint64_t start, uint64_t end);

  // The range that holds `address`; null if none. Valid until the next change.
  const Range* find(uint64_t address, uint64_t* start = nullptr) const;
  // Calls visit(start, end, range) for the part within [start, end) of each range there, ascending.
  template <typename Visitor>
  void visit(uint64_t start, uint64_t end, Visitor&& visitor) const {
    for (Position at = first_ending_after(start); !is_end(at) && entry(at).start < end; at = next(at)) {
      const Entry& here = entry(at);
      const uint64_t from = std::max(start, here.start), to = std::min(end, here.range.end);
      if (from < to) visitor(from, to, here.range);
    }
  }
  bool is_free(uint64_t start, uint64_t end) const;
  // True if kGuest ranges cover [start, end) without a hole; else `hole` is where the first one begins.
  bool is_covered(uint64_t start, uint64_t end, uint64_t* hole = nullptr) const;

  // Start of a free place of `length` bytes, aligned, as high as possible below `high` and not below `low`; 0 if
  // none.
  uint64_t find_free(uint64_t length, uint64_t alignment, uint64_t low, uint64_t high) const;
  uint64_t find_free(uint64_t length, uint64_t alignment);

  size_t size() const;

 private:
  struct Entry {
    uint64_t start;
    Range range;
  };
  static constexpr size_t kBlockEntries = 56;
  struct Block {
    size_t count = 0;
    union {
      Entry entries[kBlockEntries];  // not constructed: a block is used from the front
    };
    Block() {}  // NOLINT(modernize-use-equals-default): that would be deleted, for the union
  };
  // The end is `count` of the last block; no other position is the `count` of its block.
  struct Position {
    size_t block, index;
  };

  std::vector<std::unique_ptr<Block>> blocks_;  // at least one; none empty but a single one
  uint64_t low_ = 0, high_ = 0;
  uint64_t cursor_ = 0;        // the search goes down from here
  uint64_t largest_hole_ = 0;  // no hole above the cursor is larger

  Entry& entry(Position at) const { return blocks_[at.block]->entries[at.index]; }
  bool is_end(Position at) const { return at.index == blocks_[at.block]->count; }
  bool is_begin(Position at) const { return at.block == 0 && at.index == 0; }
  Position next(Position at) const {
    return at.index + 1 == blocks_[at.block]->count && at.block + 1 < blocks_.size()
               ? Position{at.block + 1, 0}
               : Position{at.block, at.index + 1};
  }
  Position previous(Position at) const {
    return at.index != 0 ? Position{at.block, at.index - 1}
                         : Position{at.block - 1, blocks_[at.block - 1]->count - 1};
  }
  // The first range whose end is above `address`.
  Position first_ending_after(uint64_t address) const;
  // Puts `added`, at most 3 ranges, in the place of those from `first` up to and without `last`.
  void replace(Position first, Position last, const Entry* added, size_t count);
  void remove_blocks(size_t first, size_t last);
  uint64_t search(uint64_t length, uint64_t alignment, uint64_t low, uint64_t high, uint64_t* largest_skipped) const;
};

}  // namespace phybin::process
