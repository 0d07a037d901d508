// Where the programs meet.
#pragma once

namespace phybin::proto {

inline constexpr char kSystemSocket[] = "/run/phybin/phybind.sock";
// Of a user's own daemon, below $XDG_RUNTIME_DIR.
inline constexpr char kUserSocket[] = "phybin/phybind.sock";
inline constexpr char kSystemCache[] = "/var/cache/phybin";
// Of a user's own daemon, below $XDG_CACHE_HOME (~/.cache).
inline constexpr char kUserCache[] = "phybin";
inline constexpr char kConfigFile[] = "/etc/phybin.conf";
// Owner of the system's daemon, and the group whose members may steer it.
inline constexpr char kDaemonUser[] = "phybin";
inline constexpr char kDaemonGroup[] = "phybin";

}  // namespace phybin::proto
