// The text form of a region's IR, for --trace-instruction and tests: one operation a line.
#pragma once

#include <string>

#include "worker/translator/ir/ir.h"

namespace phybin::ir {

std::string print(const Region& region);

}  // namespace phybin::ir
