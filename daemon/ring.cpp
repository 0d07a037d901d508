// See ring.h.
#include "daemon/ring.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>

namespace phybin::daemon {
namespace {

constexpr uint64_t kEntries = proto::WorkerPage::kRingEntries;

// Reads entries that follow each other in memory. The number read.
uint64_t read_entries(int file, uint64_t first, uint64_t count, std::vector<proto::RingEntry>& out) {
  const size_t before = out.size();
  out.resize(before + count);
  const ssize_t bytes =
      pread(file, out.data() + before, count * sizeof(proto::RingEntry),
            static_cast<off_t>(offsetof(proto::WorkerPage, ring) + first * sizeof(proto::RingEntry)));
  const uint64_t read = bytes > 0 ? static_cast<uint64_t>(bytes) / sizeof(proto::RingEntry) : 0;
  out.resize(before + read);
  return read;
}

}  // namespace

void drain_ring(const WorkerMemory& memory, uint64_t& position, size_t limit, std::vector<proto::RingEntry>& out) {
  const uint64_t written = memory.page()->ring_count.load(std::memory_order_acquire);
  if (written < position) {
    position = written;  // it never counts backward: nothing to be had from this one
    return;
  }
  if (written - position > kEntries) position = written - kEntries;
  uint64_t left = std::min<uint64_t>(written - position, limit);
  while (left != 0) {
    const uint64_t first = position % kEntries;
    const uint64_t read = read_entries(memory.file(), first, std::min(left, kEntries - first), out);
    if (read == 0) return;
    position += read;
    left -= read;
  }
}

}  // namespace phybin::daemon
