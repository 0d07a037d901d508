// Compares what two machines made of a case, leaving out what the architecture leaves undefined.
#pragma once

#include <string>

#include "tests/differential/session.h"

namespace phybin::difftest {

struct CompareOptions {
  bool mxcsr_flags = false;    // the exception flags of MXCSR
  bool nan_payload = true;     // sign and payload of NaN results
  bool x87_status = true;      // exception flags and condition codes
  bool fault_progress = true;  // how far a faulting instruction got: memory, pointers of strings, x87 state
  bool lock_address = true;    // the address of a faulting LOCKed access within 16 bytes
};

// Flags over a piece of code that may branch: what is undefined at its end, and whether an instruction reads a flag
// that may be undefined. `cl` is the value of CL if it is known, else negative.
struct FlagFlow {
  uint32_t undefined_at_end = 0;
  bool reads_undefined = false;
};
FlagFlow flag_flow(const std::vector<Instruction>& code, int cl);

// The result with everything that is not compared set to zero.
ResultRecord canonical(const Case& item, const ResultRecord& result, const CompareOptions& options);
// A digest of what of a case's result is compared, and how.
uint64_t digest_of_comparison(const Case& item);
bool same_result(const Case& item, const ResultRecord& a, const ResultRecord& b, const CompareOptions& options);

// Differences for people, one a line; `expected` first.
std::string describe_difference(const Case& item, const Outcome& expected, const Outcome& actual,
                                const CompareOptions& options);
// Disassembly and initial state.
std::string describe_case(const Case& item, uint64_t address);

}  // namespace phybin::difftest
