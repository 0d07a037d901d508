// Folders that translators left in /tmp when they were killed: /tmp/phybin-jit-*.
//
// /tmp is everybody's, and this runs as root: between a look at a name and what is done to it, somebody may have put
// something else there. So nothing is reached by a path: folders are opened one below the other without following
// links, what was opened is looked at, and names are removed from the folder that was opened. What such a folder may
// contain is its owner's own: if there is anything of another user's in it, or another file system, all of it stays.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace phybin::client {

struct LeftoverRules {
  std::string folder = "/tmp";
  uint64_t least_age = 86400;  // seconds since anything in it changed
  bool dry_run = false;        // only say what would be removed
};

struct Leftover {
  std::string name;
  bool removed = false;  // with dry_run: would be
  bool failed = false;   // it was to be removed, but something could not be
  std::string reason;    // why it stays
  uint64_t files = 0, bytes = 0;
};

// Called before each folder is looked at.
using LeftoverProgress = std::function<void(uint64_t done, uint64_t total, const std::string& name)>;

// Called while something goes on within one folder.
using LeftoverAlive = std::function<void()>;

// Looks at all, removes those that nobody uses. Root cleans up after everybody, others after themselves. `problem`:
// the folder itself cannot be read; empty otherwise.
std::vector<Leftover> clean_leftovers(const LeftoverRules& rules, const LeftoverProgress& progress,
                                      const LeftoverAlive& alive, std::string& problem);

}  // namespace phybin::client
