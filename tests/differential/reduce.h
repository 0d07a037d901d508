// Finds the shortest part of a failing sequence that still fails.
#pragma once

#include "tests/differential/compare.h"

namespace phybin::difftest {

Snippet reduce(const Case& failing, const Machine& oracle, const Machine& tested, const CompareOptions& options);

}  // namespace phybin::difftest
