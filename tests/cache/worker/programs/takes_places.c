// Loads a library again and again and fills what is free in between.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <sys/mman.h>

int main(void) {
  double sum = 0;
  for (int round = 0; round < 8; ++round) {
    void* library = dlopen("libm.so.6", RTLD_NOW);
    double (*function)(double) = (double (*)(double))dlsym(library, "lgamma");
    sum += function(2.5 + round);
    dlclose(library);
    // In all sizes, so that holes of every size are filled.
    for (int i = 0; i < 24; ++i) mmap(NULL, 4096ul << i % 12, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
  printf("%.6f\n", sum);
  return 0;
}
