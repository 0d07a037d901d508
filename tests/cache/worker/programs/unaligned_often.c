// Ordinary accesses at odd addresses, many at the same place.
#include <stdint.h>
#include <stdio.h>

static unsigned char memory[4096];

__attribute__((noinline)) static uint64_t sum(unsigned char* at, int count) {
  uint64_t result = 0;
  for (int i = 0; i < count; ++i) {
    *(volatile uint64_t*)(at + 13 * i) += (uint64_t)i;
    result += *(volatile uint32_t*)(at + 13 * i + 2);
  }
  return result;
}

int main(void) {
  uint64_t total = 0;
  for (int i = 0; i < 40; ++i) total += sum(memory + 1, 200);
  printf("%llu\n", (unsigned long long)total);
  return 0;
}
