// Conjugate gradient on a 27-point stencil, the matrix in compressed sparse rows: what HPCG does, on a small cube.
#include <math.h>

#include "bench.h"

enum { kSide = 12, kRows = kSide * kSide * kSide, kIterations = 12 };
static double values[27 * kRows];
static int columns[27 * kRows], row_start[kRows + 1];
static double x[kRows], b[kRows], r[kRows], p[kRows], ap[kRows];

static void build(void) {
  int n = 0;
  for (int row = 0; row < kRows; row++) {
    int cx = row % kSide, cy = row / kSide % kSide, cz = row / kSide / kSide;
    row_start[row] = n;
    for (int dz = -1; dz <= 1; dz++)
      for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) {
          int nx = cx + dx, ny = cy + dy, nz = cz + dz;
          if (nx < 0 || ny < 0 || nz < 0 || nx >= kSide || ny >= kSide || nz >= kSide) continue;
          columns[n] = (nz * kSide + ny) * kSide + nx;
          values[n++] = dx || dy || dz ? -1 : 26;
        }
  }
  row_start[kRows] = n;
}

static __attribute__((noinline)) void multiply(double* y, const double* v) {
  for (int row = 0; row < kRows; row++) {
    double sum = 0;
    for (int i = row_start[row]; i < row_start[row + 1]; i++) sum += values[i] * v[columns[i]];
    y[row] = sum;
  }
}

static __attribute__((noinline)) double dot(const double* u, const double* v) {
  double sum = 0;
  for (int i = 0; i < kRows; i++) sum += u[i] * v[i];
  return sum;
}

static __attribute__((noinline)) void axpy(double* y, double a, const double* v, double scale) {
  for (int i = 0; i < kRows; i++) y[i] = scale * y[i] + a * v[i];
}

int main(int argc, char** argv) {
  long rounds = bench_size(argc, argv);
  if (rounds <= 0) return bench_finish_real("cg", 0);
  double sum = 0;
  build();
  for (long round = 1; round <= rounds; round++) {
    for (int i = 0; i < kRows; i++) {
      x[i] = 0;
      b[i] = 1 + (i * round) % 17;
      r[i] = p[i] = b[i];
    }
    double rr = dot(r, r), first = rr;
    for (int iteration = 0; iteration < kIterations; iteration++) {
      multiply(ap, p);
      double alpha = rr / dot(p, ap);
      axpy(x, alpha, p, 1);
      axpy(r, -alpha, ap, 1);
      double next = dot(r, r);
      axpy(p, 1, r, next / rr);
      rr = next;
    }
    bench_require(rr < 1e-3 * first, "residual");
    sum += sqrt(dot(x, x));
  }
  return bench_finish_real("cg", sum);
}
