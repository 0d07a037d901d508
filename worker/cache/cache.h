// The worker's side of the shared translation cache: what main.cpp wires up.
//
// The session with the daemon (session.h) begins when the program is opened and brings two things: images that may be
// used (offers.h), which process/ attaches to modules, and two shared pages (profile.h): the policy in force, and one
// that takes counters and the entry points which had to be translated privately. All of it is help, none of it is
// needed: whatever the daemon does or fails to do, the program runs, without it on private translations.
#pragma once

#include <string>

#include "worker/config/options.h"
#include "worker/runtime/runtime.h"

namespace phybin::cache {

// Fills in those functions of `config` that are the cache's and tells process/ where images come from. Nothing
// happens until the program is loaded, and nothing at all if the options say so. `secure`: AT_SECURE, the environment
// may not be trusted; `runtime_folder`: $XDG_RUNTIME_DIR or null. Once, before runtime::initialise().
void prepare(const config::Options& options, bool secure, const char* runtime_folder, runtime::Config& config);

}  // namespace phybin::cache
