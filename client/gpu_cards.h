// The graphics and compute cards of a machine, as /sys/class/drm lists them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/host_tree.h"

namespace phybin::client {

struct GpuCard {
  std::string name;    // "card0"
  std::string folder;  // of its device: "/sys/class/drm/card0/device"
  std::string pci;     // address, "0000:03:00.0"; empty: not a PCI device
  std::string driver;  // "amdgpu"
  uint64_t vendor = 0, device = 0;
  bool is_amd() const { return vendor == 0x1002; }
};

// By number.
std::vector<GpuCard> find_cards(const HostTree& host);
// There is an AMD GPU on the PCI bus, with or without a driver.
bool has_amd_gpu(const HostTree& host);

}  // namespace phybin::client
