// Settings and history of policies, in an SQLite file beside the index of images: the index may be thrown away at any
// time, what an administrator has set may not.
#pragma once

#include <string>

#include "daemon/policy_settings.h"
#include "daemon/run_history.h"
#include "daemon/sqlite.h"

namespace phybin::daemon {

class PolicyStore {
 public:
  // Opens or makes the file and reads it. A file that SQLite cannot read is put aside as FILE.damaged and a new one
  // made. An empty string, or what is wrong.
  std::string open(const std::string& file, PolicySettings& settings, RunHistory& history);
  // Each returns an empty string, or what is wrong; also empty when no file is open.
  std::string set(const PolicyScope& scope, proto::CachePolicy value);
  std::string unset(const PolicyScope& scope);
  std::string save(RunHistory& history);

 private:
  void read(PolicySettings& settings, RunHistory& history);

  Database database_;
};

}  // namespace phybin::daemon
