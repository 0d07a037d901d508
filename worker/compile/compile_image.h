// The commands by which the daemon has images made: `--compile-image` and `--translator-build`, of the worker and of
// phybin-compile-image, which is the same for build machines.
#pragma once

#include "worker/translator/host_features.h"

namespace phybin::compile {

// Whether the arguments (without argv[0]) are one of these commands.
bool is_command(int count, char* const* arguments);
// Executes it; `host` is the default of --host-features. Returns the exit status: 0, 1 with a line on stderr, 2 for
// wrong arguments.
int run_command(int count, char* const* arguments, const HostFeatures& host);

}  // namespace phybin::compile
