// Files and folders: the calls that ARM64 does not have, and those whose flags or structures differ.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "worker/process/descriptors.h"
#include "worker/process/proc_views.h"
#include "worker/syscalls/abi/convert.h"
#include "worker/syscalls/handlers.h"

namespace phybin::syscalls {
namespace {

using runtime::interruptible_syscall;

int64_t open_at(uint64_t folder, uint64_t name, uint64_t flags, uint64_t mode) {
  // The kernel does not follow a link for O_NOFOLLOW, nor to create what must not exist.
  flags = open_flags_to_host(static_cast<uint32_t>(flags));
  Path path(name, !(flags & O_NOFOLLOW));
  if (!path.view().empty() && !(flags & O_PATH)) return process::open_view(path.view(), as_int(flags));
  return interruptible_syscall(SYS_openat, folder, path.host(), flags, mode);
}

int64_t stat_at(uint64_t folder, uint64_t name, uint64_t to, int flags) {
  Path path(name, !(flags & AT_SYMLINK_NOFOLLOW));
  struct stat host;
  int64_t result = raw_syscall(SYS_newfstatat, folder, path.host(), word(&host), extend(flags));
  if (failed(result)) return result;
  return runtime::write_guest(to, to_guest_stat(host)) ? 0 : -EFAULT;
}

int64_t read_link(uint64_t folder, uint64_t name, uint64_t buffer, uint64_t size) {
  if (as_int(size) <= 0) return -EINVAL;
  char text[32];
  int64_t length = runtime::guest_string_length(name, sizeof text);
  if (length > 0 && length < static_cast<int64_t>(sizeof text) &&
      runtime::copy_from_guest(text, name, static_cast<size_t>(length) + 1) && process::view_of(text) == "exe") {
    const std::string& target = process::program().executable;
    size_t count = std::min<size_t>(target.size(), static_cast<uint32_t>(size));
    return runtime::copy_to_guest(buffer, target.data(), count) ? static_cast<int64_t>(count) : -EFAULT;
  }
  Path path(name, false);
  runtime::before_kernel_writes(buffer, static_cast<uint32_t>(size));
  return raw_syscall(SYS_readlinkat, folder, path.host(), buffer, size);
}

int64_t duplicate(uint64_t old_fd, uint64_t new_fd, int flags) {
  if (process::is_own_descriptor(as_int(old_fd))) return -EBADF;
  process::make_way_for(as_int(new_fd));
  return interruptible_syscall(SYS_dup3, old_fd, new_fd, extend(flags));
}

int64_t make_pipe(uint64_t ends, uint64_t flags) {
  int fds[2];
  int64_t result = raw_syscall(SYS_pipe2, word(fds), flags);
  if (failed(result)) return result;
  if (runtime::write_guest(ends, fds)) return 0;
  close(fds[0]);
  close(fds[1]);
  return -EFAULT;
}

int64_t set_times(uint64_t folder, uint64_t name, const timespec* times) {
  Path path(name);
  return interruptible_syscall(SYS_utimensat, folder, path.host(), word(times), 0);
}

// Times as pairs of seconds and microseconds; an address of 0 means now.
int64_t set_times_from_microseconds(uint64_t folder, uint64_t name, uint64_t address) {
  if (address == 0) return set_times(folder, name, nullptr);
  int64_t guest[4];
  if (!runtime::read_guest(address, guest)) return -EFAULT;
  timespec times[2];
  for (unsigned i = 0; i < 2; ++i) {
    if (guest[2 * i + 1] < 0 || guest[2 * i + 1] >= 1000000) return -EINVAL;
    times[i] = {guest[2 * i], guest[2 * i + 1] * 1000};
  }
  return set_times(folder, name, times);
}

// Whether the folder that is open as `fd` is one of descriptors in /proc, perhaps of this process.
bool lists_own_descriptors(int fd) {
  constexpr int64_t kProcMagic = 0x9fa0;
  struct statfs system;
  if (fstatfs(fd, &system) != 0 || system.f_type != kProcMagic) return false;
  char link[64], target[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, target, sizeof target);
  return length > 3 && memcmp(target + length - 3, "/fd", 3) == 0;
}

// Removes the records of getdents64 that name the worker's own descriptors; returns the new length.
size_t hide_own_descriptors(uint8_t* buffer, size_t length) {
  constexpr size_t kLength = 16, kName = 19;
  size_t kept = 0;
  for (size_t at = 0; at + kName < length;) {
    uint16_t record;
    memcpy(&record, buffer + at + kLength, sizeof record);
    if (record <= kName || record > length - at) break;
    const char* name = reinterpret_cast<const char*>(buffer + at + kName);
    const bool number = name[0] >= '0' && name[0] <= '9';
    if (!number || !process::is_own_descriptor(atoi(name))) {
      memmove(buffer + kept, buffer + at, record);
      kept += record;
    }
    at += record;
  }
  return kept;
}

}  // namespace

#define HANDLER(name) int64_t sys_##name([[maybe_unused]] GuestState& state, [[maybe_unused]] const uint64_t* a)

HANDLER(open) { return open_at(kHere, a[0], a[1], a[2]); }
HANDLER(openat) { return open_at(a[0], a[1], a[2], a[3]); }
HANDLER(creat) {
  Path path(a[0]);
  return interruptible_syscall(SYS_openat, kHere, path.host(), O_CREAT | O_WRONLY | O_TRUNC, a[1]);
}

HANDLER(openat2) {
  uint64_t how[3];  // flags, mode, resolve
  if (a[3] < sizeof how) return -EINVAL;
  if (!runtime::read_guest(a[2], how)) return -EFAULT;
  how[0] = open_flags_to_host(how[0]);
  Path path(a[1], !(how[0] & O_NOFOLLOW));
  if (!path.view().empty() && !(how[0] & O_PATH)) return process::open_view(path.view(), as_int(how[0]));
  // A longer structure is only valid here if the kernel knows it, or if the rest is zero.
  for (uint64_t i = sizeof how; i < std::min<uint64_t>(a[3], 4096); ++i) {
    uint8_t byte;
    if (!runtime::read_guest(a[2] + i, byte)) return -EFAULT;
    if (byte) return -E2BIG;
  }
  return interruptible_syscall(SYS_openat2, a[0], path.host(), word(how), sizeof how);
}

HANDLER(open_by_handle_at) {
  return interruptible_syscall(SYS_open_by_handle_at, a[0], a[1], open_flags_to_host(a[2]));
}

HANDLER(close) {
  if (process::is_own_descriptor(as_int(a[0]))) return -EBADF;
  return interruptible_syscall(SYS_close, a[0]);
}

HANDLER(close_range) {
  // Around the worker's own descriptors.
  auto first = static_cast<uint32_t>(a[0]), last = static_cast<uint32_t>(a[1]);
  if (first > last) return -EINVAL;
  std::vector<uint32_t> own;
  for (int i = 0; i < static_cast<int>(process::OwnDescriptor::kCount); ++i) {
    int fd = process::own_descriptor(static_cast<process::OwnDescriptor>(i));
    if (fd >= 0 && static_cast<uint32_t>(fd) >= first && static_cast<uint32_t>(fd) <= last) {
      own.push_back(static_cast<uint32_t>(fd));
    }
  }
  std::sort(own.begin(), own.end());
  int64_t result = 0;
  uint64_t from = first;
  for (uint32_t fd : own) {
    if (from < fd) result = raw_syscall(SYS_close_range, from, fd - 1, a[2]);
    if (failed(result)) return result;
    from = uint64_t{fd} + 1;
  }
  return from <= last ? raw_syscall(SYS_close_range, from, last, a[2]) : 0;
}

HANDLER(dup) {
  if (process::is_own_descriptor(as_int(a[0]))) return -EBADF;
  return raw_syscall(SYS_dup, a[0]);
}
HANDLER(dup2) {
  // dup3 refuses equal descriptors; dup2 returns them if they are open.
  if (as_int(a[0]) == as_int(a[1])) {
    if (process::is_own_descriptor(as_int(a[0]))) return -EBADF;
    int64_t result = raw_syscall(SYS_fcntl, a[0], F_GETFD);
    return failed(result) ? result : as_int(a[1]);
  }
  return duplicate(a[0], a[1], 0);
}
HANDLER(dup3) { return duplicate(a[0], a[1], as_int(a[2])); }

HANDLER(fcntl) {
  if (process::is_own_descriptor(as_int(a[0]))) return -EBADF;
  switch (as_int(a[1])) {
    case F_GETFL: {
      int64_t result = raw_syscall(SYS_fcntl, a[0], a[1]);
      return failed(result) ? result : static_cast<int64_t>(open_flags_to_guest(static_cast<uint64_t>(result)));
    }
    case F_SETFL:
      return raw_syscall(SYS_fcntl, a[0], a[1], open_flags_to_host(static_cast<uint32_t>(a[2])));
    case F_GETLK:
    case F_OFD_GETLK:
    case F_GETOWN_EX:
      runtime::before_kernel_writes(a[2], 64);
      [[fallthrough]];
    default:
      return interruptible_syscall(SYS_fcntl, a[0], a[1], a[2]);
  }
}

HANDLER(pipe) { return make_pipe(a[0], 0); }
HANDLER(pipe2) { return make_pipe(a[0], open_flags_to_host(static_cast<uint32_t>(a[1]))); }

HANDLER(stat) { return stat_at(kHere, a[0], a[1], 0); }
HANDLER(lstat) { return stat_at(kHere, a[0], a[1], AT_SYMLINK_NOFOLLOW); }
HANDLER(newfstatat) { return stat_at(a[0], a[1], a[2], as_int(a[3])); }
HANDLER(fstat) {
  struct stat host;
  int64_t result = raw_syscall(SYS_fstat, a[0], word(&host));
  if (failed(result)) return result;
  return runtime::write_guest(a[1], to_guest_stat(host)) ? 0 : -EFAULT;
}

HANDLER(readlink) { return read_link(kHere, a[0], a[1], a[2]); }
HANDLER(readlinkat) { return read_link(a[0], a[1], a[2], a[3]); }

HANDLER(access) {
  Path path(a[0]);
  return raw_syscall(SYS_faccessat, kHere, path.host(), a[1]);
}
HANDLER(mkdir) {
  Path path(a[0]);
  return interruptible_syscall(SYS_mkdirat, kHere, path.host(), a[1]);
}
HANDLER(rmdir) {
  Path path(a[0]);
  return interruptible_syscall(SYS_unlinkat, kHere, path.host(), AT_REMOVEDIR);
}
HANDLER(unlink) {
  Path path(a[0], false);
  return interruptible_syscall(SYS_unlinkat, kHere, path.host(), 0);
}
HANDLER(rename) {
  Path from(a[0], false), to(a[1], false);
  return interruptible_syscall(SYS_renameat2, kHere, from.host(), kHere, to.host(), 0);
}
HANDLER(link) {
  Path from(a[0], false), to(a[1], false);
  return interruptible_syscall(SYS_linkat, kHere, from.host(), kHere, to.host(), 0);
}
HANDLER(symlink) {
  Path to(a[1], false);
  return interruptible_syscall(SYS_symlinkat, a[0], kHere, to.host());
}
HANDLER(chmod) {
  Path path(a[0]);
  return interruptible_syscall(SYS_fchmodat, kHere, path.host(), a[1]);
}
HANDLER(chown) {
  Path path(a[0]);
  return interruptible_syscall(SYS_fchownat, kHere, path.host(), a[1], a[2], 0);
}
HANDLER(lchown) {
  Path path(a[0], false);
  return interruptible_syscall(SYS_fchownat, kHere, path.host(), a[1], a[2], AT_SYMLINK_NOFOLLOW);
}
HANDLER(mknod) {
  Path path(a[0], false);
  return interruptible_syscall(SYS_mknodat, kHere, path.host(), a[1], a[2]);
}

HANDLER(utime) {
  if (a[1] == 0) return set_times(kHere, a[0], nullptr);
  int64_t guest[2];
  if (!runtime::read_guest(a[1], guest)) return -EFAULT;
  const timespec times[2] = {{guest[0], 0}, {guest[1], 0}};
  return set_times(kHere, a[0], times);
}
HANDLER(utimes) { return set_times_from_microseconds(kHere, a[0], a[1]); }
HANDLER(futimesat) { return set_times_from_microseconds(a[0], a[1], a[2]); }

HANDLER(getdents64) {
  runtime::before_kernel_writes(a[1], static_cast<uint32_t>(a[2]));
  int64_t result = interruptible_syscall(SYS_getdents64, a[0], a[1], a[2]);
  if (result <= 0 || !lists_own_descriptors(as_int(a[0]))) return result;
  std::vector<uint8_t> buffer(static_cast<size_t>(result));
  if (!runtime::copy_from_guest(buffer.data(), a[1], buffer.size())) return -EFAULT;
  size_t length = hide_own_descriptors(buffer.data(), buffer.size());
  // Nothing left is not the end.
  if (length == 0) return sys_getdents64(state, a);
  return runtime::copy_to_guest(a[1], buffer.data(), length) ? static_cast<int64_t>(length) : -EFAULT;
}

HANDLER(getdents) {
  const size_t size = static_cast<uint32_t>(a[2]);
  std::vector<uint8_t> buffer(std::min<size_t>(size, 1 << 16));
  int64_t result = interruptible_syscall(SYS_getdents64, a[0], word(buffer.data()), buffer.size());
  if (result <= 0) return result;
  auto length = static_cast<size_t>(result);
  if (lists_own_descriptors(as_int(a[0]))) length = hide_own_descriptors(buffer.data(), length);
  if (length == 0) return sys_getdents(state, a);
  dirents_to_old(buffer.data(), length);
  return runtime::copy_to_guest(a[1], buffer.data(), length) ? static_cast<int64_t>(length) : -EFAULT;
}

HANDLER(fanotify_init) {
  return raw_syscall(SYS_fanotify_init, a[0], open_flags_to_host(static_cast<uint32_t>(a[1])));
}

}  // namespace phybin::syscalls
