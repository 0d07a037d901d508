// Units: an instruction form or a random sequence, with the cases that test it. A unit follows from its own name and
// the options alone, not from what else is run, and is the same on every host.
#pragma once

#include <string>
#include <vector>

#include "tests/differential/session.h"

namespace phybin::difftest {

// What the cases depend on.
struct UnitOptions {
  uint64_t seed = 1;
  unsigned count = 24;           // cases a form
  unsigned sequence_states = 4;  // cases a sequence
  bool faults = false;
  StateOptions state;
};

struct Unit {
  std::string name;
  std::vector<Snippet> snippets;
  std::vector<Case> cases;  // they point into `snippets`: a unit is moved, never copied

  Unit() = default;
  Unit(Unit&&) = default;
  Unit& operator=(Unit&&) = default;
};

// Tells a form from all others.
std::string unit_name(const Form& form);

Unit form_unit(const Form& form, const UnitOptions& options);
// The sequence `number` of those that can be made of `forms`.
Unit sequence_unit(const std::vector<const Form*>& forms, unsigned number, const UnitOptions& options);

}  // namespace phybin::difftest
