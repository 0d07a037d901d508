// --trace-instruction: what the translator makes of each guest instruction, disassembled.
//
// An instruction is printed when its region is translated, so once, however often it is executed, and again when code
// is translated anew; what the translator fetched ahead is printed with it. Which instructions are wanted may be
// limited to a range of addresses or to a function by its name, of whatever module.
#pragma once

#include <string>

#include "worker/config/options.h"
#include "worker/runtime/runtime.h"

namespace phybin::process {

// Before the first region; `options.to` is not empty. An error for the user, or an empty string.
std::string start_trace(const config::Trace& options);
// For the runtime (Config::trace_region).
void trace_region(const runtime::TranslatedRegion& region);

}  // namespace phybin::process
