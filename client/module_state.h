// Whether the files that images were made of are still what they were.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace phybin::client {

enum class ModuleState { kSame, kChanged, kGone, kUnknown };

class ModuleStates {
 public:
  // `digest`: SHA-256 of the file as it was, in hexadecimal; `since`: when it was read, in seconds since the epoch.
  // kUnknown: it cannot be seen from here, or its file system does not answer; that is waited for a limited time.
  ModuleState state_of(const std::string& path, const std::string& digest, uint64_t since);

 private:
  std::map<std::string, ModuleState> known_;  // by path and digest
  std::set<std::string> silent_;              // folders with a file that did not answer
};

}  // namespace phybin::client
