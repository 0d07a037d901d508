// Two threads: a mutex that both take, an atomic addition and a compare-and-swap loop on a shared counter.
#include <pthread.h>
#include <stdatomic.h>

#include "bench.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t guarded;
static _Atomic uint64_t added, exchanged;

static void* work(void* argument) {
  long rounds = *(long*)argument;
  for (long round = 0; round < rounds; round++) {
    for (int i = 0; i < 10; i++) {
      pthread_mutex_lock(&mutex);
      guarded += (uint64_t)i;
      pthread_mutex_unlock(&mutex);
    }
    for (int i = 0; i < 100; i++) atomic_fetch_add(&added, (uint64_t)i);
    for (int i = 0; i < 10; i++) {
      uint64_t old = atomic_load(&exchanged);
      while (!atomic_compare_exchange_weak(&exchanged, &old, old + 1)) {
      }
    }
  }
  return NULL;
}

int main(int argc, char** argv) {
  long rounds = bench_size(argc, argv);
  if (rounds <= 0) return bench_finish("threads", 0);
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) bench_require(pthread_create(&threads[i], NULL, work, &rounds) == 0, "pthread_create");
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  uint64_t n = (uint64_t)rounds;
  bench_require(guarded == 90 * n && added == 9900 * n && exchanged == 20 * n, "sums");
  return bench_finish("threads", guarded + added + exchanged);
}
