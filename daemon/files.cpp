// See files.h.
#include "daemon/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace phybin::daemon {

std::string make_directories(const std::string& path, mode_t mode) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (!part.empty() && mkdir(part.c_str(), mode) != 0 && errno != EEXIST) {
      // A folder that is there on a read-only file system, or that may not be looked at, shows below.
      const int error = errno;
      struct stat status;
      if (stat(part.c_str(), &status) != 0) return part + ": " + strerror(error);
    }
    if (end == path.npos) break;
  }
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return path + ": " + strerror(errno);
  if (!S_ISDIR(status.st_mode)) return path + ": not a directory";
  return {};
}

int sync_directory(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int result = fsync(fd) == 0 ? 0 : errno;
  close(fd);
  return result;
}

int write_all(int fd, const void* data, size_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes != 0) {
    const ssize_t count = write(fd, from, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) return EIO;
    from += count;
    bytes -= static_cast<size_t>(count);
  }
  return 0;
}

}  // namespace phybin::daemon
