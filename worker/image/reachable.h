// Control-flow recovery: which addresses of a module's text are instruction starts that something in the module leads
// to. Entry points that are none of them are hints that only some process can have had reason for, and do not enter
// images that others execute.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/image/module.h"

namespace phybin::image {

// Removes from `entry_points`, offsets in the module's text, those that recovery does not reach. Returns how many.
uint64_t keep_reachable(const Module& module, std::vector<uint32_t>& entry_points);

}  // namespace phybin::image
