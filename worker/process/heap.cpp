// The guest's heap, brk: a place where free addresses are kept for it, mapped as far as it has grown.
#include <sys/mman.h>

#include <algorithm>

#include "worker/process/address_space.h"
#include "worker/process/address_space_internal.h"

namespace phybin::process {
namespace {

uint64_t heap_start = 0, heap_end = 0, heap_limit = 0;

uint64_t round_to_page(uint64_t value) { return (value + page_size() - 1) & ~(page_size() - 1); }

}  // namespace

void place_heap(uint64_t start, uint64_t size) {
  std::lock_guard guard(list_lock);
  heap_start = heap_end = start;
  uint64_t from = round_to_page(start);
  heap_limit = from;
  // Free addresses up to `size`, less where something stands in the way.
  uint64_t limit = size > guest_top() - from ? guest_top() : from + (size & ~(page_size() - 1));
  mappings.visit(from, limit, [&](uint64_t at, uint64_t, const Range&) { limit = std::min(limit, at); });
  if (limit <= from) return;
  heap_limit = limit;
  Range reserved;
  reserved.kind = RangeKind::kReserved;
  mappings.assign(from, limit, reserved);
}

int64_t set_break(uint64_t address) {
  std::lock_guard changing(change_lock);
  const uint64_t old_page = round_to_page(heap_end), new_page = round_to_page(address);
  if (address < heap_start || new_page > heap_limit) return static_cast<int64_t>(heap_end);
  Range reserved;
  reserved.kind = RangeKind::kReserved;
  if (new_page < old_page) {
    unmap_guest_pieces(new_page, old_page);
    note(new_page, old_page, reserved);
  } else if (new_page > old_page) {
    bool available = true;
    {
      std::lock_guard guard(list_lock);
      uint64_t at = old_page;
      mappings.visit(old_page, new_page, [&](uint64_t from, uint64_t to, const Range& range) {
        if (range.kind == RangeKind::kGuest || from != at) available = false;
        at = to;
      });
    }
    if (!available) return static_cast<int64_t>(heap_end);
    constexpr int kProtection = PROT_READ | PROT_WRITE;
    int64_t result = map_if_free(old_page, new_page - old_page, kProtection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (result != static_cast<int64_t>(old_page)) return static_cast<int64_t>(heap_end);
    Range range;
    range.protection = kProtection;
    note(old_page, new_page, range);
  }
  heap_end = address;
  return static_cast<int64_t>(address);
}

bool is_heap(uint64_t address) { return address >= heap_start && address < heap_end; }

}  // namespace phybin::process
