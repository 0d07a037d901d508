// What the workloads share: the size argument, a random generator that gives the same numbers on every machine, and
// the digest. A workload does `size` rounds of its work and prints one line; size 0 does nothing, so that its
// instructions are those of starting and ending, which tests/bench/run subtracts. Floating-point results are printed
// rounded: ARM64 compilers contract to fused multiply-add where x86_64 ones do not.
#ifndef PHYBIN_TESTS_BENCH_BENCH_H
#define PHYBIN_TESTS_BENCH_BENCH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline long bench_size(int argc, char** argv) { return argc > 1 ? atol(argv[1]) : 1; }

static inline uint32_t bench_random(uint32_t* state) {
  uint32_t x = *state;
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  return *state = x;
}

static inline uint64_t bench_mix(uint64_t digest, uint64_t value) {
  return (digest ^ value) * 0x100000001b3u + (digest >> 29);
}

static inline void bench_require(int condition, const char* what) {
  if (!condition) {
    fprintf(stderr, "wrong result: %s\n", what);
    exit(1);
  }
}

static inline int bench_finish(const char* name, uint64_t digest) {
  printf("%s %016llx\n", name, (unsigned long long)digest);
  return 0;
}

static inline int bench_finish_real(const char* name, double value) {
  printf("%s %.7e\n", name, value);
  return 0;
}

#endif
