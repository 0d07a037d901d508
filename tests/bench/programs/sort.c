// Integer code with unpredictable branches: a quicksort and a hash table with open addressing.
#include "bench.h"

static void quicksort(uint32_t* a, long low, long high) {
  while (low < high) {
    uint32_t pivot = a[(low + high) / 2];
    long i = low, j = high;
    while (i <= j) {
      while (a[i] < pivot) i++;
      while (a[j] > pivot) j--;
      if (i <= j) {
        uint32_t t = a[i];
        a[i++] = a[j];
        a[j--] = t;
      }
    }
    if (j - low < high - i) {
      quicksort(a, low, j);
      low = i;
    } else {
      quicksort(a, i, high);
      high = j;
    }
  }
}

enum { kCount = 20000, kSlots = 65536 };
static uint32_t numbers[kCount];
static struct Slot { uint32_t key, count; } table[kSlots];

static void count_key(uint32_t key) {
  uint32_t slot = (key * 2654435761u) >> 16;
  while (table[slot].count && table[slot].key != key) slot = (slot + 1) % kSlots;
  table[slot].key = key;
  table[slot].count++;
}

int main(int argc, char** argv) {
  uint64_t digest = 1;
  uint32_t random = 2463534242u;
  for (long round = bench_size(argc, argv); round > 0; round--) {
    for (int i = 0; i < kCount; i++) numbers[i] = bench_random(&random) % 30000;
    quicksort(numbers, 0, kCount - 1);
    for (int i = 0; i < kCount; i++) {
      bench_require(i == 0 || numbers[i - 1] <= numbers[i], "quicksort");
      count_key(numbers[i]);
    }
    digest = bench_mix(digest, numbers[kCount / 3]);
  }
  for (int i = 0; i < kSlots && digest != 1; i++)
    if (table[i].count) digest = bench_mix(digest, (uint64_t)table[i].key << 32 | table[i].count);
  return bench_finish("sort", digest);
}
