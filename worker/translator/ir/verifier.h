// Checks that a region obeys the rules of the IR (ir.h). Tests verify every region that they lift; the worker does
// not.
#pragma once

#include <string>

#include "worker/translator/ir/ir.h"

namespace phybin::ir {

// The first broken rule with the operation that breaks it, or an empty string. For regions as lifters make them and
// as passes leave them.
std::string verify(const Region& region);

// Also the promises of passes::analyse_liveness: nothing dead is needed, and the writer of a flag that is read knows
// that it is.
std::string verify_liveness(const Region& region);

}  // namespace phybin::ir
