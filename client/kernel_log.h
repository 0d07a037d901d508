// The kernel's log since it was started.
#pragma once

#include <string>
#include <vector>

#include "client/host_tree.h"

namespace phybin::client {

struct KernelLog {
  std::vector<std::string> lines;
  std::string problem;  // why it is not there or not whole; empty: it is
};

// Of a recorded tree: var/log/dmesg or var/log/kern.log in it.
KernelLog read_kernel_log(const HostTree& host);

}  // namespace phybin::client
