// long double: arithmetic to the last bit, conversions, text, libm, control word, exceptions with and without traps.
#define _GNU_SOURCE
#include <fenv.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "check.h"

static uint64_t seed = 1, digest;

static uint64_t next(void) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return seed >> 11 ^ seed << 40;
}

static void mix(long double v) {
  uint64_t parts[2] = {0, 0};
  memcpy(parts, &v, 10);
  digest = (digest ^ parts[0]) * 0x9e3779b97f4a7c15u;
  digest = (digest ^ parts[1] ^ digest >> 29) * 0xbf58476d1ce4e5b9u;
}

// Exponents close together, so that sums round and cancel; now and then anything.
static long double number(void) {
  uint64_t significand = next();
  if (next() % 4 == 0) significand |= ~UINT64_C(0) << next() % 64;
  if (next() % 4 == 0) significand &= ~UINT64_C(0) << next() % 64;
  uint64_t parts[2] = {significand | UINT64_C(1) << 63, 0x3fff + next() % 70};
  if (next() % 16 == 0) parts[1] = next() % 0x7fff + 1;
  parts[1] |= (next() & 1) << 15;
  if (next() % 64 == 0) parts[0] = parts[1] = 0;
  long double v;
  memcpy(&v, parts, 10);
  return v;
}

static void arithmetic(int count) {
  while (count-- > 0) {
    volatile long double a = number(), b = number();
    mix(a + b);
    mix(a - b);
    mix(b - a);
    mix(a * b);
    mix(a / b);
    mix(a + (double)b);
    mix((float)a * b);
    mix((double)a - b);
    mix((double)a);
    mix((float)b);
    mix((int64_t)fmodl(a, 1e18L));
    mix((int32_t)fmodl(b, 1e9L));
    mix(sqrtl(fabsl(a)));
    mix(rintl(b));
    mix((a < b) + 2 * (a == b) + 4 * (a > b) + 8 * isless(a, 0.0L) + 16 * isunordered(a, b));
    mix(a < b ? -a : fabsl(b));
    mix((long double)(int64_t)next() + (int32_t)next());
  }
}

static void rounding(void) {
  static const int kModes[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
  for (int i = 0; i < 4; ++i) {
    fesetround(kModes[i]);
    arithmetic(200);
    printf("mode %d: %016lx\n", i, digest);
  }
  fesetround(FE_TONEAREST);
  for (int precision = 0; precision < 4; ++precision) {
    if (precision == 1) continue;  // reserved
    uint16_t saved, control;
    __asm__ volatile("fnstcw %0" : "=m"(saved));
    control = (saved & ~0x300) | precision << 8;
    __asm__ volatile("fldcw %0" : : "m"(control));
    volatile long double three = 3, third = 1 / three;
    mix(third);
    mix(third * three + third);
    __asm__ volatile("fldcw %0" : : "m"(saved));
    printf("precision %d: %016lx\n", precision, digest);
  }
}

static void text(void) {
  char line[200];
  static const char* const kTexts[] = {"0.1",          "1e4932", "1e-4950", "123456789012345678901234567890",
                                       "0x1.8p-16400", "inf",    "-nan",    "3.14159265358979323846264338327950288"};
  for (unsigned i = 0; i < sizeof kTexts / sizeof kTexts[0]; ++i) {
    long double v = strtold(kTexts[i], NULL), w = 0;
    snprintf(line, sizeof line, "%.25Lg %La %.3Lf", v, v, isfinite(v) && fabsl(v) < 1e30L ? v : 0);
    printf("%s -> %s\n", kTexts[i], line);
    CHECK(sscanf(kTexts[i], "%Lf", &w) == 1);
    CHECK(memcmp(&v, &w, 10) == 0);
  }
}

// Digits that the last bit of a result does not reach.
static void functions(void) {
  for (long double x = 0.0625L; x < 30; x = x * 1.75L + 0.03125L) {
    printf("%.3Lg: %.15Lg %.15Lg %.15Lg %.15Lg", x, sinl(x), cosl(x), tanl(x), atanl(x));
    printf(" %.15Lg %.15Lg %.15Lg %.15Lg", expl(x), logl(x), log2l(x), powl(x, 1.3L));
    printf(" %.15Lg %.15Lg %.15Lg %.15Lg\n", sinhl(x), log1pl(x), tgammal(x), atan2l(x, 2));
    CHECK(fmodl(x * 1e9L, x) < x);
    CHECK(remainderl(7 * x, 2 * x) == -x || fabsl(remainderl(7 * x, 2 * x)) <= x);
    CHECK(scalbnl(x, 70) == x * 0x1p70L && ilogbl(x) == (int)floorl(log2l(x)));
    int exponent;
    long double fraction = frexpl(x, &exponent);
    CHECK(ldexpl(fraction, exponent) == x && fraction >= 0.5L && fraction < 1);
    CHECK(lrintl(x) == (long)rintl(x) && truncl(-x) == -floorl(x));
  }
}

static sigjmp_buf resume;

static void handler(int number, siginfo_t* info, void* context) {
  const ucontext_t* frame = context;
  printf("signal %d code %d vector %d status %#x\n", number, info->si_code, (int)frame->uc_mcontext.gregs[REG_TRAPNO],
         frame->uc_mcontext.fpregs->swd & 0xbf);
  CHECK(info->si_addr == (void*)frame->uc_mcontext.gregs[REG_RIP]);
  siglongjmp(resume, 1);
}

static void exceptions(void) {
  static const int kExceptions[] = {FE_DIVBYZERO, FE_INVALID, FE_OVERFLOW, FE_UNDERFLOW, FE_INEXACT};
  volatile long double zero = 0, one = 1, three = 3, big = 1e4932L, tiny = 1e-4932L, result;
  feclearexcept(FE_ALL_EXCEPT);
  result = one / three;
  CHECK(fetestexcept(FE_ALL_EXCEPT) == FE_INEXACT);
  result = one / zero;
  CHECK(isinf(result) && fetestexcept(FE_DIVBYZERO));
  fenv_t saved;
  feholdexcept(&saved);
  CHECK(fetestexcept(FE_ALL_EXCEPT) == 0);
  feupdateenv(&saved);
  CHECK(fetestexcept(FE_ALL_EXCEPT) == (FE_INEXACT | FE_DIVBYZERO));

  struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
  sigaction(SIGFPE, &action, NULL);
  for (int i = 0; i < 5; ++i) {
    feclearexcept(FE_ALL_EXCEPT);
    feenableexcept(kExceptions[i]);
    if (sigsetjmp(resume, 1) == 0) {
      if (i == 0) result = one / zero;
      if (i == 1) result = zero / zero;
      if (i == 2) result = big * big;
      if (i == 3) result = tiny * tiny * tiny;
      if (i == 4) result = one / three;
      __asm__ volatile("fwait");
      CHECK(!"a signal comes");
    }
    fedisableexcept(FE_ALL_EXCEPT);
    __asm__ volatile("fninit");
  }
  // What an unmasked exception keeps from being stored.
  volatile double kept = 2;
  feenableexcept(FE_INVALID);
  if (sigsetjmp(resume, 1) == 0) {
    __asm__ volatile("fldz; fldz; fdivrp; fstpl %0; fwait" : "+m"(kept));
    CHECK(!"a signal comes");
  }
  CHECK(kept == 2);
  fesetenv(FE_DFL_ENV);
}

int main(void) {
  arithmetic(3000);
  printf("arithmetic: %016lx\n", digest);
  rounding();
  text();
  functions();
  exceptions();
  return finish("long_double");
}
