// Who is at the other end of a connection.
#pragma once

#include <sys/types.h>

namespace phybin::daemon {

// As the kernel says (SO_PEERCRED), for the time of its connect().
struct Peer {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  // May see and steer everything: root, the daemon's own user, members of the group phybin. Others their own only.
  bool privileged = false;
};

}  // namespace phybin::daemon
