// Initial states: corner values that suit the instruction under test.
#pragma once

#include <cstddef>

#include "tests/differential/layout.h"
#include "tests/differential/snippet.h"

namespace phybin::difftest {

struct CaseRecord {
  uint64_t gpr[16];
  uint64_t flags;
  uint64_t code;
  uint64_t options;
  uint64_t mxcsr;
  uint8_t vector[16][32];
  uint8_t fx[512];
  uint8_t pattern[PATTERN_BYTES];
};
static_assert(offsetof(CaseRecord, flags) == CASE_FLAGS && offsetof(CaseRecord, code) == CASE_CODE);
static_assert(offsetof(CaseRecord, options) == CASE_OPTIONS && offsetof(CaseRecord, mxcsr) == CASE_MXCSR);
static_assert(offsetof(CaseRecord, vector) == CASE_VECTOR && offsetof(CaseRecord, fx) == CASE_FX);
static_assert(offsetof(CaseRecord, pattern) == CASE_PATTERN && sizeof(CaseRecord) == CASE_BYTES);

struct StateOptions {
  bool rounding = true;   // vary MXCSR.RC and the x87 rounding control
  bool ftz = true;        // vary MXCSR.FTZ and DAZ
  bool precision = true;  // vary the x87 precision control
};

CaseRecord make_state(const Snippet& snippet, const StateOptions& options, Random& random);

// Values (value.cpp).
uint64_t integer_value(Random& random, unsigned bits);
uint32_t float32_value(Random& random);
uint64_t float64_value(Random& random);
void float80_value(Random& random, uint8_t* out);
void fill_lanes(Random& random, Hint hint, uint8_t* out, size_t size);

}  // namespace phybin::difftest
