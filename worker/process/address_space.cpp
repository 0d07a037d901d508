// The guest's part of the address space: what is mapped, and the system calls that change it. See address_space.h,
// and placement.cpp for where mappings go.
#include "worker/process/address_space.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "worker/process/address_space_internal.h"
#include "worker/process/core/elf_file.h"
#include "worker/process/modules.h"
#include "worker/process/raw_syscall.h"
#include "worker/runtime/images.h"
#include "worker/runtime/worker_memory.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

namespace phybin::process {
namespace {

constexpr int kMap32Bit = 0x40;  // x86 only
constexpr int kProtectionBits = PROT_READ | PROT_WRITE | PROT_EXEC;

}  // namespace

runtime::Lock change_lock;
runtime::Lock list_lock;
MappingList mappings;

namespace {

bool model_follows_sharing = false;

uint64_t round_up(uint64_t value) { return (value + page - 1) & ~(page - 1); }

}  // namespace

void note(uint64_t start, uint64_t end, const Range& range) {
  std::lock_guard guard(list_lock);
  mappings.assign(start, end, range);
}

void retire_range(uint64_t start, uint64_t end) {
  {
    std::lock_guard guard(list_lock);
    mappings.erase(start, end);
  }
  runtime::invalidate_code(start, end - start);
}

SavedRanges save_ranges(uint64_t start, uint64_t end) {
  SavedRanges saved;
  std::lock_guard guard(list_lock);
  mappings.visit(start, end, [&](uint64_t from, uint64_t to, const Range& range) {
    Range part = range;
    // Only the first one may begin before.
    uint64_t range_start = from;
    if (from == start) mappings.find(from, &range_start);
    part.offset += from - range_start;
    part.end = to;
    saved.push_back({from, part});
  });
  return saved;
}

void restore_ranges(const SavedRanges& saved) {
  for (const auto& [start, range] : saved) note(start, range.end, range);
}

namespace {

// The device of shared memory without a file; no file system has this number.
constexpr uint64_t kAnonymousDevice = UINT64_MAX - 1;

// Calls visit(start, end) for other places where what `range` (at `start`) shares is mapped, with `wanted`
// protection.
template <typename Visit>
void visit_aliases(uint64_t start, uint64_t end, const Range& range, int wanted, Visit visit) {
  mappings.visit(0, top, [&](uint64_t from, uint64_t to, const Range& other) {
    if (other.kind != RangeKind::kGuest || !other.shared || !(other.protection & wanted)) return;
    if (other.device != range.device || other.inode != range.inode) return;
    // Both in offsets of the file.
    uint64_t low = std::max(range.offset, other.offset);
    uint64_t high = std::min(range.offset + (end - start), other.offset + (to - from));
    if (low >= high) return;
    uint64_t at = from + (low - other.offset);
    if (at != start) visit(at, at + (high - low));
  });
}

// A shared range became writable: code that was translated from another mapping of it is watched from now on only.
void retire_aliases(uint64_t start, uint64_t end, const Range& range) {
  if (!range.shared || !(range.protection & PROT_WRITE)) return;
  std::vector<std::pair<uint64_t, uint64_t>> places;
  {
    std::lock_guard guard(list_lock);
    visit_aliases(start, end, range, PROT_EXEC, [&](uint64_t from, uint64_t to) { places.emplace_back(from, to); });
  }
  for (auto [from, to] : places) runtime::invalidate_code(from, to - from);
}

// Whether a shared mapping of `fd` counts as sharing: files that only root can write do not.
bool counts_as_shared(int fd, bool anonymous, Range& range) {
  if (anonymous) {
    static uint64_t count = 0;
    range.device = kAnonymousDevice;
    range.inode = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
    range.offset = 0;
    return true;
  }
  struct stat status;
  if (fstat(fd, &status) != 0) return true;
  range.device = status.st_dev;
  range.inode = status.st_ino;
  return !(S_ISREG(status.st_mode) && status.st_uid == 0 && (status.st_mode & 022) == 0);
}

}  // namespace

void note_new(uint64_t start, uint64_t end, const Range& range) {
  note(start, end, range);
  retire_aliases(start, end, range);
}

void unmap_guest_pieces(uint64_t start, uint64_t end) {
  Few<Piece> pieces;
  {
    std::lock_guard guard(list_lock);
    mappings.visit(start, end, [&](uint64_t from, uint64_t to, const Range& range) {
      if (range.kind == RangeKind::kGuest) pieces.push_back({from, to});
    });
  }
  for (auto [from, to] : pieces) {
    retire_range(from, to);
    host_munmap(from, to);
  }
}

namespace {

uint64_t huge_page_size(int flags) {
  constexpr int kSizeShift = 26;
  unsigned bits = static_cast<unsigned>(flags) >> kSizeShift & 63;
  return uint64_t{1} << (bits ? bits : 21);
}

}  // namespace

void initialise_address_space(const config::Options& options) {
  find_bounds();
  model_follows_sharing = options.memory_model == config::MemoryModelChoice::kAuto;
}

void begin_sharing() {
  if (model_follows_sharing) runtime::switch_memory_model_to_tso();
}

int64_t map_memory(uint64_t address, uint64_t length, int protection, int flags, int fd, uint64_t offset) {
  if (length == 0 || offset & (page - 1)) return -EINVAL;
  if (length > top) return -ENOMEM;
  const bool huge = flags & MAP_HUGETLB;
  const uint64_t alignment = huge ? std::max(huge_page_size(flags), page) : page;
  length = (length + alignment - 1) & ~(alignment - 1);
  protection &= kProtectionBits;
  Placement where;
  where.alignment = alignment;
  where.low32 = flags & kMap32Bit;
  const bool fixed = flags & (MAP_FIXED | MAP_FIXED_NOREPLACE);
  const bool replace = (flags & MAP_FIXED) && !(flags & MAP_FIXED_NOREPLACE);
  // A stack that grows is mapped as large as it was asked for.
  flags &= ~(kMap32Bit | MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_GROWSDOWN);

  Range range;
  range.protection = protection;
  int type = flags & MAP_TYPE;
  if (type == MAP_SHARED || type == MAP_SHARED_VALIDATE) {
    range.shared = true;
    range.offset = offset;
    if (counts_as_shared(fd, flags & MAP_ANONYMOUS, range)) begin_sharing();
  }

  std::lock_guard changing(change_lock);
  const ModuleFile module = module_of_mapping(protection, flags, fd);
  if (module.number != 0) {
    range.module = module.number;
    range.offset = offset;
  }
  const auto note_result = [&](int64_t result) {
    if (failed(result)) return;
    const auto start = static_cast<uint64_t>(result);
    note_new(start, start + length, range);
    if (module.number != 0) module_mapped(module, start, length, offset);
  };
  if (!fixed) {
    if (address == 0) where.gap = wanted_gap(length, protection, flags, fd);
    where.hint = address & ~(alignment - 1);
    int64_t result =
        place(where, length, [&](uint64_t at) { return map_if_free(at, length, protection, flags, fd, offset); });
    note_result(result);
    return result;
  }

  if (address & (page - 1)) return -EINVAL;
  if (address > top || length > top - address) return -ENOMEM;
  if (!replace) {
    {
      std::lock_guard guard(list_lock);
      bool taken = false;
      mappings.visit(address, address + length,
                     [&](uint64_t, uint64_t, const Range& other) { taken |= other.kind == RangeKind::kGuest; });
      if (taken) return -EEXIST;
    }
    if (runtime::overlaps_worker_memory(address, address + length)) runtime::vacate_images(address, address + length);
    int64_t result = map_if_free(address, length, protection, flags, fd, offset);
    note_result(result);
    return result;
  }
  const auto saved = save_ranges(address, address + length);
  const auto holes = holes_in(address, address + length);
  // Where all is the guest's nobody else can be.
  if (!holes.empty() && !claim(address, address + length)) return -ENOMEM;
  retire_range(address, address + length);
  int64_t result = host_mmap(address, length, protection, flags | MAP_FIXED, fd, offset);
  if (failed(result)) {
    for (auto [from, to] : holes) host_munmap(from, to);
    restore_ranges(saved);
    return result;
  }
  note_result(result);
  return result;
}

int64_t unmap_memory(uint64_t address, uint64_t length) {
  if (address & (page - 1) || length == 0 || address > top || length > top - address) return -EINVAL;
  std::lock_guard changing(change_lock);
  unmap_guest_pieces(address, address + round_up(length));
  return 0;
}

int64_t protect_memory(uint64_t address, uint64_t length, int protection) {
  if (address & (page - 1)) return -EINVAL;
  if (protection & ~(kProtectionBits | PROT_GROWSDOWN | PROT_GROWSUP | 8)) return -EINVAL;
  if (length == 0) return 0;
  if (address > top || length > top - address) return -ENOMEM;
  uint64_t end = address + round_up(length);
  int guest = protection & kProtectionBits;

  std::lock_guard changing(change_lock);
  // As the kernel does, what stands before a hole is changed.
  uint64_t stop = address;
  SavedRanges saved;
  for (const SavedRange& piece : save_ranges(address, end)) {
    if (piece.start != stop || piece.range.kind != RangeKind::kGuest) break;
    saved.push_back(piece);
    stop = piece.range.end;
  }
  int64_t result = stop == end ? 0 : -ENOMEM;
  if (stop == address) return result;
  runtime::invalidate_code(address, stop - address);
  {
    std::lock_guard guard(list_lock);
    for (auto [start, range] : saved) {
      range.protection = guest;
      // What can be written may differ from the file from now on.
      if ((guest & PROT_WRITE) != 0) range.module = 0;
      mappings.assign(start, range.end, range);
    }
  }
  int64_t status =
      raw_syscall(SYS_mprotect, address, stop - address, static_cast<uint64_t>(host_protection(protection)));
  if (failed(status)) {
    restore_ranges(saved);
    result = status;
  }
  // Another thread may have translated from here meanwhile and write-protected a page, which mprotect undid.
  runtime::invalidate_code(address, stop - address);
  for (auto [start, range] : saved) {
    range.protection = guest;
    retire_aliases(start, range.end, range);
  }
  return result;
}

int64_t remap_memory(uint64_t address, uint64_t old_length, uint64_t new_length, int flags, uint64_t new_address) {
  if (address & (page - 1) || new_length == 0 || flags & ~(MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP)) {
    return -EINVAL;
  }
  if (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP) && !(flags & MREMAP_MAYMOVE)) return -EINVAL;
  if (address > top || old_length > top - address || new_length > top) return -EFAULT;
  const uint64_t old_size = round_up(old_length), new_size = round_up(new_length);
  const uint64_t old_end = address + old_size;

  std::lock_guard changing(change_lock);
  Range range;
  {
    std::lock_guard guard(list_lock);
    uint64_t start = 0;
    const Range* found = mappings.find(address, &start);
    if (!found || found->kind != RangeKind::kGuest || !mappings.is_covered(address, std::max(old_end, address + 1))) {
      return -EFAULT;
    }
    range = *found;
    range.offset += address - start;
  }
  auto remap = [&](uint64_t old_bytes, uint64_t bytes, int how, uint64_t to) {
    return raw_syscall(SYS_mremap, address, old_bytes, bytes, static_cast<uint64_t>(how), to);
  };
  if (!(flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) && old_size != 0) {
    if (new_size <= old_size) {
      unmap_guest_pieces(address + new_size, old_end);
      return static_cast<int64_t>(address);
    }
    bool room;
    {
      std::lock_guard guard(list_lock);
      room = new_size <= top - address && mappings.is_free(old_end, address + new_size);
    }
    int64_t result = room ? remap(old_size, new_size, 0, 0) : -ENOMEM;
    if (!failed(result)) {
      note(old_end, address + new_size, [&] {
        Range tail = range;
        tail.offset += old_size;
        return tail;
      }());
      return result;
    }
    if (result != -ENOMEM || !(flags & MREMAP_MAYMOVE)) return result;
  }
  // To another place: an inaccessible mapping holds it, the old pages replace that.
  const bool keeps_old = flags & MREMAP_DONTUNMAP || old_size == 0;
  int64_t target;
  SavedRanges saved;
  if (flags & MREMAP_FIXED) {
    if (new_address & (page - 1) || new_address > top || new_size > top - new_address) return -EINVAL;
    if (new_address < old_end && address < new_address + new_size) return -EINVAL;
    saved = save_ranges(new_address, new_address + new_size);
    if (!claim(new_address, new_address + new_size)) return -ENOMEM;
    retire_range(new_address, new_address + new_size);
    target = static_cast<int64_t>(new_address);
  } else {
    Placement where;
    where.alignment = page;
    target = place(where, new_size, [&](uint64_t at) {
      return map_if_free(at, new_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    });
    if (failed(target)) return target;
  }
  auto moved = save_ranges(address, old_end);
  if (!keeps_old)
    retire_range(address, old_end);
  else
    runtime::invalidate_code(address, old_size);
  const uint64_t to = static_cast<uint64_t>(target);
  int64_t result = remap(old_size, new_size, (flags & ~MREMAP_FIXED) | MREMAP_FIXED, to);
  if (failed(result)) {
    if (!keeps_old) restore_ranges(moved);
    if (saved.empty()) host_munmap(to, to + new_size);
    restore_ranges(saved);
    return result;
  }
  note_new(to, to + new_size, range);
  return result;
}

int64_t advise_memory(uint64_t address, uint64_t length, int advice) {
  if (address & (page - 1)) return -EINVAL;
  if (length == 0) return raw_syscall(SYS_madvise, address, 0, static_cast<uint64_t>(advice));
  if (address > top || length > top - address) return -ENOMEM;
  uint64_t end = address + round_up(length);
  std::lock_guard changing(change_lock);
  // Ranges with holes: the kernel advises what is mapped and then says ENOMEM. The worker's memory is a hole.
  std::vector<std::pair<uint64_t, uint64_t>> pieces;
  bool covered;
  {
    std::lock_guard guard(list_lock);
    covered = mappings.is_covered(address, end);
    mappings.visit(address, end, [&](uint64_t from, uint64_t to, const Range& range) {
      if (range.kind != RangeKind::kGuest) return;
      if (!pieces.empty() && pieces.back().second == from)
        pieces.back().second = to;
      else
        pieces.emplace_back(from, to);
    });
  }
  const bool changes_content = advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE;
  for (auto [from, to] : pieces) {
    if (changes_content) runtime::invalidate_code(from, to - from);
    int64_t result = raw_syscall(SYS_madvise, from, to - from, static_cast<uint64_t>(advice));
    if (failed(result)) return result;
  }
  return covered ? 0 : -ENOMEM;
}

bool find_mapping(uint64_t address, runtime::GuestMapping& out) {
  std::lock_guard guard(list_lock);
  uint64_t start = 0;
  const Range* range = mappings.find(address, &start);
  if (!range || range->kind != RangeKind::kGuest) return false;
  out.start = start;
  out.end = range->end;
  out.protection = range->protection;
  out.shared = range->shared;
  out.device = range->device;
  out.inode = range->inode;
  out.offset = range->offset;
  out.module = range->module;
  return true;
}

size_t find_aliases(uint64_t address, uint64_t* out, size_t limit) {
  std::lock_guard guard(list_lock);
  uint64_t start = 0;
  const Range* found = mappings.find(address, &start);
  if (!found || !found->shared) return 0;
  Range range = *found;
  range.offset += address - start;
  size_t count = 0;
  visit_aliases(address, address + page, range, PROT_WRITE, [&](uint64_t from, uint64_t) {
    if (count < limit) out[count++] = from;
  });
  return count;
}

void visit_mappings(uint64_t start, uint64_t end,
                    const std::function<void(uint64_t, uint64_t, const Range&)>& visit) {
  std::lock_guard guard(list_lock);
  mappings.visit(start, end, [&](uint64_t from, uint64_t to, const Range& range) {
    if (range.kind == RangeKind::kGuest) visit(from, to, range);
  });
}

void lock_address_space() { change_lock.lock(); }
void unlock_address_space() { change_lock.unlock(); }
void lock_mapping_list() { list_lock.lock(); }
void unlock_mapping_list() { list_lock.unlock(); }

}  // namespace phybin::process
