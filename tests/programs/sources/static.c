// The smallest useful program: output, environment, arguments, exit status.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  printf("%d arguments, first '%s'\n", argc - 1, argc > 1 ? argv[1] : "");
  double sum = 0;
  for (int i = 1; i < 1000; i++) sum += 1.0 / i;
  printf("%.15g %zu\n", sum, strlen(getenv("HOME") ? "home" : ""));
  fputs("to stderr\n", stderr);
  return 42;
}
