// See ring.h.
#include "daemon/ring.h"

#include <algorithm>
#include <atomic>

namespace phybin::daemon {

void drain_ring(const proto::WorkerPage& page, uint64_t& position, size_t limit, std::vector<proto::RingEntry>& out) {
  constexpr uint64_t kEntries = proto::WorkerPage::kRingEntries;
  const uint64_t count = page.ring_count.load(std::memory_order_acquire);
  if (count < position) {
    position = count;  // it never counts backward: nothing to be had from this one
    return;
  }
  if (count - position > kEntries) position = count - kEntries;
  const uint64_t take = std::min<uint64_t>(count - position, limit);
  for (uint64_t i = 0; i != take; ++i) {
    const proto::RingEntry& entry = page.ring[(position + i) % kEntries];
    out.push_back(
        {__atomic_load_n(&entry.module, __ATOMIC_RELAXED), __atomic_load_n(&entry.offset, __ATOMIC_RELAXED)});
  }
  position += take;
}

}  // namespace phybin::daemon
