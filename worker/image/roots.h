// What an ELF file itself says about where its code may be entered: symbols, unwind tables, relocations, pointers.
// Nothing of it is needed to run a program, so all of it may be missing, and none of it is trusted to be right.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/image/module.h"

namespace phybin::image {

// Linked addresses of the text, in no order, some more than once.
std::vector<uint64_t> find_roots(const Module& module);

}  // namespace phybin::image
