// Flags and structures that x86_64 and ARM64 Linux lay out differently. Pure functions; no guest memory is touched.
//
// Most of the two ABIs is the same (both take <asm-generic>); what is here is all that programs meet and that
// differs.
#pragma once

#include <cstddef>
#include <cstdint>

struct stat;

namespace phybin::syscalls {

// Flags of open and fcntl(F_GETFL, F_SETFL): O_DIRECT, O_LARGEFILE, O_DIRECTORY and O_NOFOLLOW are permuted.
uint64_t open_flags_to_host(uint64_t guest);
uint64_t open_flags_to_guest(uint64_t host);

// struct stat of x86_64.
struct GuestStat {
  uint64_t st_dev;
  uint64_t st_ino;
  uint64_t st_nlink;
  uint32_t st_mode;
  uint32_t st_uid;
  uint32_t st_gid;
  uint32_t pad0;
  uint64_t st_rdev;
  int64_t st_size;
  int64_t st_blksize;
  int64_t st_blocks;
  uint64_t st_atime_sec, st_atime_nsec;
  uint64_t st_mtime_sec, st_mtime_nsec;
  uint64_t st_ctime_sec, st_ctime_nsec;
  int64_t unused[3];
};
static_assert(sizeof(GuestStat) == 144);
GuestStat to_guest_stat(const struct stat& host);

// epoll_event is packed on x86_64 only.
struct __attribute__((packed)) GuestEpollEvent {
  uint32_t events;
  uint64_t data;
};
static_assert(sizeof(GuestEpollEvent) == 12);

// Rewrites records of getdents64 in `buffer` as those of getdents, which are never longer. Returns the new length.
size_t dirents_to_old(uint8_t* buffer, size_t length);

// struct semid64_ds.
struct GuestSemaphores {
  uint8_t permissions[48];
  uint64_t otime, unused1, ctime, unused2, nsems, unused3, unused4;
};
struct HostSemaphores {
  uint8_t permissions[48];
  uint64_t otime, ctime, nsems, unused3, unused4;
};
GuestSemaphores to_guest_semaphores(const HostSemaphores& host);
HostSemaphores to_host_semaphores(const GuestSemaphores& guest);

}  // namespace phybin::syscalls
