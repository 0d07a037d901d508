// A blocked product of double matrices whose inner loop compilers vectorise.
#include <math.h>

#include "bench.h"

enum { kSize = 96, kBlock = 32 };
static double a[kSize][kSize], b[kSize][kSize], c[kSize][kSize];

static __attribute__((noinline)) void multiply(void) {
  for (int ii = 0; ii < kSize; ii += kBlock)
    for (int kk = 0; kk < kSize; kk += kBlock)
      for (int i = ii; i < ii + kBlock; i++)
        for (int k = kk; k < kk + kBlock; k++) {
          double factor = a[i][k];
          for (int j = 0; j < kSize; j++) c[i][j] += factor * b[k][j];
        }
}

int main(int argc, char** argv) {
  long rounds = bench_size(argc, argv);
  if (rounds <= 0) return bench_finish_real("dgemm", 0);
  for (int i = 0; i < kSize; i++)
    for (int j = 0; j < kSize; j++) {
      a[i][j] = 1.0 / (1 + i + j);
      b[i][j] = i == j ? 1 : 0.001 * ((i * 7 + j) % 13);
    }
  for (long round = 0; round < rounds; round++) multiply();
  double sum = 0, direct = 0;
  for (int i = 0; i < kSize; i++)
    for (int j = 0; j < kSize; j++) sum += c[i][j];
  for (int k = 0; k < kSize; k++) direct += a[5][k] * b[k][9];
  bench_require(fabs(c[5][9] - (double)rounds * direct) < 1e-9 * c[5][9], "one element");
  return bench_finish_real("dgemm", sum);
}
