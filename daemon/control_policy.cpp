// The requests `policy-get`, `policy-set`, `policy-unset`: who may share translations (docs/policy.md).
//
// A request names whom it is for by "program" and "uid"; without them it is for all. Users may set what holds for
// themselves, so theirs always have a "uid"; everything else needs privilege.
#include <algorithm>

#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/log.h"
#include "daemon/policy_settings.h"

namespace phybin::daemon {
namespace {

constexpr size_t kMaxName = sizeof(proto::Hello::name) - 1;
constexpr size_t kMaxSettingsOfUser = 256;

PolicyScope scope_of(const Json& body) {
  PolicyScope scope;
  if (body.contains("program")) {
    scope.program = string_member(body, "program", "");
    // Names of workers are compared after printable(): others could never match.
    if (scope.program->empty() || scope.program->size() > kMaxName || printable(*scope.program) != *scope.program ||
        scope.program->find('/') != std::string::npos) {
      throw ControlError{"'program' is not the name of a program"};
    }
  }
  if (body.contains("uid")) {
    const int64_t uid = integer_member(body, "uid", -1);
    if (uid < 0 || uid >= UINT32_MAX) throw ControlError{"'uid' is not a user id"};
    scope.uid = static_cast<uint32_t>(uid);
  }
  return scope;
}

// The scope of a change that the peer may make; an unprivileged one's own where it names no user.
PolicyScope scope_of_change(const ControlRequest& request) {
  PolicyScope scope = scope_of(request.body);
  if (request.peer.privileged) return scope;
  if (!scope.uid) scope.uid = request.peer.uid;
  if (*scope.uid != request.peer.uid) throw ControlError{"other users' policy needs root or the group phybin"};
  return scope;
}

// A user must not fill the daemon.
void require_room(const PolicySettings& settings, const PolicyScope& scope) {
  if (!scope.uid || settings.all().contains(scope)) return;
  size_t own = 0;
  for (const auto& [other, value] : settings.all()) own += other.uid == scope.uid ? 1 : 0;
  if (own >= kMaxSettingsOfUser) {
    throw ControlError{"a user has at most " + std::to_string(kMaxSettingsOfUser) + " settings; unset some"};
  }
}

Json describe(const PolicyScope& scope) {
  Json json = Json::object();
  json["program"] = scope.program ? Json(*scope.program) : Json(nullptr);
  json["uid"] = scope.uid ? Json(*scope.uid) : Json(nullptr);
  return json;
}

bool may_see(const Peer& peer, uint32_t uid) { return peer.privileged || peer.uid == uid; }

unsigned bits(uint64_t word) { return static_cast<unsigned>(__builtin_popcountll(word)); }

}  // namespace

void control_policy_get(Daemon& daemon, ControlRequest& request, const Reply& reply) {
  const PolicyScope scope = scope_of(request.body);
  const Policy& policy = daemon.policy;
  if (scope.uid && !may_see(request.peer, *scope.uid)) {
    throw ControlError{"other users' policy needs root or the group phybin"};
  }
  if (scope.program || scope.uid) {
    const uint32_t uid = scope.uid.value_or(request.peer.uid);
    const proto::CachePolicy value = policy.settings().resolve(scope.program.value_or(""), uid);
    Json answer = describe(scope);
    answer["uid"] = uid;
    answer["effective"] = policy_name(value);
    return reply.done(std::move(answer));
  }
  Json settings = Json::array();
  for (const auto& [other, value] : policy.settings().all()) {
    if (other.uid && !may_see(request.peer, *other.uid)) continue;
    Json setting = describe(other);
    setting["value"] = policy_name(value);
    settings.push_back(std::move(setting));
  }
  Json decisions = Json::array();
  for (const auto& [key, group] : policy.classes()) {
    if (!may_see(request.peer, group.uid)) continue;
    decisions.push_back({{"program", group.program},
                         {"uid", group.uid},
                         {"wanted", policy_name(group.wanted)},
                         {"remote", group.remote},
                         {"workers", group.members.size()},
                         {"nodes", bits(policy.nodes_of(group.program))},
                         {"automatic", group.automatic},
                         {"value", policy_name(group.value)},
                         {"reason", group.reason}});
  }
  // Settings are few beside the classes of a busy machine, but may be as many as users.
  for (size_t at = 0; at < settings.size(); at += 256) {
    Json part = Json::array();
    for (size_t i = at; i < std::min(at + 256, settings.size()); ++i) part.push_back(settings[i]);
    reply.part({{"settings", std::move(part)}});
  }
  if (settings.empty()) reply.part({{"settings", Json::array()}});
  reply.list("decisions", std::move(decisions));
}

void control_policy_set(Daemon& daemon, ControlRequest& request, const Reply& reply) {
  const std::optional<proto::CachePolicy> value = parse_policy(string_member(request.body, "value", ""));
  if (!value) throw ControlError{"'value' must be auto, on, read or off"};
  const PolicyScope scope = scope_of_change(request);
  require_room(daemon.policy.settings(), scope);
  const std::string problem = daemon.policy.set(scope, *value);
  if (!problem.empty()) throw ControlError{"set, but only until the daemon ends: " + problem};
  Json answer = describe(scope);
  answer["value"] = policy_name(*value);
  reply.done(std::move(answer));
}

void control_policy_unset(Daemon& daemon, ControlRequest& request, const Reply& reply) {
  const PolicyScope scope = scope_of_change(request);
  bool found = false;
  const std::string problem = daemon.policy.unset(scope, found);
  if (!found) throw ControlError{"there is no such setting"};
  if (!problem.empty()) throw ControlError{"unset, but only until the daemon ends: " + problem};
  reply.done(describe(scope));
}

}  // namespace phybin::daemon
