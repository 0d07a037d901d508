// See log.h.
#include "daemon/log.h"

#include <unistd.h>

#include <atomic>

namespace phybin::daemon {
namespace {

std::atomic<LogLevel> limit{LogLevel::kInfo};

LogSink other_sink = nullptr;
constexpr size_t kLongest = 256;

}  // namespace

void set_log_level(LogLevel level) { limit = level; }

bool logs(LogLevel level) { return level <= limit.load(std::memory_order_relaxed); }

void set_log_sink(LogSink sink) { other_sink = sink; }

void log(LogLevel level, std::string_view text, const std::vector<LogField>& fields) {
  if (!logs(level)) return;
  if (other_sink != nullptr && other_sink(level, text, fields)) return;
  std::string line = "phybind: ";
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
