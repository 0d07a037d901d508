// The daemon's log: lines on stderr, which systemd and containers collect. Under the journal each line carries its
// level in the form that sd-daemon(3) describes; otherwise only the name of the program. What clients say reaches the
// log only through printable().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace phybin::daemon {

enum class LogLevel : uint8_t { kError, kWarning, kInfo, kDebug };

void set_log_level(LogLevel level);
bool logs(LogLevel level);

// From any thread. One line without its end.
void log(LogLevel level, std::string_view text);

// With control characters and what is not ASCII replaced, cut to a length that a log can bear.
std::string printable(std::string_view text);

}  // namespace phybin::daemon
