// libm and libc a second time, in a namespace of their own.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
  void* first = dlopen("libm.so.6", RTLD_NOW);
  void* second = dlmopen(LM_ID_NEWLM, "libm.so.6", RTLD_NOW);
  if (first == NULL || second == NULL) return puts(dlerror()), 1;
  double (*one)(double) = (double (*)(double))dlsym(first, "lgamma");
  double (*two)(double) = (double (*)(double))dlsym(second, "lgamma");
  printf("%d %d\n", one != two, one(3.5) == two(3.5));
  dlclose(second);
  printf("%.6f\n", one(2.5));
  dlmopen(LM_ID_NEWLM, "libm.so.6", RTLD_NOW);
  return 0;
}
