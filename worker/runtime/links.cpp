// See links.h.
#include "worker/runtime/links.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <utility>
#include <vector>

namespace phybin::runtime {
namespace {

// A list of the pairs that are linked to a guest address.
struct List {
  uint64_t key = 0;  // guest address + 1; 0: never used
  PairRef first;     // none: the list is empty
};

// Open addressing, at most half full. A process has thousands of lists, so none is allocated by itself. Empty ones
// stay until the table grows.
std::vector<List> lists;
size_t used_lists = 0;

size_t place_of(uint64_t guest) {
  size_t i = guest * 0x9e3779b97f4a7c15u >> 40 & (lists.size() - 1);
  while (lists[i].key != 0 && lists[i].key != guest + 1) i = (i + 1) & (lists.size() - 1);
  return i;
}

void make_room() {
  if (used_lists * 2 < lists.size()) return;
  const std::vector<List> old = std::move(lists);
  used_lists = static_cast<size_t>(
      std::count_if(old.begin(), old.end(), [](const List& list) { return list.first.owner != kNoOwner; }));
  lists.assign(std::max<size_t>(2048, std::bit_ceil(used_lists * 4)), List{});
  for (const List& list : old) {
    if (list.first.owner == kNoOwner) continue;
    lists[place_of(list.key - 1)] = list;
  }
}

// The first pair of the list of `guest`; null if there is none.
PairRef* find_list(uint64_t guest) {
  if (lists.empty()) return nullptr;
  List& list = lists[place_of(guest)];
  return list.key != 0 && list.first.owner != kNoOwner ? &list.first : nullptr;
}

KnownPair known_pair(PairRef ref) { return (ref.owner & kImageOwner) != 0 ? pair_of_image(ref) : pair_of_chunk(ref); }

void empty_list(PairRef first) {
  for (PairRef ref = first; ref.owner != kNoOwner;) {
    const KnownPair pair = known_pair(ref);
    pair.record.linked = false;
    for (unsigned i = 0; i < 2; ++i) std::atomic_ref<uint64_t>(pair.slots[i]).store(0, std::memory_order_release);
    ref = pair.record.next;
  }
}

}  // namespace

void add_link(PairRef ref) {
  make_room();
  SlotPairRecord& record = known_pair(ref).record;
  List& list = lists[place_of(record.target)];
  if (list.key == 0) {
    list.key = record.target + 1;
    ++used_lists;
  }
  record.next = list.first;
  record.linked = true;
  list.first = ref;
}

void reset_links(uint64_t guest) {
  PairRef* first = find_list(guest);
  if (first == nullptr) return;
  empty_list(*first);
  *first = PairRef{};
}

void reset_links_within(uint64_t start, uint64_t end) {
  for (List& list : lists) {
    if (list.key == 0 || list.key - 1 < start || list.key - 1 >= end) continue;
    empty_list(list.first);
    list.first = PairRef{};
  }
}

void forget_links(uint64_t guest, uint32_t owner) {
  PairRef* at = find_list(guest);
  if (at == nullptr) return;
  while (at->owner != kNoOwner) {
    PairRef& next = known_pair(*at).record.next;
    if (at->owner == owner) {
      *at = next;
    } else {
      at = &next;
    }
  }
}

}  // namespace phybin::runtime
