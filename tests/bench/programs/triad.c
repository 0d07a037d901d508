// STREAM's triad and a dot product: loads, stores and two operations an element.
#include <math.h>

#include "bench.h"

enum { kCount = 20000 };
static double a[kCount], b[kCount], c[kCount];

static __attribute__((noinline)) void triad(double scale) {
  for (int i = 0; i < kCount; i++) a[i] = b[i] + scale * c[i];
}

static __attribute__((noinline)) double dot(void) {
  double sum = 0;
  for (int i = 0; i < kCount; i++) sum += a[i] * c[i];
  return sum;
}

int main(int argc, char** argv) {
  long rounds = bench_size(argc, argv);
  if (rounds <= 0) return bench_finish_real("triad", 0);
  for (int i = 0; i < kCount; i++) {
    b[i] = 1 + i % 7;
    c[i] = 0.5 + i % 5;
  }
  double total = 0;
  for (long round = 0; round < rounds; round++) {
    triad(1.0 + 0.25 * (double)(round % 4));
    total += dot();
  }
  bench_require(a[8] == 2 + (1.0 + 0.25 * (double)((rounds - 1) % 4)) * 3.5, "one element");
  return bench_finish_real("triad", total);
}
