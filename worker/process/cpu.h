// The processor: what the host's offers to translations, what the guest's announces.
#pragma once

#include <cstdint>
#include <string>

#include "worker/translator/host_features.h"

namespace phybin::process {

// From HWCAP only: ID registers are not readable everywhere.
HostFeatures detect_host_features();

// /proc/cpuinfo of the guest's machine, one entry for each processor of the host that is on line.
std::string cpuinfo_text();

}  // namespace phybin::process
