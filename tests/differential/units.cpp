// See units.h.
#include "tests/differential/units.h"

#include <algorithm>
#include <cstdio>

namespace phybin::difftest {
namespace {

void add_case(Unit& unit, const Snippet& snippet, const UnitOptions& options, Random random) {
  Case item;
  item.snippet = &snippet;
  item.state = make_state(snippet, options.state, random);
  unit.cases.push_back(item);
}

}  // namespace

std::string unit_name(const Form& form) {
  std::string name = form.group + ": " + form.name + " [";
  char text[8];
  if (form.prefix) name += (std::snprintf(text, sizeof(text), "%02x ", form.prefix), text);
  for (uint8_t byte : form.opcode) name += (std::snprintf(text, sizeof(text), "%02x", byte), text);
  if (form.digit >= 0) name += (std::snprintf(text, sizeof(text), "/%d", form.digit), text);
  return name + "]";
}

Unit form_unit(const Form& form, const UnitOptions& options) {
  const unsigned states = options.count >= 256 ? 16 : std::min(options.count, 6u);
  const unsigned variants = std::max(1u, options.count / states);
  const uint64_t hash = hash_text(form.name) ^ form.opcode.back() ^ hash_text(form.group);
  Unit unit;
  unit.name = unit_name(form);
  unit.snippets.reserve(variants);
  for (unsigned variant = 0; variant < variants; variant++) {
    Random random{options.seed, hash, variant};
    unit.snippets.push_back(build_single(form, options.faults, random));
    for (unsigned state = 0; state < states; state++) {
      add_case(unit, unit.snippets.back(), options, Random{options.seed, hash, variant, state + 1});
    }
  }
  return unit;
}

Unit sequence_unit(const std::vector<const Form*>& forms, unsigned number, const UnitOptions& options) {
  Unit unit;
  unit.name = "sequence " + std::to_string(number);
  Random random{options.seed, hash_text("sequence"), number};
  unit.snippets.push_back(build_sequence(forms, options.faults, random));
  unit.snippets.back().number = number;
  for (unsigned state = 0; state < options.sequence_states; state++) {
    add_case(unit, unit.snippets.back(), options, Random{options.seed, hash_text("sequence"), number, state + 1});
  }
  return unit;
}

}  // namespace phybin::difftest
