// A library with something to compute.
#include <stdlib.h>
#include <string.h>

static int compare(const void* a, const void* b) { return *(const int*)a - *(const int*)b; }

int work(int rounds) {
  int values[64], sum = 0;
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < 64; ++i) values[i] = (i * 7919 + round) % 101;
    qsort(values, 64, sizeof values[0], compare);
    sum = sum * 31 + values[round % 64];
  }
  return sum;
}
