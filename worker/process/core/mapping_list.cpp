// The list of guest mappings. See mapping_list.h.
#include "worker/process/core/mapping_list.h"

#include <algorithm>
#include <cstring>

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

MappingList::Position MappingList::first_ending_after(uint64_t address) const {
  // The last block that does not begin above.
  size_t low = 0, high = blocks_.size();
  while (high - low > 1) {
    const size_t middle = (low + high) / 2;
    if (blocks_[middle]->entries[0].start <= address)
      low = middle;
    else
      high = middle;
  }
  const Block& block = *blocks_[low];
  size_t from = 0, to = block.count;
  while (from < to) {
    const size_t middle = (from + to) / 2;
    if (block.entries[middle].range.end <= address)
      from = middle + 1;
    else
      to = middle;
  }
  return from == block.count && low + 1 < blocks_.size() ? Position{low + 1, 0} : Position{low, from};
}

void MappingList::remove_blocks(size_t first, size_t last) {
  blocks_.erase(blocks_.begin() + static_cast<ptrdiff_t>(first), blocks_.begin() + static_cast<ptrdiff_t>(last));
}

void MappingList::replace(Position first, Position last, const Entry* added, size_t count) {
  if (first.block != last.block) {
    // What is between them goes, so that both are in the first one's block, at its end.
    Block& rest = *blocks_[last.block];
    std::copy(rest.entries + last.index, rest.entries + rest.count, rest.entries);
    rest.count -= last.index;
    blocks_[first.block]->count = first.index;
    remove_blocks(first.block + 1, last.block + (rest.count == 0 ? 1 : 0));
    last = first;
  }
  Block* block = blocks_[first.block].get();
  if (block->count + count - (last.index - first.index) > kBlockEntries) {
    // Full, so nothing was removed or little: half of it moves to a new block.
    std::copy(block->entries + last.index, block->entries + block->count, block->entries + first.index);
    block->count -= last.index - first.index;
    auto upper = std::make_unique<Block>();
    const size_t half = block->count / 2;
    upper->count = block->count - half;
    std::copy(block->entries + half, block->entries + block->count, upper->entries);
    block->count = half;
    Block* const new_block = upper.get();
    blocks_.insert(blocks_.begin() + static_cast<ptrdiff_t>(first.block) + 1, std::move(upper));
    if (first.index > half) {
      block = new_block;
      first.index -= half;
    }
    last.index = first.index;
  }
  Entry* const at = block->entries + first.index;
  Entry* const tail = block->entries + last.index;
  const size_t tail_count = block->count - last.index;
  if (at + count != tail) memmove(static_cast<void*>(at + count), tail, tail_count * sizeof(Entry));
  for (size_t i = 0; i < count; ++i) at[i] = added[i];
  block->count = first.index + count + tail_count;
  if (block->count == 0 && blocks_.size() > 1) remove_blocks(first.block, first.block + 1);
}

MappingList::MappingList() { blocks_.push_back(std::make_unique<Block>()); }

size_t MappingList::size() const {
  size_t sum = 0;
  for (const auto& block : blocks_) sum += block->count;
  return sum;
}

void MappingList::assign(uint64_t start, uint64_t end, Range range) {
  Entry added[3];
  size_t count = 0;
  Entry whole{start, range};
  whole.range.end = end;
  // With the one that ends where this begins, which this may continue.
  Position first = first_ending_after(std::max<uint64_t>(start, 1) - 1), last = first;
  if (!is_end(first) && entry(first).start < start) {
    Entry left = entry(first);
    left.range.end = start;
    if (left.range.continued_by(range, left.start)) {
      whole.start = left.start;
      whole.range.offset = left.range.offset;
    } else {
      added[count++] = left;
    }
  }
  while (!is_end(last) && entry(last).range.end <= end) last = next(last);
  const size_t place = count++;
  if (!is_end(last) && entry(last).start <= end) {
    Entry right = entry(last);
    right.range.offset += end - std::min(right.start, end);
    right.start = end;
    if (whole.range.continued_by(right.range, whole.start))
      whole.range.end = right.range.end;
    else
      added[count++] = right;
    last = next(last);
  }
  added[place] = whole;
  replace(first, last, added, count);
}

void MappingList::erase(uint64_t start, uint64_t end) {
  Entry left_over[2];
  size_t count = 0;
  const Position first = first_ending_after(start);
  Position last = first;
  if (!is_end(first) && entry(first).start < start) {
    left_over[count] = entry(first);
    left_over[count++].range.end = start;
  }
  while (!is_end(last) && entry(last).range.end <= end) last = next(last);
  if (!is_end(last) && entry(last).start < end) {
    Entry& right = left_over[count++] = entry(last);
    right.range.offset += end - right.start;
    right.start = end;
    last = next(last);
  }
  replace(first, last, left_over, count);
  // A hole above the cursor may have grown: look from the top of it again.
  if (end > cursor_) {
    const Position above = first_ending_after(end);
    cursor_ = is_end(above) ? high_ : std::min(high_, entry(above).start);
    largest_hole_ = UINT64_MAX;
  }
}

const Range* MappingList::find(uint64_t address, uint64_t* start) const {
  const Position at = first_ending_after(address);
  if (is_end(at) || entry(at).start > address) return nullptr;
  if (start) *start = entry(at).start;
  return &entry(at).range;
}

bool MappingList::is_free(uint64_t start, uint64_t end) const {
  const Position at = first_ending_after(start);
  return is_end(at) || entry(at).start >= end;
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
  // The first range that does not begin below `high`.
  Position at = first_ending_after(high);
  if (!is_end(at) && entry(at).start < high) at = next(at);
  for (;;) {
    // The hole below `top` begins where the next range down ends.
    uint64_t bottom = low;
    const bool more = !is_begin(at);
    if (more) {
      at = previous(at);
      bottom = std::max(low, entry(at).range.end);
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
    if (!more || entry(at).start <= low) return 0;
    top = std::min(top, entry(at).start);
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
