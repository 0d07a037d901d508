// See fault_point.h.
#include "daemon/fault_point.h"

#include <unistd.h>

#include <csignal>

namespace phybin::daemon {
namespace {

// In the order in which publishing an image passes them.
constexpr const char* kNames[] = {"image-written", "image-synced", "image-renamed", "directory-synced",
                                  "row-written",   "old-removed",  "evict-removed"};

const char* chosen = nullptr;

}  // namespace

bool set_fault_point(const std::string& name) {
  for (const char* known : kNames) {
    if (name == known) chosen = known;
  }
  return name.empty() || chosen != nullptr;
}

void fault_point(const char* name) {
  if (chosen != nullptr && std::string(name) == chosen) kill(getpid(), SIGKILL);
}

std::string fault_point_names() {
  std::string text;
  for (const char* name : kNames) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

}  // namespace phybin::daemon
