// Calls a thousand functions that are spread over a library of 100 MiB.
#include <stdio.h>

int call_page(int page);

int main(void) {
  unsigned sum = 0;
  for (int i = 0; i < 1000; ++i) sum = sum * 31 + (unsigned)call_page(i * 25 + i % 7);
  printf("%u\n", sum);
  return 0;
}
