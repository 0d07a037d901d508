// Which images a client's request is about, and which of them the client may see.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/control.h"
#include "daemon/images.h"

namespace phybin::daemon {

// Its own, those for everyone of modules that the user has shown, and all for privileged ones.
bool may_see_image(Daemon& daemon, const Peer& peer, const Image& image);

// Members "module" (a path) and "module_sha256" of a request: images of a module that was shown under that path, or
// has that content; all images without either.
class ImageSelection {
 public:
  explicit ImageSelection(const Json& body);  // throws ControlError

  bool names_module() const { return !path_.empty() || digest_; }
  bool matches(Daemon& daemon, const Digest& module) const;
  // Those that the peer may see, by id. Valid until the event thread goes on.
  std::vector<const Image*> of(Daemon& daemon, const Peer& peer) const;

 private:
  std::string path_;
  std::optional<Digest> digest_;
};

}  // namespace phybin::daemon
