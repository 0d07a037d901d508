// Memory nodes (NUMA) of the machine and the CPUs that belong to them, from /sys/devices/system/node. Tests give a
// folder of the same form: NAME/node0/cpulist and so on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace phybin::daemon {

struct Topology {
  // cpus[i]: CPUs of the node whose number is ids[i]. At least one node; nodes without CPUs are left out.
  std::vector<std::vector<unsigned>> cpus;
  std::vector<unsigned> ids;

  size_t nodes() const { return cpus.size(); }
  // Index of the node that a CPU belongs to; 0 for one that belongs to none (it may have been plugged in later).
  unsigned node_of(unsigned cpu) const;
};

inline constexpr char kSystemNodes[] = "/sys/devices/system/node";

// A machine that does not say has one node.
Topology read_topology(const std::string& directory);

// "0-3,8,10-11". What is not in that form is left out; CPU numbers end at 65535.
std::vector<unsigned> parse_cpu_list(std::string_view text);

}  // namespace phybin::daemon
