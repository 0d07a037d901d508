// Many calls between libraries, system calls and jumps, with one output.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int compare(const void* a, const void* b) { return strcmp(*(char* const*)a, *(char* const*)b); }

static void* work(void* argument) {
  unsigned long sum = (unsigned long)argument;
  for (int round = 0; round < 300; ++round) {
    char texts[20][16];
    char* order[20];
    for (int i = 0; i < 20; ++i) {
      snprintf(texts[i], sizeof texts[i], "%d", (i * 7919 + round) % 1000);
      order[i] = texts[i];
    }
    qsort(order, 20, sizeof order[0], compare);
    sum = sum * 31 + strtoul(order[round % 20], NULL, 10);
    if (round % 8 == 0) usleep(1000);
    sum += getpid() == 0;
  }
  return (void*)sum;
}

int main(void) {
  pthread_t threads[3];
  for (long i = 0; i < 3; ++i) pthread_create(&threads[i], NULL, work, (void*)i);
  for (int i = 0; i < 3; ++i) {
    void* result;
    pthread_join(threads[i], &result);
    printf("%lu\n", (unsigned long)result);
  }
  return 0;
}
