// Taking archives over (docs/archive-format.md). The client has read and checked the archive and hands its parts over
// one by one, in sealed memory: what the daemon reads can neither hang nor change. Nothing counts before all parts
// have come and agree with the manifest; then the images are published, like new ones.
//
//   cache-import-begin    the manifest: who signed it, which parts are wanted
//   cache-import-part     one image or profile
//   cache-import-commit   all of them at once
//
// Images come in from root alone, and signed by an installed key. Profiles tell only what of a module a user's
// programs reach: anybody may bring them for himself, within his quota.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/archive_manifest.h"
#include "daemon/control.h"

namespace phybin::daemon {

class ArchiveImports {
 public:
  explicit ArchiveImports(Daemon& daemon) : daemon_(daemon) {}
  ~ArchiveImports();

  void begin(ControlRequest& request, const Reply& reply);
  void part(ControlRequest& request, const Reply& reply);
  void commit(ControlRequest& request, const Reply& reply);
  // Once a second: forgets what clients have left off.
  void tick();

 private:
  using Clock = std::chrono::steady_clock;
  struct Import;

  std::shared_ptr<Import> find(const ControlRequest& request);
  void publish(const std::shared_ptr<Import>& import, const Reply& reply);
  void check(const std::shared_ptr<Import>& import, const ArchiveImage& image);
  void finish(const std::shared_ptr<Import>& import, const Reply& reply);

  Daemon& daemon_;
  std::map<std::string, std::shared_ptr<Import>> imports_;  // by token
};

}  // namespace phybin::daemon
