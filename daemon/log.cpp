// See log.h.
#include "daemon/log.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>

namespace phybin::daemon {
namespace {

std::atomic<LogLevel> limit{LogLevel::kInfo};

// Of sd-daemon(3), by LogLevel.
constexpr const char* kPrefixes[] = {"<3>", "<4>", "<6>", "<7>"};
constexpr size_t kLongest = 256;

}  // namespace

void set_log_level(LogLevel level) { limit = level; }

bool logs(LogLevel level) { return level <= limit.load(std::memory_order_relaxed); }

void log(LogLevel level, std::string_view text) {
  if (!logs(level)) return;
  static const bool journal = getenv("JOURNAL_STREAM") != nullptr;
  std::string line = journal ? kPrefixes[static_cast<size_t>(level)] : "phybind: ";
  line.append(text).push_back('\n');
  // One write, so that lines of several threads do not mix. A log that cannot be written is nobody's to fix here.
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

std::string printable(std::string_view text) {
  std::string result(text.substr(0, kLongest));
  for (char& c : result) {
    if (c < ' ' || c > '~') c = '?';
  }
  if (text.size() > kLongest) result += "...";
  return result;
}

}  // namespace phybin::daemon
