// Delta debugging: in each round all sequences that lack one contiguous piece, of every size by halves, run as one
// batch; the shortest that fails is the next round's start.
#include "tests/differential/reduce.h"

#include <deque>
#include <set>

namespace phybin::difftest {
namespace {

std::vector<int> units_of(const Snippet& snippet) {
  std::vector<int> units;
  for (const Instruction& instruction : snippet.code) {
    if (units.empty() || units.back() != instruction.unit) units.push_back(instruction.unit);
  }
  // A unit may have its parts in several places, as a loop has.
  std::set<int> seen;
  std::vector<int> unique;
  for (int unit : units) {
    if (seen.insert(unit).second) unique.push_back(unit);
  }
  return unique;
}

Snippet without(const Snippet& snippet, const std::set<int>& removed) {
  Snippet shorter = snippet;
  shorter.code.clear();
  shorter.main = -1;
  for (size_t i = 0; i < snippet.code.size(); i++) {
    if (removed.contains(snippet.code[i].unit)) continue;
    if (int(i) == snippet.main) shorter.main = int(shorter.code.size());
    shorter.code.push_back(snippet.code[i]);
  }
  return shorter;
}

}  // namespace

Snippet reduce(const Case& failing, const Machine& oracle, const Machine& tested, const CompareOptions& options) {
  Snippet best = *failing.snippet;
  for (;;) {
    const std::vector<int> units = units_of(best);
    std::deque<Snippet> candidates;
    for (size_t piece = units.size() / 2; piece > 0; piece /= 2) {
      for (size_t start = 0; start < units.size(); start += piece) {
        const size_t end = std::min(start + piece, units.size());
        Snippet shorter = without(best, {units.begin() + long(start), units.begin() + long(end)});
        // Flags that the manual leaves undefined must not flow on.
        const int cl = shorter.main >= 0 ? int(failing.state.gpr[kRcx] & 0xff) : -1;
        if (!shorter.code.empty() && !flag_flow(shorter.code, cl).reads_undefined) {
          candidates.push_back(std::move(shorter));
        }
      }
    }
    std::vector<Case> cases;
    for (const Snippet& snippet : candidates) {
      cases.push_back(failing);
      cases.back().snippet = &snippet;
    }
    if (cases.empty()) return best;
    const std::vector<Outcome> expected = run_cases(oracle, cases, false);
    const std::vector<Outcome> actual = run_cases(tested, cases, false);
    const Snippet* shortest = nullptr;
    for (size_t i = 0; i < cases.size(); i++) {
      if (expected[i].kind != Outcome::kDone) continue;
      const bool same =
          actual[i].kind == Outcome::kDone && same_result(cases[i], expected[i].result, actual[i].result, options);
      if (!same && (!shortest || cases[i].snippet->code.size() < shortest->code.size())) shortest = cases[i].snippet;
    }
    if (!shortest) return best;
    best = *shortest;
  }
}

}  // namespace phybin::difftest
