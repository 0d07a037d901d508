// The daemon's keys in /etc/phybin.conf, which it shares with the worker: each program ignores what is the other's,
// and both know a key that is nobody's.
#pragma once

namespace phybin::proto {

inline constexpr const char* kDaemonKeys[] = {
    "cache_dir",    "cache_size",  "user_cache_size", "compile_jobs", "compile_memory",
    "compile_time", "module_size", "profile_size",    "log_level",
};

}  // namespace phybin::proto
