// The pages that a worker shares with the daemon: the policy in force, which it reads, and its own page, which takes
// counters and the entry points that had to be translated privately. Both were sealed by the daemon, so that they
// cannot shrink under us.
#pragma once

#include "proto/messages.h"
#include "worker/runtime/runtime.h"

namespace phybin::cache {

// Maps the pages; the descriptors stay the caller's. False if they are not what they should be.
bool map_pages(int policy_page, uint32_t policy_index, int worker_page);
// In a child of fork: its own page is the parent's. The policy still holds.
void drop_worker_page();

// The worker's own wish, which the daemon's policy can only restrict.
void set_wish(proto::CachePolicy wish);
// Whether the policy lets images be used, and this process contribute.
bool may_use_images();
bool may_contribute();
// True once after each change of the daemon's word. One load when there was none.
bool policy_has_changed();

// With the code lock held: an entry point, and the counters after its translation.
void write_counters(const runtime::Counters& counters);
void write_entry(uint32_t module, uint32_t offset);

}  // namespace phybin::cache
