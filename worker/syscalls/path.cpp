// Path arguments. See Path in handlers.h.
#include <cstdio>
#include <cstring>

#include "worker/process/descriptors.h"
#include "worker/process/proc_views.h"
#include "worker/syscalls/handlers.h"

namespace phybin::syscalls {

Path::Path(uint64_t guest, bool follow) : host_(guest) {
  constexpr char kProc[] = "/proc/";
  constexpr size_t kProcLength = sizeof kProc - 1, kLongest = 4096;
  const bool has_root = !process::program().options.rootfs.empty();
  char start[kProcLength];
  int64_t length = runtime::guest_string_length(guest, kProcLength);
  if (length < 1 || !runtime::copy_from_guest(start, guest, static_cast<size_t>(length))) return;
  const bool in_proc = length == kProcLength && memcmp(start, kProc, kProcLength) == 0;
  if (start[0] != '/' || (!in_proc && !has_root)) return;
  length = runtime::guest_string_length(guest, kLongest);
  char path[kLongest];
  // Too long or unreadable: the kernel says so.
  if (length < 0 || length >= static_cast<int64_t>(kLongest)) return;
  if (!runtime::copy_from_guest(path, guest, static_cast<size_t>(length))) return;
  path[length] = '\0';
  if (in_proc) {
    view_ = process::view_of(path);
    if (view_ == "exe") {
      view_.clear();
      int fd = process::own_descriptor(process::OwnDescriptor::kProgram);
      if (follow && fd >= 0) {
        snprintf(buffer_, sizeof buffer_, "/proc/self/fd/%d", fd);
        host_ = word(buffer_);
      }
    }
    return;
  }
  const char* host = process::host_path(path, buffer_);
  if (host == buffer_) host_ = word(buffer_);
}

}  // namespace phybin::syscalls
