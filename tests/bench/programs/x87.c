// long double: the x87 unit on x86_64, 128-bit arithmetic in software on ARM64. The digits printed are common to
// both.
#include <math.h>

#include "bench.h"

static __attribute__((noinline)) int escape_time(long double cx, long double cy) {
  long double x = 0, y = 0;
  int n = 0;
  while (n < 100 && x * x + y * y < 4) {
    long double t = x * x - y * y + cx;
    y = 2 * x * y + cy;
    x = t;
    n++;
  }
  return n;
}

static __attribute__((noinline)) long double polynomial(const long double* a, int n, long double x) {
  long double sum = 0;
  while (n-- > 0) sum = sum * x + a[n];
  return sum;
}

int main(int argc, char** argv) {
  long double coefficients[20], total = 0;
  uint64_t digest = 1;
  long rounds = bench_size(argc, argv);
  if (rounds <= 0) return bench_finish_real("x87", 0);
  coefficients[0] = 1;
  for (int i = 1; i < 20; i++) coefficients[i] = coefficients[i - 1] / i;
  long double e = polynomial(coefficients, 20, 1);
  bench_require(fabsl(e - 2.7182818284590452354L) < 1e-17L, "e");
  for (long round = 0; round < rounds; round++) {
    for (int i = 0; i < 40; i++)
      digest = bench_mix(digest, escape_time(-2 + i * 0.0625L, 0.25L + (round % 16) * 0.0078125L));
    for (int i = 1; i <= 200; i++) total += polynomial(coefficients, 20, i / 256.0L) / i;
    for (int i = 1; i <= 100; i++) total += sqrtl(i);
  }
  printf("%.14Le ", total);
  return bench_finish("x87", digest);
}
