// The C library's string functions, with the code that it chooses for the processor that it finds.
#include <string.h>

#include "bench.h"

enum { kLength = 16384 };
static char text[kLength + 1], copy[kLength + 1];

int main(int argc, char** argv) {
  static const char* const words[] = {"alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta"};
  uint64_t digest = 1;
  uint32_t random = 362436069u;
  long rounds = bench_size(argc, argv);
  for (long round = 0; round < rounds; round++) {
    size_t used = 0;
    while (used < kLength - 16) {
      const char* word = words[bench_random(&random) % 7];
      size_t length = strlen(word);
      memcpy(text + used, word, length);
      used += length;
      text[used++] = ' ';
    }
    text[used] = 0;
    bench_require(strlen(text) == used, "strlen");
    for (int i = 0; i < 16; i++) {
      memcpy(copy, text + i, used + 1 - i);
      digest = bench_mix(digest, strlen(copy));
      memmove(copy + 32, copy, used - 64);
      memset(copy + 100 * i, '-', 50 + i);
      bench_require(memcmp(copy + 8000, text + 8000 + i - 32, 200) == 0, "memmove");
    }
    long found = 0;
    for (const char* at = text; (at = strstr(at, "delta eps")); at++) found++;
    digest = bench_mix(digest, found);
    for (const char* at = text; (at = memchr(at, 'z', text + used - at)); at++) digest = bench_mix(digest, at - text);
    strcpy(copy, text);
    bench_require(strcmp(copy, text) == 0, "strcpy");
    int count[7] = {0};
    for (char* word = strtok(copy, " "); word; word = strtok(NULL, " "))
      for (int i = 0; i < 7; i++)
        if (strcmp(word, words[i]) == 0) count[i]++;
    for (int i = 0; i < 7; i++) digest = bench_mix(digest, count[i]);
  }
  return bench_finish("strings", digest);
}
