// OpenMP: parallel loops, reductions, tasks.
#include <omp.h>
#include <stdio.h>

static long fibonacci(int n) {
  if (n < 2) return n;
  long a, b;
#pragma omp task shared(a) if (n > 12)
  a = fibonacci(n - 1);
#pragma omp task shared(b) if (n > 12)
  b = fibonacci(n - 2);
#pragma omp taskwait
  return a + b;
}

int main(void) {
  long sum = 0;
  double product = 1;
#pragma omp parallel for reduction(+ : sum) schedule(dynamic, 7) num_threads(4)
  for (int i = 0; i < 100000; i++) sum += i % 17;
#pragma omp parallel for reduction(* : product) num_threads(4)
  for (int i = 1; i < 40; i++) product *= 2;
  long result = 0;
#pragma omp parallel num_threads(4)
#pragma omp single
  result = fibonacci(18);
  printf("%ld %.0f %ld\n", sum, product, result);
  return 0;
}
