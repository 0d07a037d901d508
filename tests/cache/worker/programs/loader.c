// Loads and unloads libraries.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static const char* const kLibraries[][2] = {{"libm.so.6", "cbrt"}, {"libresolv.so.2", 0}, {"libutil.so.1", 0},
                                            {"libnsl.so.1", 0},    {"libz.so.1", 0},      {"libexpat.so.1", 0}};

int main(void) {
  for (int round = 0; round < 3; ++round) {
    for (unsigned i = 0; i < sizeof kLibraries / sizeof kLibraries[0]; ++i) {
      void* library = dlopen(kLibraries[i][0], RTLD_NOW);
      if (library == NULL) continue;
      if (kLibraries[i][1] != NULL) {
        double (*function)(double) = (double (*)(double))dlsym(library, kLibraries[i][1]);
        printf("%.6f\n", function(2.0));
      }
      dlclose(library);
    }
  }
  return 0;
}
