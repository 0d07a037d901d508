// What the guest reads below /proc where the truth would show the worker: its mappings, its command line, its CPU.
#pragma once

#include <string>

namespace phybin::process {

// The part of `path` behind the folder of this process ("maps" of /proc/self/maps, /proc/PID/maps or
// /proc/thread-self/maps), or "/cpuinfo"; empty if the file is shown as it is. "exe" is among the answers.
std::string view_of(const char* path);

// A descriptor to read the view from, -errno on failure. `flags` are the host's open flags.
int open_view(const std::string& view, int flags);

}  // namespace phybin::process
