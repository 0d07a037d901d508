// Takes entry points out of a worker's page. The worker may write anything into it at any time, so every word is read
// once and nothing is believed.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/pages.h"

namespace phybin::daemon {

// Takes the entries that were written since `position` (entries taken so far, updated), at most `limit` of them, and
// appends them to `out`. What the worker has overwritten meanwhile is lost; it will be met again by another run.
void drain_ring(const WorkerMemory& memory, uint64_t& position, size_t limit, std::vector<proto::RingEntry>& out);

}  // namespace phybin::daemon
