// Diagnostics under --log, and paths below the rootfs.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "worker/process/descriptors.h"
#include "worker/process/program.h"
#include "worker/process/raw_syscall.h"

namespace phybin::process {

void log_line(const char* format, ...) {
  if (!program().options.log) return;
  char text[512];
  int start = snprintf(text, sizeof text, "phybin[%d]: ", static_cast<int>(raw_syscall(SYS_getpid)));
  va_list arguments;
  va_start(arguments, format);
  int length = start + vsnprintf(text + start, sizeof text - static_cast<size_t>(start) - 1, format, arguments);
  va_end(arguments);
  length = std::min(length, static_cast<int>(sizeof text) - 2);
  text[length] = '\n';
  raw_syscall(SYS_write, static_cast<uint64_t>(message_descriptor()), word(text), static_cast<uint64_t>(length) + 1);
}

const char* host_path(const char* path, char* buffer) {
  const std::string& root = program().options.rootfs;
  if (root.empty() || path[0] != '/') return path;
  size_t length = strlen(path);
  if (root.size() + length + 1 > kPathBuffer) return path;
  memcpy(buffer, root.data(), root.size());
  memcpy(buffer + root.size(), path, length + 1);
  bool exists = raw_syscall(SYS_faccessat, static_cast<uint64_t>(AT_FDCWD), word(buffer), F_OK) == 0;
  return exists ? buffer : path;
}

}  // namespace phybin::process
