// phybinctl policy get, set, unset: who may share translations. The daemon decides what is allowed to whom and which
// setting wins (docs/policy.md).
#include <pwd.h>
#include <unistd.h>

#include <charconv>

#include "client/commands.h"
#include "client/connection.h"
#include "client/format.h"

namespace phybin::client {
namespace {

constexpr std::string_view kSetting = "--shared-translation-cache";

// Adds "program" and "uid" to the request; false, and `error`, if --uid names nobody.
bool add_scope(const Arguments& arguments, Json& request, std::string& error) {
  if (arguments.has("--program")) {
    const std::string program = arguments.get("--program");
    if (program.empty() || program.size() > 63 || program.find('/') != program.npos) {
      error = "--program: '" + program + "' is not the name of a program (its file's name, at most 63 bytes)";
      return false;
    }
    request["program"] = program;
  }
  if (arguments.has("--uid")) {
    const std::string user = arguments.get("--uid");
    uint32_t uid = 0;
    const auto [end, code] = std::from_chars(user.data(), user.data() + user.size(), uid);
    if (code != std::errc() || end != user.data() + user.size() || uid == UINT32_MAX) {
      const passwd* entry = getpwnam(user.c_str());
      if (entry == nullptr) {
        error = "--uid: '" + user + "' is neither a number nor a user";
        return false;
      }
      uid = entry->pw_uid;
    }
    request["uid"] = uid;
  }
  return true;
}

std::string render(const Json& body) {
  Table settings({"PROGRAM", "USER", "POLICY"});
  for (const Json& setting : member(body, "settings")) {
    const Json& uid = member(setting, "uid");
    settings.add({member(setting, "program").is_string() ? text(setting, "program") : "(every)",
                  uid.is_number() ? format_user(uid.get<int64_t>()) : "(every)", text(setting, "value")});
  }
  std::string out = settings.render();
  const Json& decisions = member(body, "decisions");
  if (decisions.is_array() && !decisions.empty()) {
    Table table({"PROGRAM", "USER", ">WORKERS", ">NODES", "IN FORCE", "WHY"});
    for (const Json& decision : decisions) {
      table.add({text(decision, "program"), format_user(static_cast<int64_t>(number(decision, "uid"))),
                 std::to_string(number(decision, "workers")), std::to_string(number(decision, "nodes")),
                 text(decision, "value"), text(decision, "reason")});
    }
    out += "\nrunning now:\n" + table.render();
  }
  return out;
}

int ask(const Arguments& arguments, Json request) {
  std::string error;
  if (!add_scope(arguments, request, error)) return usage_error(error);
  const Answer answer = ask_once(arguments, request);
  if (answer.status != kSuccess) return answer.status;
  if (arguments.has("--json")) {
    print_json(answer.body);
  } else if (request["request"] == "policy-get") {
    const Json& effective = member(answer.body, "effective");
    print(effective.is_string() ? text(answer.body, "effective") + "\n" : render(answer.body));
  }
  return kSuccess;
}

}  // namespace

int run_policy_get(const Arguments& arguments) { return ask(arguments, {{"request", "policy-get"}}); }

int run_policy_set(const Arguments& arguments) {
  const std::string value = arguments.get(kSetting);
  if (value != "auto" && value != "on" && value != "read" && value != "off") {
    return usage_error(value.empty() ? std::string(kSetting) + "=auto|on|read|off is missing"
                                     : std::string(kSetting) + ": '" + value +
                                           "' is not allowed; allowed: auto, on, read, off");
  }
  return ask(arguments, {{"request", "policy-set"}, {"value", value}});
}

int run_policy_unset(const Arguments& arguments) { return ask(arguments, {{"request", "policy-unset"}}); }

}  // namespace phybin::client
