// Requests of clients (phybinctl): one JSON object a message, {"request": NAME, ...}, answered by one object
// {"ok": true, ...} or {"ok": false, "error": TEXT}. A long answer comes as several messages, all but the last with
// "more": true. One table (control.cpp) names the handlers; each subject has a file control_SUBJECT.cpp.
//
// Handlers run on the daemon's only event thread and must not block: they answer at once, or keep the Reply (it can
// be copied) and answer later. A client that has gone meanwhile makes that harmless.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "daemon/descriptor.h"
#include "daemon/peer.h"

namespace phybin::daemon {

struct Daemon;
class Connection;
using Json = nlohmann::json;

class Reply {
 public:
  explicit Reply(std::weak_ptr<Connection> connection) : connection_(std::move(connection)) {}

  // The last message of the answer; `body` is an object, "ok": true is added. `files` are sent along, not taken over.
  void done(Json body = Json::object(), const std::vector<int>& files = {}) const;
  // One message of a longer answer: as done(), with "more": true.
  void part(Json body) const;
  void error(const std::string& text) const;
  // Answers with `body` and in it, as `name`, the array `items` of any length, in as many messages as it takes: each
  // has a part of the array, `body` stands in the last one.
  void list(const char* name, Json items, Json body = Json::object()) const;

 private:
  void send(const Json& body, const std::vector<int>& files) const;

  std::weak_ptr<Connection> connection_;
};

struct ControlRequest {
  const Json& body;
  const Peer& peer;
  std::vector<Descriptor>& files;  // that came along; the handler may take them
};

using ControlHandler = void (*)(Daemon& daemon, ControlRequest& request, const Reply& reply);

// Answers one message of a client. `text` is whatever it sent.
void handle_control(Daemon& daemon, std::string_view text, const Peer& peer, std::vector<Descriptor> files,
                    const Reply& reply);

// Members of requests; an error is thrown as ControlError and answered by handle_control().
struct ControlError {
  std::string text;
};
std::string string_member(const Json& body, const char* name, const std::string& preset);
int64_t integer_member(const Json& body, const char* name, int64_t preset);
bool flag_member(const Json& body, const char* name, bool preset);
void require_privilege(const Peer& peer);  // throws ControlError

// The handlers; control.cpp has the names that they are called by.
void control_status(Daemon& daemon, ControlRequest& request, const Reply& reply);
void control_cache_export(Daemon& daemon, ControlRequest& request, const Reply& reply);
void control_cache_export_image(Daemon& daemon, ControlRequest& request, const Reply& reply);
void control_cache_export_profile(Daemon& daemon, ControlRequest& request, const Reply& reply);
void control_cache_import_begin(Daemon& daemon, ControlRequest& request, const Reply& reply);
void control_cache_import_commit(Daemon& daemon, ControlRequest& request, const Reply& reply);
void control_cache_import_part(Daemon& daemon, ControlRequest& request, const Reply& reply);
void control_cache_list(Daemon& daemon, ControlRequest& request, const Reply& reply);
void control_cache_purge(Daemon& daemon, ControlRequest& request, const Reply& reply);
void control_cache_show(Daemon& daemon, ControlRequest& request, const Reply& reply);
void control_cache_verify(Daemon& daemon, ControlRequest& request, const Reply& reply);
void control_metrics(Daemon& daemon, ControlRequest& request, const Reply& reply);
void control_policy_get(Daemon& daemon, ControlRequest& request, const Reply& reply);
void control_policy_set(Daemon& daemon, ControlRequest& request, const Reply& reply);
void control_policy_unset(Daemon& daemon, ControlRequest& request, const Reply& reply);
void control_settle(Daemon& daemon, ControlRequest& request, const Reply& reply);
void control_top(Daemon& daemon, ControlRequest& request, const Reply& reply);

}  // namespace phybin::daemon
