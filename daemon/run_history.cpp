// See run_history.h.
#include "daemon/run_history.h"

#include <algorithm>

namespace phybin::daemon {

void RunHistory::add(const Key& key, const Run& run) {
  if (programs_.size() >= kPrograms && programs_.find(key) == programs_.end()) {
    programs_.erase(std::min_element(programs_.begin(), programs_.end(),
                                     [](const auto& a, const auto& b) { return a.second.seen < b.second.seen; }));
  }
  Program& program = programs_[key];
  if (program.runs.size() == kRuns) program.runs.erase(program.runs.begin());
  program.runs.push_back(run);
  program.instructions = std::max(program.instructions, run.instructions);
  program.private_bytes = std::max(program.private_bytes, run.private_bytes);
  program.seen = ++clock_;
  program.changed = true;
}

void RunHistory::restore(const Key& key, Program program) {
  if (programs_.size() >= kPrograms) return;
  program.seen = ++clock_;
  program.changed = false;
  programs_[key] = std::move(program);
}

double RunHistory::remaining(const Key& key, double seconds) const {
  double sum = 0;
  size_t longer = 0;
  if (const Program* program = find(key)) {
    for (const Run& run : program->runs) {
      if (run.seconds <= seconds) continue;
      sum += run.seconds - seconds;
      ++longer;
    }
  }
  return longer != 0 ? sum / static_cast<double>(longer) : seconds;
}

const RunHistory::Program* RunHistory::find(const Key& key) const {
  const auto found = programs_.find(key);
  return found == programs_.end() ? nullptr : &found->second;
}

void RunHistory::for_changed(const std::function<void(const Key&, const Program&)>& call) {
  for (auto& [key, program] : programs_) {
    if (!std::exchange(program.changed, false)) continue;
    call(key, program);
  }
}

}  // namespace phybin::daemon
