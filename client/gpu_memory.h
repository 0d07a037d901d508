// What the amdgpu driver says of a card's memory and of who holds it. What the kernel does not tell, or not to this
// user, is none, never 0.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "client/gpu_cards.h"

namespace phybin::client {

struct MemoryUse {
  uint64_t total = 0, used = 0;  // bytes
  double percent() const { return total == 0 ? 0 : 100.0 * static_cast<double>(used) / static_cast<double>(total); }
};

// Of one kind of memory of a card: "vram", "vis_vram" (what the CPU reaches), "gtt" (memory of the machine that the
// card reaches).
std::optional<MemoryUse> memory_use(const HostTree& host, const GpuCard& card, const std::string& kind);

// How scattered free VRAM is. The driver maps 2 MiB at once where it can; smaller pieces cost translation misses.
inline constexpr uint64_t kPieceBytes = 2 << 20;
struct Fragmentation {
  uint64_t free = 0;     // bytes
  uint64_t small = 0;    // bytes of it in pieces under kPieceBytes
  uint64_t largest = 0;  // bytes of the largest piece
};
// From debugfs, which is root's.
std::optional<Fragmentation> fragmentation(const HostTree& host, const GpuCard& card);

struct Holder {
  uint64_t pid = 0;
  std::string program;
  std::optional<uint64_t> uid;
  uint64_t vram = 0, gtt = 0;  // bytes
};
// By PCI address of the card, those with most first. From /sys/class/kfd (compute processes), and from what drivers
// write into /proc/PID/fdinfo (Linux 5.14), as far as this user may read it.
std::map<std::string, std::vector<Holder>> memory_holders(const HostTree& host);

}  // namespace phybin::client
