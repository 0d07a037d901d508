// System V shared memory of the guest. The segment's length is asked for first, so that a place can be found for it.
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>

#include <cerrno>
#include <map>

#include "worker/process/address_space.h"
#include "worker/process/address_space_internal.h"
#include "worker/process/raw_syscall.h"

namespace phybin::process {
namespace {

constexpr uint64_t kSystemVDevice = UINT64_MAX;  // for Range::device; no file system has this number

std::map<uint64_t, uint64_t> shared_segments;  // address -> length; under list_lock

uint64_t round_to_page(uint64_t value) { return (value + page_size() - 1) & ~(page_size() - 1); }

}  // namespace

int64_t attach_shared_memory(int id, uint64_t address, int flags) {
  struct shmid_ds status;
  int64_t result = raw_syscall(SYS_shmctl, static_cast<uint64_t>(id), IPC_STAT, word(&status));
  if (failed(result)) return result;
  uint64_t length = round_to_page(status.shm_segsz);
  begin_sharing();
  if (address & (page_size() - 1)) {
    if (!(flags & SHM_RND)) return -EINVAL;
    address &= ~(page_size() - 1);
  }
  Range range;
  range.shared = true;
  range.inode = static_cast<uint64_t>(id);
  range.device = kSystemVDevice;
  range.protection = PROT_READ | (flags & SHM_RDONLY ? 0 : PROT_WRITE) | (flags & SHM_EXEC ? PROT_EXEC : 0);
  const auto host_flags = static_cast<uint64_t>(flags & ~(SHM_EXEC | SHM_REMAP | SHM_RND));
  auto attach = [&](uint64_t at, uint64_t extra) {
    return raw_syscall(SYS_shmat, static_cast<uint64_t>(id), at, host_flags | extra);
  };

  std::lock_guard changing(change_lock);
  SavedRanges saved;
  if (address != 0) {
    if (address > guest_top() || length > guest_top() - address) return -EINVAL;
    bool is_free;
    {
      std::lock_guard guard(list_lock);
      is_free = mappings.is_free(address, address + length);
    }
    if (!is_free && !(flags & SHM_REMAP)) return -EINVAL;
    if (!is_free) {
      saved = save_ranges(address, address + length);
      if (!claim(address, address + length)) return -EINVAL;
      retire_range(address, address + length);
      result = attach(address, SHM_REMAP);
      if (failed(result)) restore_ranges(saved);
    } else {
      result = attach(address, 0);
    }
  } else {
    Placement where;
    where.alignment = page_size();
    result = place(where, length, [&](uint64_t at) {
      int64_t attached = attach(at, 0);
      return attached == -EINVAL ? -EEXIST : attached;
    });
  }
  if (failed(result)) return result;
  note_new(static_cast<uint64_t>(result), static_cast<uint64_t>(result) + length, range);
  std::lock_guard guard(list_lock);
  shared_segments[static_cast<uint64_t>(result)] = length;
  return result;
}

int64_t detach_shared_memory(uint64_t address) {
  std::lock_guard changing(change_lock);
  auto segment = shared_segments.find(address);
  if (segment == shared_segments.end()) return -EINVAL;
  uint64_t length = segment->second;
  retire_range(address, address + length);
  int64_t result = raw_syscall(SYS_shmdt, address);
  std::lock_guard guard(list_lock);
  shared_segments.erase(segment);
  return result;
}

}  // namespace phybin::process
