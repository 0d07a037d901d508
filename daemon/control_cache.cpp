// The requests `cache-list`, `cache-show`, `cache-verify`, `cache-purge`: the images that there are. Users see those
// that serve them: their own, and those for everyone of modules that they have shown. Verifying and removing need
// privilege.
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <deque>
#include <iterator>
#include <unordered_set>

#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/files.h"
#include "daemon/image_selection.h"
#include "daemon/server.h"
#include "daemon/worker_session.h"

namespace phybin::daemon {
namespace {

const char* state_of(const Image& image) {
  if (image.verified) return "verified";
  return image.verifying ? "being verified" : "not verified";
}

// As ImageOrigin has them.
constexpr const char* kOrigins[] = {"made here", "imported", "imported and checked", "found again"};

Json describe(Daemon& daemon, const Image& image) {
  const ImageRow& row = image.row;
  const std::optional<ModuleRow> module = daemon.store.module(row.key.module);
  return {{"id", row.id},
          {"module", module ? Json(module->name) : Json(nullptr)},
          {"module_sha256", to_hex(row.key.module)},
          {"uid", row.key.scope == kEveryone ? Json(nullptr) : Json(row.key.scope)},
          {"bytes", row.file_bytes},
          {"entries", row.entries},
          {"profile", row.profile},
          {"generation", row.generation},
          {"translator_build", to_hex(row.key.build)},
          {"host_features", row.key.features},
          {"code_options", row.key.options},
          {"created_at", row.created},
          {"used_at", row.last_used},
          {"uses", row.uses},
          {"origin", kOrigins[static_cast<size_t>(row.origin) % std::size(kOrigins)]},
          {"state", state_of(image)}};
}

// What only the file says; reads its first page.
void add_header(const std::string& path, Json& json) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  proto::ImageHeader header;
  if (!file || pread(file.get(), &header, sizeof header, 0) != sizeof header) return;
  json["content_sha256"] = to_hex(to_digest(header.content_digest));
  json["module_bytes"] = header.module_bytes;
  json["text_bytes"] = header.text_bytes;
  json["weak_code_bytes"] = header.variants[proto::kWeakVariant].code_bytes;
  json["tso_code_bytes"] = header.variants[proto::kTsoVariant].code_bytes;
}

// Progress is told at most so often.
constexpr auto kProgressPause = std::chrono::milliseconds(100);

// Images being verified, one after the other.
struct Verification {
  Daemon& daemon;
  Reply reply;
  std::deque<std::pair<ImageKey, int64_t>> left;
  uint64_t total = 0, verified = 0;
  Json problems = Json::array();
  std::chrono::steady_clock::time_point told;

  static void next(const std::shared_ptr<Verification>& self) {
    const auto now = std::chrono::steady_clock::now();
    if (self->left.empty()) return self->finish();
    if (now - self->told >= kProgressPause) {
      self->told = now;
      self->reply.part({{"progress", {{"done", self->total - self->left.size()}, {"total", self->total}}}});
    }
    const auto [key, id] = self->left.front();
    self->left.pop_front();
    // What was evicted or replaced meanwhile is not there to be verified.
    const Image* image = self->daemon.images.find(key);
    if (image == nullptr || image->row.id != id) {
      boost::asio::post(self->daemon.io, [self] { next(self); });
      return;
    }
    self->daemon.images.verify(key, [self, image_id = id](const std::string& problem) {
      ++self->verified;
      if (!problem.empty()) self->problems.push_back({{"id", image_id}, {"problem", problem}});
      next(self);
    });
  }

  void finish() { reply.list("problems", std::move(problems), {{"verified", verified}}); }
};

// Member "ids" of a request.
std::unordered_set<int64_t> ids_member(const Json& body) {
  std::unordered_set<int64_t> ids;
  const auto found = body.find("ids");
  if (found == body.end()) return ids;
  if (!found->is_array()) throw ControlError{"'ids' must be an array of integers"};
  for (const Json& id : *found) {
    if (!id.is_number_integer()) throw ControlError{"'ids' must be an array of integers"};
    ids.insert(id.get<int64_t>());
  }
  return ids;
}

}  // namespace

void control_cache_list(Daemon& daemon, ControlRequest& request, const Reply& reply) {
  const ImageSelection selection(request.body);
  Json images = Json::array();
  for (const Image* image : selection.of(daemon, request.peer)) images.push_back(describe(daemon, *image));
  reply.list("images", std::move(images), {{"total_bytes", daemon.images.total_bytes()}});
}

void control_cache_show(Daemon& daemon, ControlRequest& request, const Reply& reply) {
  const int64_t id = integer_member(request.body, "id", 0);
  for (const auto& [key, image] : daemon.images.all()) {
    if (image.row.id != id || !may_see_image(daemon, request.peer, image)) continue;
    Json json = describe(daemon, image);
    const std::string path = daemon.images.path_of(image.row);
    add_header(path, json);
    json["file"] = path;
    size_t workers = 0;
    for (const auto& connection : daemon.server->connections()) {
      if (connection->worker() != nullptr && connection->worker()->has_image(id)) ++workers;
    }
    json["workers"] = workers;
    json["copies"] = daemon.replicas.copies_of(id);
    return reply.done({{"image", std::move(json)}});
  }
  reply.error("there is no image " + std::to_string(id));
}

void control_cache_verify(Daemon& daemon, ControlRequest& request, const Reply& reply) {
  require_privilege(request.peer);
  auto verification = std::make_shared<Verification>(Verification{daemon, reply, {}, 0, 0, Json::array(), {}});
  for (const auto& [key, image] : daemon.images.all()) verification->left.emplace_back(key, image.row.id);
  verification->total = verification->left.size();
  Verification::next(verification);
}

void control_cache_purge(Daemon& daemon, ControlRequest& request, const Reply& reply) {
  require_privilege(request.peer);
  const ImageSelection selection(request.body);
  const bool all = flag_member(request.body, "all", false);
  const int64_t age = integer_member(request.body, "older_than_seconds", -1);
  const std::unordered_set<int64_t> ids = ids_member(request.body);
  const bool by_id = request.body.contains("ids");
  if (!all && age < 0 && !by_id && !selection.names_module())
    throw ControlError{"purge what? 'all', 'ids', 'older_than_seconds' or 'module'"};
  std::vector<ImageKey> doomed;
  uint64_t bytes = 0;
  for (const Image* image : selection.of(daemon, request.peer)) {
    if (by_id && !ids.contains(image->row.id)) continue;
    if (age >= 0 && image->row.last_used > time(nullptr) - age) continue;
    doomed.push_back(image->row.key);
    bytes += image->row.file_bytes;
  }
  for (const ImageKey& key : doomed) daemon.images.remove(key);
  // What could not be translated is tried again.
  if (all) daemon.store.clear_failures();
  daemon.store.commit();
  reply.done({{"removed", doomed.size()}, {"removed_bytes", bytes}});
}

}  // namespace phybin::daemon
