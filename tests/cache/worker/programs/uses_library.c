// Loads the library that it is given, several times.
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  for (int i = 0; i < 3; ++i) {
    void* library = dlopen(argv[argc - 1], RTLD_NOW);
    if (library == NULL) return puts(dlerror()), 1;
    int (*work)(int) = (int (*)(int))dlsym(library, "work");
    printf("%d\n", work(20 + i));
    if (i < 2) dlclose(library);
  }
  return 0;
}
