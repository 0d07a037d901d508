// Closes files that clients sent. close() of a file on FUSE or NFS asks that file system's server first and returns
// when it answers, which may be never; so a thread of its own does it, and another one takes over when that one
// hangs.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "daemon/descriptor.h"

namespace phybin::daemon {

// A client's file, closed by a Closer when nobody needs it any more.
using ClientFile = std::shared_ptr<Descriptor>;

class Closer {
 public:
  Closer();
  // What hangs then stays behind, and so does its thread.
  ~Closer();

  // From any thread.
  void close_later(Descriptor file);
  ClientFile own(Descriptor file);
  void close_all(std::vector<Descriptor> files);
  // Called once a second: looks whether closing goes on.
  void tick();

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;  // threads that hang outlive the Closer
};

}  // namespace phybin::daemon
