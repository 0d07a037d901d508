// What worker and daemon must agree on about /etc/phybin.conf: the daemon's keys (each program ignores what is the
// other's, and both know a key that is nobody's), and where a comment begins.
#pragma once

#include <cstddef>
#include <string_view>

namespace phybin::proto {

inline constexpr const char* kDaemonKeys[] = {
    "cache_dir",    "cache_size",  "user_cache_size", "compile_jobs", "compile_memory",
    "compile_time", "module_size", "profile_size",    "log_level",
};

// A '#' at the start of a line or behind a blank opens a comment; one within a value (a path) does not.
constexpr std::string_view without_comment(std::string_view line) {
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '#' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t')) return line.substr(0, i);
  }
  return line;
}

}  // namespace phybin::proto
