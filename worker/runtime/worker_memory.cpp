// See worker_memory.h. A sorted array under a lock: there are few ranges, they change rarely, and guest mmap
// calls ask often.
#include "worker/runtime/worker_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "worker/runtime/lock.h"

namespace phybin::runtime {
namespace {

struct Range {
  uint64_t start, end;
};

Lock list_lock;
std::vector<Range>& ranges() {
  static std::vector<Range> list;
  return list;
}

void add_range(uint64_t start, uint64_t end) {
  list_lock.lock();
  std::vector<Range>& list = ranges();
  auto at = std::lower_bound(list.begin(), list.end(), start, [](const Range& r, uint64_t s) { return r.start < s; });
  list.insert(at, Range{start, end});
  list_lock.unlock();
}

void remove_range(uint64_t start, uint64_t end) {
  list_lock.lock();
  std::erase_if(ranges(), [=](const Range& r) { return r.start == start && r.end == end; });
  list_lock.unlock();
}

}  // namespace

void lock_worker_memory() { list_lock.lock(); }
void unlock_worker_memory() { list_lock.unlock(); }

size_t host_page_size() {
  static const size_t size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

void* map_worker_memory(size_t size, int protection, int flags, int fd, int64_t offset) {
  void* address = mmap(nullptr, size, protection, flags, fd, offset);
  if (address == MAP_FAILED) return nullptr;
  note_worker_range(reinterpret_cast<uint64_t>(address), reinterpret_cast<uint64_t>(address) + size);
  return address;
}

void unmap_worker_memory(void* address, size_t size) {
  if (address == nullptr) return;
  munmap(address, size);
  remove_range(reinterpret_cast<uint64_t>(address), reinterpret_cast<uint64_t>(address) + size);
}

void note_worker_range(uint64_t start, uint64_t end) { add_range(start, end); }

bool overlaps_worker_memory(uint64_t start, uint64_t end) {
  list_lock.lock();
  bool found = false;
  for (const Range& r : ranges()) found |= r.start < end && start < r.end;
  list_lock.unlock();
  return found;
}

void for_each_worker_range(void (*visit)(uint64_t start, uint64_t end, void* data), void* data) {
  list_lock.lock();
  for (const Range& r : ranges()) visit(r.start, r.end, data);
  list_lock.unlock();
}

}  // namespace phybin::runtime
