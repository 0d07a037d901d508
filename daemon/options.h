// phybind's command line.
#pragma once

#include <string>

namespace phybin::daemon {

struct Options {
  bool system = false;  // else a user's own
  std::string socket, cache, compiler;
  std::string config;                     // empty: the system's, if there is one
  std::string keys = "/etc/phybin/keys";  // folder of the public keys that imports may be signed with
  std::string topology;                   // folder that tells of memory nodes; empty: the system's
  std::string fault_point;                // for tests: where to die (fault_point.h)
  bool help = false, version = false;
};

// An empty string, or what is wrong. Places that were not given are filled in: those of --system or --user.
std::string parse_options(int argc, char** argv, Options& options);

std::string usage();

}  // namespace phybin::daemon
