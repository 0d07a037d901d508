// Recorded results: what an x86_64 CPU made of the cases, for machines that have none.
//
// The cases themselves are made again from the seed. Of each result only those bytes are kept that are not what they
// were before; the file is made to be compressed as a whole by something that is good at it. Where the code of a case
// lay is kept too, as results depend on it. A digest of each unit's cases, and of what is compared of their results,
// tells whether the recording is still of the form that bears its name.
#pragma once

#include <string>
#include <vector>

#include "tests/differential/compare.h"
#include "tests/differential/units.h"

namespace phybin::difftest {

struct RecordedResult {
  struct Word {
    uint8_t index;  // of 8 bytes in ResultRecord
    uint8_t mask;   // of its bytes that have changed
    uint64_t value;
  };
  bool done = false;  // false: this CPU could not do it, so nobody is asked to
  std::vector<Word> words;
};

struct RecordedUnit {
  std::string name;
  uint32_t digest = 0;              // of its cases
  std::vector<uint32_t> addresses;  // of its snippets; they ascend until a new batch begins
  std::vector<RecordedResult> results;
};

struct Recording {
  std::string cpu;
  UnitOptions options;
  CompareOptions compare;
  unsigned sequences = 0;
  std::vector<RecordedUnit> units;  // forms, then sequences
};

// The CPU of this machine, as people name it; empty where it is no x86_64 one.
std::string this_cpu();

// Gives the cases of a unit the addresses that the recording has for its snippets. False if it cannot be the same
// unit.
bool take_addresses(Unit& unit, const RecordedUnit& recorded);
// Of a unit whose cases have their addresses.
uint32_t digest_of_cases(const Unit& unit);

// `outcomes` are those of the unit's cases.
RecordedUnit record_unit(const Unit& unit, const std::vector<Outcome>& outcomes, const CompareOptions& compare);
// `compare` is what it was recorded with.
Outcome recorded_outcome(const Case& item, const RecordedResult& recorded, const CompareOptions& compare);

// Both return what went wrong, or nothing.
std::string write_recording(const std::string& path, const Recording& recording);
std::string read_recording(const std::string& path, Recording& recording);

}  // namespace phybin::difftest
