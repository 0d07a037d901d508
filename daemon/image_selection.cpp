// See image_selection.h.
#include "daemon/image_selection.h"

#include <algorithm>

#include "daemon/daemon.h"

namespace phybin::daemon {

bool may_see_image(Daemon& daemon, const Peer& peer, const Image& image) {
  const ImageKey& key = image.row.key;
  if (peer.privileged || key.scope == static_cast<Scope>(peer.uid)) return true;
  if (key.scope != kEveryone) return false;
  const std::vector<Scope> provers = daemon.store.provers(key.module);
  return std::find(provers.begin(), provers.end(), static_cast<Scope>(peer.uid)) != provers.end();
}

ImageSelection::ImageSelection(const Json& body) : path_(string_member(body, "module", "")) {
  if (body.contains("module") && path_.empty()) throw ControlError{"'module' is empty"};
  const std::string digest = string_member(body, "module_sha256", "");
  if (digest.empty()) return;
  digest_ = from_hex(digest);
  if (!digest_) throw ControlError{"'module_sha256' is not a digest"};
}

bool ImageSelection::matches(Daemon& daemon, const Digest& module) const {
  if (!names_module() || digest_ == module) return true;
  if (path_.empty()) return false;
  const std::optional<ModuleRow> row = daemon.store.module(module);
  return row && row->name == path_;
}

std::vector<const Image*> ImageSelection::of(Daemon& daemon, const Peer& peer) const {
  std::vector<const Image*> images;
  for (const auto& [key, image] : daemon.images.all()) {
    if (may_see_image(daemon, peer, image) && matches(daemon, key.module)) images.push_back(&image);
  }
  std::sort(images.begin(), images.end(), [](const Image* a, const Image* b) { return a->row.id < b->row.id; });
  return images;
}

}  // namespace phybin::daemon
