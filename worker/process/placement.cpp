// Where the guest's mappings go: the size of the address space, free places in it, and what has to be free first. See
// address_space_internal.h.
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <mutex>
#include <vector>

#include "worker/process/address_space.h"
#include "worker/process/address_space_internal.h"
#include "worker/process/core/elf_file.h"
#include "worker/process/raw_syscall.h"
#include "worker/runtime/images.h"
#include "worker/runtime/worker_memory.h"

namespace phybin::process {
namespace {

constexpr uint64_t kLow32Start = 0x40000000, kLow32End = 0x80000000;  // where Linux puts MAP_32BIT mappings
constexpr uint64_t kLowest = 0x10000;                                 // vm.mmap_min_addr of most systems

}  // namespace

uint64_t page = 4096;
uint64_t top = kGuestAddressEnd;

int host_protection(int protection) {
  int host = protection & (PROT_READ | PROT_WRITE | PROT_GROWSDOWN | PROT_GROWSUP);
  // On x86 what can be written or executed can be read.
  if (protection & (PROT_WRITE | PROT_EXEC)) host |= PROT_READ;
  return host;
}

int64_t host_mmap(uint64_t address, uint64_t length, int protection, int flags, int fd, uint64_t offset) {
  return raw_syscall(SYS_mmap, address, length, static_cast<uint64_t>(host_protection(protection)),
                     static_cast<uint64_t>(flags), static_cast<uint64_t>(static_cast<int64_t>(fd)), offset);
}

void host_munmap(uint64_t start, uint64_t end) { raw_syscall(SYS_munmap, start, end - start); }

int64_t map_if_free(uint64_t address, uint64_t length, int protection, int flags, int fd, uint64_t offset) {
  int64_t result = host_mmap(address, length, protection, flags | MAP_FIXED_NOREPLACE, fd, offset);
  if (failed(result) || static_cast<uint64_t>(result) == address) return result;
  host_munmap(static_cast<uint64_t>(result), static_cast<uint64_t>(result) + length);
  return -EEXIST;
}

namespace {

// Marks what the host has mapped below `top` and the list does not know, so that placement avoids it.
void learn_foreign_ranges() {
  FILE* file = fopen("/proc/self/maps", "re");
  if (!file) return;
  char line[4400];
  while (fgets(line, sizeof line, file)) {
    uint64_t start = 0, end = 0;
    if (sscanf(line, "%lx-%lx", &start, &end) != 2 || start >= top) continue;
    std::lock_guard guard(list_lock);
    std::vector<std::pair<uint64_t, uint64_t>> holes;
    uint64_t at = start;
    mappings.visit(start, end, [&](uint64_t from, uint64_t to, const Range&) {
      if (from > at) holes.emplace_back(at, from);
      at = to;
    });
    if (at < end) holes.emplace_back(at, end);
    Range foreign;
    foreign.kind = RangeKind::kForeign;
    for (auto [from, to] : holes) mappings.assign(from, to, foreign);
  }
  fclose(file);
}

uint64_t find_place(const Placement& where, uint64_t length) {
  std::lock_guard guard(list_lock);
  if (where.low32) return mappings.find_free(length, where.alignment, kLow32Start, kLow32End);
  if (where.gap != 0) {
    const uint64_t place = mappings.find_free(length + where.gap, where.alignment);
    if (place != 0) return place;
  }
  return mappings.find_free(length, where.alignment);
}

}  // namespace

int64_t place(const Placement& where, uint64_t length, MapCall map) {
  if (where.hint >= kLowest && where.hint <= top && length <= top - where.hint) {
    bool is_free;
    {
      std::lock_guard guard(list_lock);
      is_free = mappings.is_free(where.hint, where.hint + length);
    }
    if (is_free) {
      int64_t result = map(where.hint);
      if (result != -EEXIST) return result;
    }
  }
  for (int attempt = 0; attempt < 4; ++attempt) {
    uint64_t address = find_place(where, length);
    if (address == 0) return -ENOMEM;
    int64_t result = map(address);
    if (result != -EEXIST) return result;
    if (attempt == 0) {
      learn_foreign_ranges();
    } else {
      // Taken by something that the host does not show.
      std::lock_guard guard(list_lock);
      Range foreign;
      foreign.kind = RangeKind::kForeign;
      if (mappings.is_free(address, address + length)) mappings.assign(address, address + length, foreign);
    }
  }
  return -ENOMEM;
}

Few<Piece> holes_in(uint64_t start, uint64_t end) {
  Few<Piece> holes;
  std::lock_guard guard(list_lock);
  uint64_t at = start;
  mappings.visit(start, end, [&](uint64_t from, uint64_t to, const Range& range) {
    if (range.kind != RangeKind::kGuest) return;
    if (from > at) holes.push_back({at, from});
    at = to;
  });
  if (at < end) holes.push_back({at, end});
  return holes;
}

bool claim(uint64_t start, uint64_t end) {
  if (runtime::overlaps_worker_memory(start, end)) {
    runtime::vacate_images(start, end);
    if (runtime::overlaps_worker_memory(start, end)) return false;
  }
  auto holes = holes_in(start, end);
  for (size_t i = 0; i < holes.size(); ++i) {
    auto [from, to] = holes[i];
    if (map_if_free(from, to - from, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) ==
        static_cast<int64_t>(from)) {
      continue;
    }
    while (i-- > 0) host_munmap(holes[i].from, holes[i].to);
    return false;
  }
  return true;
}

namespace {

// Bits of the host's user addresses as far as the guest can use them: Linux has 39, 42, 47 and 48. The kernel does
// not tell; where it maps what is asked for tells.
unsigned host_address_bits() {
  constexpr unsigned kSizes[] = {47, 42};
  for (unsigned bits : kSizes) {
    const uint64_t probe = uint64_t{3} << (bits - 2);
    if (map_if_free(probe, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) ==
        static_cast<int64_t>(probe)) {
      host_munmap(probe, probe + page);
      return bits;
    }
  }
  return 39;
}

}  // namespace

uint64_t page_size() { return page; }
uint64_t guest_top() { return top; }

uint64_t random_pages(uint64_t limit) {
  static const bool disabled = (personality(0xffffffff) & ADDR_NO_RANDOMIZE) != 0;
  uint64_t value = 0;
  if (disabled || getrandom(&value, sizeof value, GRND_NONBLOCK) != sizeof value) return 0;
  return value % (limit / page) * page;
}

void find_bounds() {
  page = runtime::host_page_size();
  top = std::min(kGuestAddressEnd, (uint64_t{1} << host_address_bits()) - page) & ~(page - 1);
  // As on x86: mappings below the stack with a random gap.
  uint64_t high = top - (top >> 6) - random_pages(top >> 8);
  mappings.set_bounds(kLowest, high);
}

}  // namespace phybin::process
