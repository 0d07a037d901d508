// What is remembered of earlier runs of a program: how much CPU time they took, and what translating it cost those
// that had no images. A program's past is the best guess of its future.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace phybin::daemon {

struct Run {
  double seconds = 0;          // CPU time
  uint64_t instructions = 0;   // guest instructions that were translated privately
  uint64_t private_bytes = 0;  // of code made of them
};

class RunHistory {
 public:
  using Key = std::pair<std::string, uint32_t>;  // program and user

  static constexpr size_t kRuns = 16;        // of a program
  static constexpr size_t kPrograms = 4096;  // the one that was seen last longest ago is forgotten

  struct Program {
    std::vector<Run> runs;                         // the oldest first
    uint64_t instructions = 0, private_bytes = 0;  // the most that one run translated itself
    uint64_t seen = 0;                             // counts up
    bool changed = false;                          // since it was saved
  };

  void add(const Key& key, const Run& run);
  // Takes over what was saved.
  void restore(const Key& key, Program program);
  // CPU seconds that a run of the age `seconds` will need yet: the mean of the earlier ones that were older in the
  // end; where there is none, as much again as it has had.
  double remaining(const Key& key, double seconds) const;
  // The program, or null.
  const Program* find(const Key& key) const;
  // Calls for each program that has changed since the last time.
  void for_changed(const std::function<void(const Key&, const Program&)>& call);

 private:
  std::map<Key, Program> programs_;
  uint64_t clock_ = 0;
};

}  // namespace phybin::daemon
