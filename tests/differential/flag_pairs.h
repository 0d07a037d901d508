// Flag pairs: every kind of instruction that writes flags, followed by every kind that reads them. A translator keeps
// the flags in several forms, and each way from a form to a use of it is code of its own: random sequences meet the
// rarer ones by chance only.
#pragma once

#include <string>
#include <vector>

#include "tests/differential/units.h"

namespace phybin::difftest {

// A mnemonic in all its encodings; operands below 32 bits and shifts by CL are kinds of their own.
struct FlagProducer {
  std::string name;  // "shl narrow cl"
  std::vector<const Form*> forms;
};

// The kinds that are among `forms`, in their order.
std::vector<FlagProducer> flag_producers(const std::vector<const Form*>& forms);

// The producer before each consumer that reads only what it leaves defined, `count` times with other operands: in
// turn at once and with something between them, with the flags compared at the end and with all of them overwritten
// there.
Unit flag_pair_unit(const FlagProducer& producer, unsigned count, const UnitOptions& options);

}  // namespace phybin::difftest
