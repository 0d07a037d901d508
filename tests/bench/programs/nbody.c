// Scalar double arithmetic with square roots and divisions: planets that attract each other.
#include <math.h>

#include "bench.h"

enum { kBodies = 5 };
static struct Body { double x[3], v[3], mass; } bodies[kBodies];

static void place(void) {
  for (int i = 0; i < kBodies; i++) {
    double distance = i * i + 0.25 * i;
    bodies[i].x[0] = i % 2 ? distance : -distance;
    bodies[i].x[1] = 0.3 * distance;
    bodies[i].x[2] = 0.05 * i;
    double speed = i ? 6.0 / sqrt(distance) : 0;
    bodies[i].v[0] = -0.28 * speed;
    bodies[i].v[1] = i % 2 ? 0.96 * speed : -0.96 * speed;
    bodies[i].v[2] = 0.01 * i;
    bodies[i].mass = i ? 0.01 / i : 39.5;
  }
}

static __attribute__((noinline)) void advance(double dt) {
  for (int i = 0; i < kBodies; i++)
    for (int j = i + 1; j < kBodies; j++) {
      double dx = bodies[i].x[0] - bodies[j].x[0];
      double dy = bodies[i].x[1] - bodies[j].x[1];
      double dz = bodies[i].x[2] - bodies[j].x[2];
      double square = dx * dx + dy * dy + dz * dz;
      double magnitude = dt / (square * sqrt(square));
      double mi = bodies[i].mass * magnitude, mj = bodies[j].mass * magnitude;
      bodies[i].v[0] -= dx * mj;
      bodies[i].v[1] -= dy * mj;
      bodies[i].v[2] -= dz * mj;
      bodies[j].v[0] += dx * mi;
      bodies[j].v[1] += dy * mi;
      bodies[j].v[2] += dz * mi;
    }
  for (int i = 0; i < kBodies; i++)
    for (int axis = 0; axis < 3; axis++) bodies[i].x[axis] += dt * bodies[i].v[axis];
}

static double energy(void) {
  double e = 0;
  for (int i = 0; i < kBodies; i++) {
    const double* v = bodies[i].v;
    e += 0.5 * bodies[i].mass * (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
    for (int j = i + 1; j < kBodies; j++) {
      double square = 0;
      for (int axis = 0; axis < 3; axis++) {
        double d = bodies[i].x[axis] - bodies[j].x[axis];
        square += d * d;
      }
      e -= bodies[i].mass * bodies[j].mass / sqrt(square);
    }
  }
  return e;
}

int main(int argc, char** argv) {
  long rounds = bench_size(argc, argv);
  if (rounds <= 0) return bench_finish_real("nbody", 0);
  place();
  double before = energy();
  for (long round = 0; round < rounds; round++) advance(1e-5);
  double after = energy();
  bench_require(fabs(after - before) < 1e-4 * fabs(before), "conservation of energy");
  return bench_finish_real("nbody", after);
}
