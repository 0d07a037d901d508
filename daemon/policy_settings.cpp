// See policy_settings.h.
#include "daemon/policy_settings.h"

#include <algorithm>
#include <iterator>

namespace phybin::daemon {

using proto::CachePolicy;

namespace {

// In the order of CachePolicy, which is also that of how much is shared but for kAuto.
constexpr const char* kNames[] = {"off", "read", "on", "auto"};
static_assert(CachePolicy::kOff < CachePolicy::kRead && CachePolicy::kRead < CachePolicy::kOn);

}  // namespace

CachePolicy PolicySettings::resolve(std::string_view program, uint32_t uid) const {
  const std::string name(program);
  for (const PolicyScope& scope :
       {PolicyScope{name, uid}, PolicyScope{name, std::nullopt}, PolicyScope{std::nullopt, uid}, PolicyScope{}}) {
    if (const auto found = settings_.find(scope); found != settings_.end()) return found->second;
  }
  return CachePolicy::kAuto;
}

CachePolicy combine(CachePolicy wanted, CachePolicy setting) {
  if (wanted == CachePolicy::kAuto) return setting;
  if (setting == CachePolicy::kAuto) return wanted;
  return std::min(wanted, setting);
}

const char* policy_name(CachePolicy value) {
  const auto index = static_cast<size_t>(value);
  return index < std::size(kNames) ? kNames[index] : "?";
}

std::optional<CachePolicy> parse_policy(std::string_view text) {
  const auto* found = std::find(std::begin(kNames), std::end(kNames), text);
  if (found == std::end(kNames)) return std::nullopt;
  return static_cast<CachePolicy>(found - std::begin(kNames));
}

}  // namespace phybin::daemon
