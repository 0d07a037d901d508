// The daemon's log: lines on stderr, which containers collect, or entries of systemd's journal (journal.h). A line
// may have fields, by which the journal finds it again. What clients say reaches the log only through printable().
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace phybin::daemon {

enum class LogLevel : uint8_t { kError, kWarning, kInfo, kDebug };

void set_log_level(LogLevel level);
bool logs(LogLevel level);

// Journal fields are named in capital letters, ours begin with PHYBIN_.
struct LogField {
  const char* name;
  std::string value;
};

// From any thread. One line without its end.
void log(LogLevel level, std::string_view text, const std::vector<LogField>& fields = {});

// Where lines go instead of stderr. False: it could not be written there, so stderr gets it. Set before there are
// threads.
using LogSink = bool (*)(LogLevel level, std::string_view text, std::span<const LogField> fields);
void set_log_sink(LogSink sink);

// With control characters and what is not ASCII replaced, cut to a length that a log can bear.
std::string printable(std::string_view text);

}  // namespace phybin::daemon
