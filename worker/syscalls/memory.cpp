// System calls that map memory; process/address_space.h does the work.
#include "worker/process/address_space.h"
#include "worker/syscalls/handlers.h"

namespace phybin::syscalls {

#define HANDLER(name) int64_t sys_##name([[maybe_unused]] GuestState& state, [[maybe_unused]] const uint64_t* a)

HANDLER(mmap) { return process::map_memory(a[0], a[1], as_int(a[2]), as_int(a[3]), as_int(a[4]), a[5]); }
HANDLER(munmap) { return process::unmap_memory(a[0], a[1]); }
HANDLER(mprotect) { return process::protect_memory(a[0], a[1], as_int(a[2])); }
HANDLER(mremap) { return process::remap_memory(a[0], a[1], a[2], as_int(a[3]), a[4]); }
HANDLER(madvise) { return process::advise_memory(a[0], a[1], as_int(a[2])); }
HANDLER(brk) { return process::set_break(a[0]); }
HANDLER(shmat) { return process::attach_shared_memory(as_int(a[0]), a[1], as_int(a[2])); }
HANDLER(shmdt) { return process::detach_shared_memory(a[0]); }

// The worker's memory is not there for the guest, which may look for free addresses so.
HANDLER(mincore) {
  const uint64_t page = process::page_size();
  if ((a[0] & (page - 1)) != 0) return -EINVAL;
  if (a[0] > process::guest_top() || a[1] > process::guest_top() - a[0]) return -ENOMEM;
  const uint64_t pages = (a[1] + page - 1) / page, end = a[0] + pages * page;
  uint64_t at = a[0];
  process::visit_mappings(a[0], end, [&](uint64_t from, uint64_t to, const process::Range&) {
    if (from == at) at = to;
  });
  if (at < end) return -ENOMEM;
  runtime::before_kernel_writes(a[2], pages);
  return raw_syscall(SYS_mincore, a[0], a[1], a[2]);
}

// Without protection keys (pkey_alloc is ENOSYS) the only key is none.
HANDLER(pkey_mprotect) {
  if (as_int(a[3]) != -1) return -EINVAL;
  return process::protect_memory(a[0], a[1], as_int(a[2]));
}

}  // namespace phybin::syscalls
