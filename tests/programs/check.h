// For the test programs: what they check says its name when it fails; main returns the number of failures. They print
// only what does not depend on addresses or timing, so their output is the same natively and translated.
#pragma once

#include <stdio.h>

static int failures;

#define CHECK(condition)                                             \
  do {                                                               \
    if (!(condition)) {                                              \
      ++failures;                                                    \
      printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                \
  } while (0)

static int finish(const char* name) {
  printf("%s: %s\n", name, failures == 0 ? "ok" : "FAILED");
  return failures != 0;
}
