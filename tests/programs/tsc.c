// The time stamp counter: it never goes back, RDTSC and RDTSCP read the same one, and it runs as fast as CPUID says.
// CPUs that tell no frequency (leaf 0x15) are compared with nothing; PhyBin has to tell one.
#define _GNU_SOURCE
#include <cpuid.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <x86intrin.h>

#include "check.h"

static int is_phybin(void) {
  unsigned eax, ebx, ecx, edx;
  char name[13] = "";
  __cpuid(0x40000000, eax, ebx, ecx, edx);
  memcpy(name, &ebx, 4);
  memcpy(name + 4, &ecx, 4);
  memcpy(name + 8, &edx, 4);
  return strcmp(name, "PhyBinPhyBin") == 0;
}

// Ticks per second, 0: not told.
static double told_frequency(void) {
  unsigned denominator, numerator, crystal, edx;
  if (!__get_cpuid_count(0x15, 0, &denominator, &numerator, &crystal, &edx)) return 0;
  if (denominator == 0 || numerator == 0 || crystal == 0) return 0;
  if (is_phybin()) {
    CHECK(denominator == 1);
    CHECK((numerator & (numerator - 1)) == 0);
    CHECK(numerator == 1 || (uint64_t)crystal * (numerator / 2) < 1000000000);
  }
  return (double)crystal * numerator / denominator;
}

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

// A reading of the counter and the nanoseconds of the clock before and after.
struct reading {
  uint64_t before, ticks, after;
};

static struct reading read_both(void) {
  struct reading best = {0, 0, UINT64_MAX};
  for (int i = 0; i < 20; ++i) {  // whoever is interrupted between the two knows little
    struct reading r;
    r.before = now();
    r.ticks = __rdtsc();
    r.after = now();
    if (r.after - r.before < best.after - best.before) best = r;
  }
  return best;
}

static void test_speed(double frequency) {
  const struct timespec while_ = {0, 50000000};
  struct reading from = read_both();
  nanosleep(&while_, NULL);
  struct reading to = read_both();
  double ticks = (double)(to.ticks - from.ticks) * 1e9 / frequency;
  // The clock may be slewed, by half a part in a thousand.
  CHECK(ticks > (double)(to.before - from.after) * 0.999);
  CHECK(ticks < (double)(to.after - from.before) * 1.001);
}

static void test_order(void) {
  uint64_t last = __rdtsc();
  for (int i = 0; i < 100000; ++i) {
    unsigned aux;
    uint64_t ticks = i % 16 == 0 ? __rdtscp(&aux) : __rdtsc();
    _mm_lfence();
    if (ticks < last) {
      CHECK(!"went back");
      return;
    }
    last = ticks;
  }
}

// All 64 bits of both registers are written.
static void test_registers(void) {
  uint64_t low = ~(uint64_t)0, high = ~(uint64_t)0, id = ~(uint64_t)0;
  __asm__ volatile("rdtsc" : "+a"(low), "+d"(high));
  CHECK(low >> 32 == 0 && high >> 32 == 0);
  low = high = ~(uint64_t)0;
  __asm__ volatile("rdtscp" : "+a"(low), "+d"(high), "+c"(id));
  CHECK(low >> 32 == 0 && high >> 32 == 0 && id >> 32 == 0);
}

// TSC_AUX holds the CPU in its lower 12 bits; a move to another between the two readings is unlikely ten times.
static void test_cpu(void) {
  int same = 0;
  for (int i = 0; i < 10 && !same; ++i) {
    unsigned aux;
    __rdtscp(&aux);
    same = (int)(aux & 0xfff) == sched_getcpu();
  }
  CHECK(same);
}

// What else tells the frequency agrees.
static void test_agreement(double frequency) {
  unsigned eax, ebx, ecx, edx;
  CHECK(__get_cpuid_count(0x16, 0, &eax, &ebx, &ecx, &edx) && eax == (unsigned)(frequency / 1e6));
  FILE* file = fopen("/proc/cpuinfo", "r");
  CHECK(file != NULL);
  if (file == NULL) return;
  char line[4096];
  double megahertz = 0;
  while (fgets(line, sizeof line, file) != NULL && sscanf(line, "cpu MHz : %lf", &megahertz) != 1) continue;
  fclose(file);
  CHECK(megahertz > frequency / 1e6 - 0.001 && megahertz < frequency / 1e6 + 0.001);
}

int main(void) {
  double frequency = told_frequency();
  test_order();
  test_registers();
  test_cpu();
  if (frequency != 0) test_speed(frequency);
  if (is_phybin()) {
    CHECK(frequency >= 1e9);
    test_agreement(frequency);
  }
  return finish("tsc");
}
