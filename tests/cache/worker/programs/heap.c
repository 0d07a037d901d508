// A heap that grows far behind the program.
#define _DEFAULT_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

int main(void) {
  enum { kSteps = 30 };
  for (int i = 0; i < kSteps; ++i) {
    char* block = sbrk(100 << 20);
    if (block == (char*)-1) return printf("no room at step %d\n", i), 1;
    block[0] = 1;
    block[(100 << 20) - 1] = 2;
  }
  puts("3000 MiB");
  return 0;
}
