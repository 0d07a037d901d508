// The requests `cache-export...` and `cache-import...` (docs/archive-format.md). The client writes and reads
// archives; the daemon hands out what goes in, and takes over what came out (archive_import.h).
//
// Only images that serve everyone are exported: what serves one user was made from entry points that nobody has
// checked. That user's profile can be exported instead.
#include <fcntl.h>

#include <algorithm>
#include <set>

#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/files.h"
#include "daemon/image_selection.h"
#include "daemon/pages.h"

namespace phybin::daemon {
namespace {

// What the peer may have of the entry points met in a module: all, or those of his own programs.
std::vector<uint32_t> entries_for_peer(Daemon& daemon, const Digest& module, const Peer& peer) {
  const std::shared_ptr<Module> record = daemon.modules.find(module);
  if (!record) return {};
  daemon.modules.load_entries(*record);
  if (peer.privileged) return record->all_entries;
  const auto own = record->entries.find(peer.uid);
  return own == record->entries.end() ? std::vector<uint32_t>() : own->second;
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

void control_cache_export(Daemon& daemon, ControlRequest& request, const Reply& reply) {
  const ImageSelection selection(request.body);
  Json images = Json::array(), profiles = Json::array();
  for (const Image* image : selection.of(daemon, request.peer)) {
    const ImageRow& row = image->row;
    if (row.key.scope != kEveryone || !image->verified) continue;
    const std::optional<ModuleRow> module = daemon.store.module(row.key.module);
    // With the profile that it was made from others can make it again and compare.
    const bool known =
        entries_for_peer(daemon, row.key.module, request.peer).size() == row.profile && row.profile != 0;
    images.push_back({{"id", row.id},
                      {"module", module ? base_name(module->name) : "unknown"},
                      {"module_sha256", to_hex(row.key.module)},
                      {"translator_build", to_hex(row.key.build)},
                      {"host_features", row.key.features},
                      {"code_options", row.key.options},
                      {"bytes", row.file_bytes},
                      {"of_profile", known}});
  }
  std::set<Digest> seen;
  for (const auto& [user, module] : daemon.store.proofs()) {
    if (!request.peer.privileged && user != static_cast<Scope>(request.peer.uid)) continue;
    if (!selection.matches(daemon, module.digest)) continue;
    if (!seen.insert(module.digest).second) continue;
    const std::vector<uint32_t> entries = entries_for_peer(daemon, module.digest, request.peer);
    if (entries.empty()) continue;
    profiles.push_back({{"module", base_name(module.name)},
                        {"module_sha256", to_hex(module.digest)},
                        {"bytes", entries.size() * sizeof(uint32_t)}});
  }
  for (size_t at = 0; at < images.size(); at += 64) {
    Json some = Json::array();
    for (size_t i = at; i < std::min(at + 64, images.size()); ++i) some.push_back(images[i]);
    reply.part({{"images", std::move(some)}});
  }
  if (images.empty()) reply.part({{"images", Json::array()}});
  reply.list("profiles", std::move(profiles));
}

void control_cache_export_image(Daemon& daemon, ControlRequest& request, const Reply& reply) {
  const int64_t id = integer_member(request.body, "id", 0);
  for (const auto& [key, image] : daemon.images.all()) {
    if (image.row.id != id || key.scope != kEveryone || !may_see_image(daemon, request.peer, image)) continue;
    const Descriptor file(open(daemon.images.path_of(image.row).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!file) break;
    return reply.done(Json::object(), {file.get()});
  }
  reply.error("image " + std::to_string(id) + " is not there any more");
}

void control_cache_export_profile(Daemon& daemon, ControlRequest& request, const Reply& reply) {
  const auto module = from_hex(string_member(request.body, "module_sha256", ""));
  if (!module) throw ControlError{"'module_sha256' is not a digest"};
  const std::vector<uint32_t> entries = entries_for_peer(daemon, *module, request.peer);
  const auto file = make_memory_file("phybin-profile");
  if (!file || write_all(file->get(), entries.data(), entries.size() * sizeof(uint32_t)) != 0) {
    throw ControlError{"out of memory"};
  }
  reply.done(Json::object(), {file->get()});
}

void control_cache_import_begin(Daemon& daemon, ControlRequest& request, const Reply& reply) {
  daemon.imports.begin(request, reply);
}

void control_cache_import_part(Daemon& daemon, ControlRequest& request, const Reply& reply) {
  daemon.imports.part(request, reply);
}

void control_cache_import_commit(Daemon& daemon, ControlRequest& request, const Reply& reply) {
  daemon.imports.commit(request, reply);
}

}  // namespace phybin::daemon
