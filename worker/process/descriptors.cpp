// The worker's own descriptors. See descriptors.h.
#include "worker/process/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>

namespace phybin::process {
namespace {

constexpr int kCount = static_cast<int>(OwnDescriptor::kCount);
std::atomic<int> descriptors[kCount];   // the complement of each, so that 0 is none
std::atomic<int> lowest_own = INT_MAX;  // none is below

// How many numbers of descriptors are considered: the kernel's table of them grows with the highest one that is used,
// so not more than a few pages of it.
int usable_numbers() {
  static constexpr rlim_t kHighest = 4096;
  static const int usable = [] {
    rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 256;
    return static_cast<int>(std::min<rlim_t>(limit.rlim_cur, kHighest));
  }();
  return usable;
}

// A number that the guest hardly uses.
int lowest_wanted() { return std::max({usable_numbers() - kCount - 2, usable_numbers() / 2, 3}); }

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
  if (fd < lowest_own) lowest_own = fd;
  const int old = ~descriptors[static_cast<int>(which)].exchange(~fd);
  if (old >= 0) close(old);
}

void close_descriptor(OwnDescriptor which) {
  const int fd = ~descriptors[static_cast<int>(which)].exchange(0);
  if (fd >= 0) close(fd);
}

unsigned max_image_descriptors() {
  constexpr auto kPlaces = static_cast<unsigned>(kCount) - static_cast<unsigned>(OwnDescriptor::kFirstImage);
  return std::min(kPlaces, static_cast<unsigned>(usable_numbers()) / 4);
}

int own_descriptor(OwnDescriptor which) { return ~descriptors[static_cast<int>(which)]; }

int message_descriptor() {
  const int fd = own_descriptor(OwnDescriptor::kMessages);
  return fd >= 0 ? fd : STDERR_FILENO;
}

bool is_own_descriptor(int fd) {
  if (fd < lowest_own) return false;
  for (const auto& own : descriptors) {
    if (own == ~fd) return true;
  }
  return false;
}

void make_way_for(int fd) {
  if (fd < lowest_own) return;
  for (auto& own : descriptors) {
    if (own != ~fd) continue;
    const int moved = move_up(fd);
    if (moved >= 0 && moved < lowest_own) lowest_own = moved;
    own = ~moved;
    close(fd);
  }
}

}  // namespace phybin::process
