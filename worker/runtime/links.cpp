// See links.h.
#include "worker/runtime/links.h"

#include <atomic>
#include <unordered_map>

namespace phybin::runtime {
namespace {

// First of the pairs that are linked to a guest address.
std::unordered_map<uint64_t, PairRef> links;

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
  SlotPairRecord& record = known_pair(ref).record;
  PairRef& first = links[record.target];
  record.next = first;
  record.linked = true;
  first = ref;
}

void reset_links(uint64_t guest) {
  auto found = links.find(guest);
  if (found == links.end()) return;
  empty_list(found->second);
  links.erase(found);
}

void reset_links_within(uint64_t start, uint64_t end) {
  std::erase_if(links, [=](const auto& link) {
    if (link.first < start || link.first >= end) return false;
    empty_list(link.second);
    return true;
  });
}

void forget_links(uint64_t guest, uint32_t owner) {
  auto found = links.find(guest);
  if (found == links.end()) return;
  PairRef* at = &found->second;
  while (at->owner != kNoOwner) {
    PairRef& next = known_pair(*at).record.next;
    if (at->owner == owner) {
      *at = next;
    } else {
      at = &next;
    }
  }
  if (found->second.owner == kNoOwner) links.erase(found);
}

}  // namespace phybin::runtime
