// See control.h.
#include "daemon/control.h"

#include "daemon/connection.h"
#include "daemon/log.h"
#include "proto/messages.h"

namespace phybin::daemon {
namespace {

struct Request {
  const char* name;
  ControlHandler handler;
};

constexpr Request kRequests[] = {
    {"cache-export", control_cache_export},
    {"cache-export-image", control_cache_export_image},
    {"cache-export-profile", control_cache_export_profile},
    {"cache-import-begin", control_cache_import_begin},
    {"cache-import-commit", control_cache_import_commit},
    {"cache-import-part", control_cache_import_part},
    {"cache-list", control_cache_list},
    {"cache-purge", control_cache_purge},
    {"cache-show", control_cache_show},
    {"cache-verify", control_cache_verify},
    {"metrics", control_metrics},
    {"policy-get", control_policy_get},
    {"policy-set", control_policy_set},
    {"policy-unset", control_policy_unset},
    {"settle", control_settle},
    {"status", control_status},
    {"top", control_top},
};

// What a message of a long answer holds of the array, in bytes of JSON; the rest of the message is small.
constexpr size_t kPartBytes = proto::kMaxMessageBytes - 4096;

std::string to_text(const Json& body) { return body.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

void Reply::send(const Json& body, const std::vector<int>& files) const {
  auto connection = connection_.lock();
  if (!connection) return;
  std::string text = to_text(body);
  if (text.size() > proto::kMaxMessageBytes) {
    log(LogLevel::kError, "an answer does not fit into a message: " + printable(text.substr(0, 80)));
    text = to_text({{"ok", false}, {"error", "the answer is too long"}});
  }
  connection->send(text.data(), text.size(), files.data(), static_cast<unsigned>(files.size()));
}

void Reply::done(Json body, const std::vector<int>& files) const {
  body["ok"] = true;
  send(body, files);
}

void Reply::part(Json body) const {
  body["ok"] = true;
  body["more"] = true;
  send(body, {});
}

void Reply::error(const std::string& text) const { send({{"ok", false}, {"error", text}}, {}); }

void Reply::list(const char* name, Json items, Json body) const {
  Json batch = Json::array();
  size_t bytes = 0;
  for (Json& item : items) {
    const size_t size = to_text(item).size() + 1;
    if (bytes + size > kPartBytes && !batch.empty()) {
      part({{name, std::move(batch)}});
      batch = Json::array();
      bytes = 0;
    }
    bytes += size;
    batch.push_back(std::move(item));
  }
  if (bytes + to_text(body).size() > kPartBytes) {
    part({{name, std::move(batch)}});
    batch = Json::array();
  }
  body[name] = std::move(batch);
  done(std::move(body));
}

std::string string_member(const Json& body, const char* name, const std::string& preset) {
  auto found = body.find(name);
  if (found == body.end()) return preset;
  if (!found->is_string()) throw ControlError{std::string("'") + name + "' must be a string"};
  return found->get<std::string>();
}

int64_t integer_member(const Json& body, const char* name, int64_t preset) {
  auto found = body.find(name);
  if (found == body.end()) return preset;
  if (!found->is_number_integer()) throw ControlError{std::string("'") + name + "' must be an integer"};
  return found->get<int64_t>();
}

bool flag_member(const Json& body, const char* name, bool preset) {
  auto found = body.find(name);
  if (found == body.end()) return preset;
  if (!found->is_boolean()) throw ControlError{std::string("'") + name + "' must be true or false"};
  return found->get<bool>();
}

void require_privilege(const Peer& peer) {
  if (!peer.privileged) throw ControlError{"this needs root or the group phybin"};
}

void handle_control(Daemon& daemon, std::string_view text, const Peer& peer, std::vector<Descriptor> files,
                    const Reply& reply) {
  const Json body = Json::parse(text, nullptr, false);
  if (!body.is_object()) return reply.error("not a JSON object");
  auto name = body.find("request");
  if (name == body.end() || !name->is_string()) return reply.error("'request' is missing");
  for (const Request& request : kRequests) {
    if (*name != request.name) continue;
    ControlRequest arguments{body, peer, files};
    try {
      request.handler(daemon, arguments, reply);
    } catch (const ControlError& error) {
      reply.error(error.text);
    } catch (const Json::exception& error) {
      reply.error(error.what());
    }
    return;
  }
  reply.error("unknown request '" + printable(name->get<std::string>()) + "'");
}

}  // namespace phybin::daemon
