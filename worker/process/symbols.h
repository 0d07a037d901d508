// Which file an address of guest code comes from, and where in it a function is: for messages to people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace phybin::process {

// A file that is mapped, as of when it was looked at.
struct Module {
  uint64_t start = 0, end = 0;  // from its first mapping to its last
  std::string path;
};

class Modules {
 public:
  // The module that holds `address`, looking at the process's mappings again if it is not known; null if none.
  const Module* find(uint64_t address);

 private:
  void refresh();
  std::vector<Module> modules_;
};

struct AddressRange {
  uint64_t start = 0, end = 0;  // empty: no such function
};
// Where the function stands in memory, by the module's symbol tables; one without a size ends where it starts + 1.
AddressRange find_function(const Module& module, const std::string& name);

}  // namespace phybin::process
