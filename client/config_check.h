// What is wrong in a configuration file, by the tables of worker and daemon, which share it.
#pragma once

#include <string>
#include <vector>

namespace phybin::client {

struct ConfigProblem {
  unsigned line = 0;  // 0: of the whole file
  std::string text;
};

// `text` is the content of `file`. Ordered by line.
std::vector<ConfigProblem> config_problems(const std::string& file, const std::string& text);

}  // namespace phybin::client
