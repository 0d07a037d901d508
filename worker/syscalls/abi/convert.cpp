// Conversions between the ABIs. See convert.h.
#include "worker/syscalls/abi/convert.h"

#include <sys/stat.h>

#include <cstring>

namespace phybin::syscalls {
namespace {

// Bits 14 to 17. x86_64: DIRECT, LARGEFILE, DIRECTORY, NOFOLLOW. ARM64: DIRECTORY, NOFOLLOW, DIRECT, LARGEFILE.
// So either way the lower pair and the upper pair change places.
constexpr uint64_t kLowerPair = 3u << 14, kUpperPair = 3u << 16;

uint64_t exchange_pairs(uint64_t flags) {
  return (flags & ~(kLowerPair | kUpperPair)) | (flags & kLowerPair) << 2 | (flags & kUpperPair) >> 2;
}

}  // namespace

uint64_t open_flags_to_host(uint64_t guest) { return exchange_pairs(guest); }
uint64_t open_flags_to_guest(uint64_t host) { return exchange_pairs(host); }

GuestStat to_guest_stat(const struct stat& host) {
  GuestStat guest{};
  guest.st_dev = host.st_dev;
  guest.st_ino = host.st_ino;
  guest.st_nlink = host.st_nlink;
  guest.st_mode = host.st_mode;
  guest.st_uid = host.st_uid;
  guest.st_gid = host.st_gid;
  guest.st_rdev = host.st_rdev;
  guest.st_size = host.st_size;
  guest.st_blksize = host.st_blksize;
  guest.st_blocks = host.st_blocks;
  guest.st_atime_sec = static_cast<uint64_t>(host.st_atim.tv_sec);
  guest.st_atime_nsec = static_cast<uint64_t>(host.st_atim.tv_nsec);
  guest.st_mtime_sec = static_cast<uint64_t>(host.st_mtim.tv_sec);
  guest.st_mtime_nsec = static_cast<uint64_t>(host.st_mtim.tv_nsec);
  guest.st_ctime_sec = static_cast<uint64_t>(host.st_ctim.tv_sec);
  guest.st_ctime_nsec = static_cast<uint64_t>(host.st_ctim.tv_nsec);
  return guest;
}

size_t dirents_to_old(uint8_t* buffer, size_t length) {
  // New: inode 8, offset 8, length 2, type 1, name. Old: inode 8, offset 8, length 2, name, and the type in the last
  // byte of the record. The name moves down by one byte, so every record keeps its length.
  constexpr size_t kLength = 16, kNewName = 19, kOldName = 18;
  for (size_t at = 0; at + kNewName < length;) {
    uint16_t record;
    memcpy(&record, buffer + at + kLength, sizeof record);
    if (record <= kNewName || record > length - at) break;
    uint8_t type = buffer[at + kOldName];
    memmove(buffer + at + kOldName, buffer + at + kNewName, record - kNewName);
    buffer[at + record - 1] = type;
    at += record;
  }
  return length;
}

GuestSemaphores to_guest_semaphores(const HostSemaphores& host) {
  GuestSemaphores guest{};
  memcpy(guest.permissions, host.permissions, sizeof guest.permissions);
  guest.otime = host.otime;
  guest.ctime = host.ctime;
  guest.nsems = host.nsems;
  return guest;
}

HostSemaphores to_host_semaphores(const GuestSemaphores& guest) {
  HostSemaphores host{};
  memcpy(host.permissions, guest.permissions, sizeof host.permissions);
  host.otime = guest.otime;
  host.ctime = guest.ctime;
  host.nsems = guest.nsems;
  return host;
}

}  // namespace phybin::syscalls
