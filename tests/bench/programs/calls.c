// Calls and returns: plain recursion, mutual recursion, and qsort, whose comparison is an indirect call out of libc.
#include "bench.h"

static __attribute__((noinline)) unsigned fibonacci(unsigned n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

static __attribute__((noinline)) unsigned takeuchi(unsigned x, unsigned y, unsigned z) {
  return y >= x ? z : takeuchi(takeuchi(x - 1, y, z), takeuchi(y - 1, z, x), takeuchi(z - 1, x, y));
}

static int compare(const void* a, const void* b) {
  uint32_t x = *(const uint32_t*)a, y = *(const uint32_t*)b;
  return (x > y) - (x < y);
}

enum { kCount = 4000 };
static uint32_t numbers[kCount];

int main(int argc, char** argv) {
  uint64_t digest = 1;
  uint32_t random = 12345;
  for (long round = bench_size(argc, argv); round > 0; round--) {
    unsigned f = fibonacci(20 + round % 2);
    bench_require(f == (round % 2 ? 10946 : 6765), "fibonacci");
    digest = bench_mix(digest, f);
    digest = bench_mix(digest, takeuchi(12, 8, 4));
    for (int i = 0; i < kCount; i++) numbers[i] = bench_random(&random);
    qsort(numbers, kCount, sizeof numbers[0], compare);
    for (int i = 1; i < kCount; i++) bench_require(numbers[i - 1] <= numbers[i], "qsort");
    digest = bench_mix(digest, numbers[kCount / 2]);
  }
  return bench_finish("calls", digest);
}
