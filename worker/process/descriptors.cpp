// The worker's own descriptors. See descriptors.h.
#include "worker/process/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

namespace phybin::process {
namespace {

constexpr int kCount = static_cast<int>(OwnDescriptor::kCount);
std::atomic<int> descriptors[kCount] = {-1, -1, -1};

// A number that the guest hardly uses. The kernel's table of descriptors grows with the highest one, so not higher
// than a few pages of it.
int lowest_wanted() {
  constexpr rlim_t kHighest = 4096;
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 256;
  auto usable = static_cast<int>(std::min(limit.rlim_cur, kHighest));
  return std::max(usable - kCount - 2, 3);
}

int move_up(int fd) {
  for (int low = lowest_wanted(); low > 2; low /= 2) {
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, low);
    if (moved >= 0) return moved;
  }
  return -1;
}

}  // namespace

void keep_descriptor(OwnDescriptor which, int fd) {
  int moved = move_up(fd);
  if (moved >= 0) {
    close(fd);
    fd = moved;
  } else {
    fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
  int old = descriptors[static_cast<int>(which)].exchange(fd);
  if (old >= 0) close(old);
}

int own_descriptor(OwnDescriptor which) { return descriptors[static_cast<int>(which)]; }

int message_descriptor() {
  const int fd = own_descriptor(OwnDescriptor::kMessages);
  return fd >= 0 ? fd : STDERR_FILENO;
}

bool is_own_descriptor(int fd) {
  if (fd < 0) return false;
  for (const auto& own : descriptors) {
    if (own == fd) return true;
  }
  return false;
}

void make_way_for(int fd) {
  if (fd < 0) return;
  for (auto& own : descriptors) {
    if (own != fd) continue;
    own = move_up(fd);
    close(fd);
  }
}

}  // namespace phybin::process
