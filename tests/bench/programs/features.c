// Says whether the processor that CPUID describes can run the x86-64-v3 workloads.
#include <stdio.h>

int main(void) {
  __builtin_cpu_init();
  puts(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") ? "v3"
                                                                                                         : "v2");
  return 0;
}
