// What administrators and users have set with `phybinctl policy set`, and which setting holds for a program: the most
// specific one. Program and user together are more specific than a program, a program more than a user (who has many
// programs), a user more than the machine.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proto/messages.h"

namespace phybin::daemon {

// Whom a setting is for; what is missing stands for all.
struct PolicyScope {
  std::optional<std::string> program;  // name of the file without folders
  std::optional<uint32_t> uid;

  auto operator<=>(const PolicyScope&) const = default;  // NOLINT(modernize-use-nullptr)
};

class PolicySettings {
 public:
  void set(const PolicyScope& scope, proto::CachePolicy value) { settings_[scope] = value; }
  // False if there was none.
  bool unset(const PolicyScope& scope) { return settings_.erase(scope) != 0; }
  // What holds for that program of that user; kAuto when nothing is set.
  proto::CachePolicy resolve(std::string_view program, uint32_t uid) const;
  const std::map<PolicyScope, proto::CachePolicy>& all() const { return settings_; }

 private:
  std::map<PolicyScope, proto::CachePolicy> settings_;
};

// A worker's own option and the setting together: neither side gets more sharing than it allows. kAuto allows all and
// leaves the choice to the other; the result is kAuto if both are.
proto::CachePolicy combine(proto::CachePolicy wanted, proto::CachePolicy setting);

// "auto", "on", "read", "off".
const char* policy_name(proto::CachePolicy value);
std::optional<proto::CachePolicy> parse_policy(std::string_view text);

}  // namespace phybin::daemon
