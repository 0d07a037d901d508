// Runs batches of cases: writes them for the runner, starts it natively or under the translator, reads the results.
#pragma once

#include <string>
#include <vector>

#include "tests/differential/state.h"

namespace phybin::difftest {

struct ResultRecord {
  uint64_t gpr[16];
  uint64_t flags;
  uint64_t digest;
  uint64_t index;
  uint64_t mxcsr;
  uint8_t vector[16][32];
  uint8_t fx[512];
  uint32_t signal;
  int32_t signal_code;
  uint64_t rip;
  uint64_t fault_address;
  uint64_t unused;
};
static_assert(offsetof(ResultRecord, signal) == RESULT_SIGNAL && offsetof(ResultRecord, rip) == RESULT_RIP);
static_assert(offsetof(ResultRecord, fault_address) == RESULT_FAULT_ADDRESS);
static_assert(offsetof(ResultRecord, flags) == RESULT_FLAGS && offsetof(ResultRecord, digest) == RESULT_DIGEST);
static_assert(offsetof(ResultRecord, index) == RESULT_INDEX && offsetof(ResultRecord, mxcsr) == RESULT_MXCSR);
static_assert(offsetof(ResultRecord, vector) == RESULT_VECTOR && offsetof(ResultRecord, fx) == RESULT_FX);
static_assert(sizeof(ResultRecord) == RESULT_BYTES);

struct Case {
  const Snippet* snippet = nullptr;
  uint64_t address = 0;  // that its code has to have; 0: any. Those of one batch ascend.
  CaseRecord state{};
};

// What became of a case in one run.
struct Outcome {
  enum Kind : uint8_t { kDone, kDied, kTimeout, kSkipped };
  Kind kind = kDone;
  int status = 0;       // of wait(), where the runner died
  std::string message;  // what it said last
  ResultRecord result{};
  std::vector<uint8_t> arena;  // if asked for
};

// A way to run the runner: natively (empty prefix) or under a program.
struct Machine {
  std::vector<std::string> prefix;
  std::string runner;
  std::string directory;  // for batch and result files
  bool faults = false;    // signals are results
};

// Runs all cases, going on after a case that kills the machine; what is likely to die of the same cause is skipped,
// because every death costs a start: other states of the snippet, and the rest of the form after kDeathsOfForm
// snippets. `dump` also returns the arena.
constexpr unsigned kDeathsOfForm = 2;
std::vector<Outcome> run_cases(const Machine& machine, const std::vector<Case>& cases, bool dump);

// Code address of every case when they are run as one batch; `code` receives the bytes behind the case records.
// Addresses that are asked for lie behind where the code would lie anyway.
std::vector<uint64_t> place_cases(const std::vector<Case>& cases, std::vector<uint8_t>& code);

}  // namespace phybin::difftest
