// The list of guest mappings. See mapping_list.h.
#include "worker/process/core/mapping_list.h"

#include <algorithm>

namespace phybin::process {

bool Range::continued_by(const Range& next, uint64_t start) const {
  return kind == next.kind && protection == next.protection && shared == next.shared && device == next.device &&
         inode == next.inode && module == next.module &&
         ((!shared && module == 0) || next.offset - offset == end - start);
}

void MappingList::set_bounds(uint64_t low, uint64_t high) {
  low_ = low;
  high_ = cursor_ = high;
  largest_hole_ = 0;
}

// Makes `address` a boundary; returns the first range at or above it.
std::map<uint64_t, Range>::iterator MappingList::split(uint64_t address) {
  auto next = ranges_.lower_bound(address);
  if (next == ranges_.begin()) return next;
  auto previous = std::prev(next);
  if (previous->second.end <= address) return next;
  Range upper = previous->second;
  upper.offset += address - previous->first;
  previous->second.end = address;
  return ranges_.emplace_hint(next, address, upper);
}

void MappingList::assign(uint64_t start, uint64_t end, Range range) {
  range.end = end;
  auto first = split(start);
  auto last = split(end);
  // split(end) may have cut the range that `first` stood for, but never removes a node; only `first` can be stale.
  first = ranges_.lower_bound(start);
  ranges_.erase(first, last);
  auto at = ranges_.emplace_hint(last, start, range);
  if (last != ranges_.end() && last->first == end && at->second.continued_by(last->second, start)) {
    at->second.end = last->second.end;
    ranges_.erase(last);
  }
  if (at != ranges_.begin()) {
    auto previous = std::prev(at);
    if (previous->second.end == start && previous->second.continued_by(at->second, previous->first)) {
      previous->second.end = at->second.end;
      ranges_.erase(at);
    }
  }
}

void MappingList::erase(uint64_t start, uint64_t end) {
  split(start);
  auto last = split(end);
  ranges_.erase(ranges_.lower_bound(start), last);
  // A hole above the cursor may have grown: look from the top of it again.
  if (end > cursor_) {
    auto above = ranges_.lower_bound(end);
    cursor_ = above == ranges_.end() ? high_ : std::min(high_, above->first);
    largest_hole_ = UINT64_MAX;
  }
}

const Range* MappingList::find(uint64_t address, uint64_t* start) const {
  auto next = ranges_.upper_bound(address);
  if (next == ranges_.begin()) return nullptr;
  auto at = std::prev(next);
  if (at->second.end <= address) return nullptr;
  if (start) *start = at->first;
  return &at->second;
}

void MappingList::visit(uint64_t start, uint64_t end,
                        const std::function<void(uint64_t, uint64_t, const Range&)>& visitor) const {
  auto at = ranges_.upper_bound(start);
  if (at != ranges_.begin()) --at;
  for (; at != ranges_.end() && at->first < end; ++at) {
    uint64_t from = std::max(start, at->first), to = std::min(end, at->second.end);
    if (from < to) visitor(from, to, at->second);
  }
}

bool MappingList::is_free(uint64_t start, uint64_t end) const {
  auto next = ranges_.upper_bound(start);
  if (next != ranges_.end() && next->first < end) return false;
  return next == ranges_.begin() || std::prev(next)->second.end <= start;
}

bool MappingList::is_covered(uint64_t start, uint64_t end, uint64_t* hole) const {
  uint64_t at = start;
  while (at < end) {
    const Range* range = find(at);
    if (!range || range->kind != RangeKind::kGuest) {
      if (hole) *hole = at;
      return false;
    }
    at = range->end;
  }
  return true;
}

uint64_t MappingList::search(uint64_t length, uint64_t alignment, uint64_t low, uint64_t high,
                             uint64_t* largest_skipped) const {
  uint64_t top = high, largest = 0;
  auto at = ranges_.lower_bound(high);
  for (;;) {
    // The hole below `top` begins where the next range down ends.
    uint64_t bottom = low;
    bool more = at != ranges_.begin();
    if (more) {
      --at;
      bottom = std::max(low, at->second.end);
    }
    if (top > bottom) {
      if (top - bottom >= length) {
        uint64_t start = (top - length) & ~(alignment - 1);
        if (start >= bottom && start != 0) {
          if (largest_skipped) *largest_skipped = largest;
          return start;
        }
      }
      largest = std::max(largest, top - bottom);
    }
    if (!more || at->first <= low) return 0;
    top = std::min(top, at->first);
  }
}

uint64_t MappingList::find_free(uint64_t length, uint64_t alignment, uint64_t low, uint64_t high) const {
  return search(length, alignment, low, high, nullptr);
}

uint64_t MappingList::find_free(uint64_t length, uint64_t alignment) {
  bool from_top = length <= largest_hole_;
  uint64_t high = from_top ? high_ : cursor_, skipped = 0;
  uint64_t start = search(length, alignment, low_, high, &skipped);
  if (start == 0 && !from_top) start = search(length, alignment, low_, high_, &skipped);
  if (start == 0) return 0;
  largest_hole_ = from_top ? skipped : std::max(largest_hole_, skipped);
  cursor_ = start;
  return start;
}

}  // namespace phybin::process
