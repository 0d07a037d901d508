// Reads the text form of a region's IR (printer.h), for tests of passes and of the verifier.
//
// More is accepted than the printer writes: values may have any names after `%`, lines may be empty, `#` starts a
// comment, `region` may be missing (the first block's address is the entry then) and so may the lines that open guest
// instructions. Nothing is checked beyond what the text form can express; the verifier does that.
#pragma once

#include <string>
#include <string_view>

#include "worker/translator/ir/ir.h"

namespace phybin::ir {

// The error with its line number, or an empty string.
std::string read(std::string_view text, Region& region);

}  // namespace phybin::ir
