// Command line of difftest.
#pragma once

#include <string>
#include <vector>

#include "tests/differential/compare.h"
#include "tests/differential/units.h"

namespace phybin::difftest {

struct Options {
  std::string runner;
  std::string translator;  // command, split at spaces; empty: none
  std::vector<std::string> groups;
  std::string form_pattern;
  unsigned sequences = 0;
  unsigned every = 1;  // of the units of a recording
  bool singles = true;
  unsigned flag_pairs = 0;  // cases for each pair
  bool list = false;
  bool oracle_vs_oracle = false;
  bool inject_fault = false;
  bool quiet = false;
  unsigned reports = 40;       // failures described in full
  std::string record, replay;  // files
  UnitOptions units;
  CompareOptions compare;
};

// Ends the program with status 2 and a message if the command line is wrong.
Options parse_options(int argc, char** argv);

}  // namespace phybin::difftest
