// Threads that pass through locks, conditions, atomics, thread-local data and joins.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { kThreads = 8, kRounds = 2000 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static int whose;
static long counter;
static atomic_long atomic_counter;
static _Thread_local int mine;

static void* work(void* data) {
  int number = (int)(long)data;
  for (int i = 0; i < kRounds; i++) {
    mine += number;
    atomic_fetch_add(&atomic_counter, 1);
    pthread_mutex_lock(&lock);
    counter++;
    pthread_mutex_unlock(&lock);
  }
  for (int i = 0; i < 20; i++) {
    pthread_mutex_lock(&lock);
    while (whose != number) pthread_cond_wait(&turn, &lock);
    whose = (whose + 1) % kThreads;
    pthread_cond_broadcast(&turn);
    pthread_mutex_unlock(&lock);
  }
  return (void*)(long)mine;
}

static void* give_back(void* data) { return data; }

int main(void) {
  pthread_t threads[kThreads];
  long total = 0;
  for (long i = 0; i < kThreads; i++) {
    if (pthread_create(&threads[i], NULL, work, (void*)i)) abort();
  }
  for (int i = 0; i < kThreads; i++) {
    void* result;
    pthread_join(threads[i], &result);
    total += (long)result;
  }
  printf("%ld %ld %ld\n", counter, atomic_load(&atomic_counter), total);
  // Many short ones: their stacks must be used again.
  for (long i = 0; i < 300; i++) {
    void* result;
    if (pthread_create(&threads[0], NULL, give_back, (void*)i)) abort();
    pthread_join(threads[0], &result);
    if ((long)result != i) abort();
  }
  puts("joined");
  return 0;
}
