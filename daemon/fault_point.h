// Places where tests kill the daemon, as a power failure would: `phybind --fault-point NAME`.
#pragma once

#include <string>

namespace phybin::daemon {

// Once, before threads are started. Empty: nowhere. False: there is no place of that name.
bool set_fault_point(const std::string& name);

// Ends the process with SIGKILL if it is the place that was set. From any thread.
void fault_point(const char* name);

// The names, for messages.
std::string fault_point_names();

}  // namespace phybin::daemon
