// Threads: starting and joining many, locks, conditions, thread-local data, message passing without locks, fork in a
// process with threads.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { kThreads = 8, kRounds = 20000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long locked_sum;
static atomic_long atomic_sum;
static __thread long own;

static void* add(void* argument) {
  long id = (long)(intptr_t)argument;
  for (int i = 0; i < kRounds; ++i) {
    pthread_mutex_lock(&mutex);
    ++locked_sum;
    pthread_mutex_unlock(&mutex);
    atomic_fetch_add(&atomic_sum, 1);
    own += id;
  }
  return (void*)(intptr_t)own;
}

static void test_sums(void) {
  pthread_t threads[kThreads];
  for (long i = 0; i < kThreads; ++i) CHECK(pthread_create(&threads[i], NULL, add, (void*)(intptr_t)i) == 0);
  for (long i = 0; i < kThreads; ++i) {
    void* result;
    pthread_join(threads[i], &result);
    CHECK((long)(intptr_t)result == i * kRounds);
  }
  CHECK(locked_sum == (long)kThreads * kRounds && atomic_sum == (long)kThreads * kRounds && own == 0);
}

// Plain stores become visible in order on x86.
static volatile long data[1024], flag;

static void* consume(void* unused) {
  (void)unused;
  long bad = 0;
  for (long i = 1; i < 1024; ++i) {
    while (flag < i) sched_yield();
    if (data[i] != i * 3) ++bad;
  }
  return (void*)(intptr_t)bad;
}

static void test_message_passing(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, consume, NULL);
  for (long i = 1; i < 1024; ++i) {
    data[i] = i * 3;
    flag = i;
  }
  void* bad;
  pthread_join(thread, &bad);
  CHECK(bad == NULL);
}

static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int turn;

static void* alternate(void* argument) {
  int me = (int)(intptr_t)argument;
  for (int i = 0; i < 500; ++i) {
    pthread_mutex_lock(&mutex);
    while (turn != me) pthread_cond_wait(&condition, &mutex);
    turn = 1 - me;
    pthread_cond_broadcast(&condition);
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

static void test_conditions(void) {
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, alternate, (void*)(intptr_t)i);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  CHECK(turn == 0);
}

static void* nothing(void* argument) { return argument; }

static void test_many(void) {
  for (long i = 0; i < 200; ++i) {
    pthread_t thread;
    void* result;
    CHECK(pthread_create(&thread, NULL, nothing, (void*)(intptr_t)i) == 0);
    CHECK(pthread_join(thread, &result) == 0 && (long)(intptr_t)result == i);
  }
}

static atomic_int stop;

static void* work(void* unused) {
  (void)unused;
  while (!stop) free(malloc(100));
  return NULL;
}

static void test_fork(void) {
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, work, NULL);
  for (int i = 0; i < 10; ++i) {
    pid_t child = fork();
    if (child == 0) {
      free(malloc(1000));
      _exit(i);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == i);
  }
  stop = 1;
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
}

static pthread_key_t key;
static atomic_int destroyed;
static void destroy(void* value) { destroyed += value != NULL; }
static void* use_key(void* argument) {
  pthread_setspecific(key, argument);
  pthread_exit(NULL);
}

static void test_keys(void) {
  pthread_key_create(&key, destroy);
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, use_key, &key);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  CHECK(destroyed == 4);
}

int main(void) {
  test_sums();
  test_message_passing();
  test_conditions();
  test_many();
  test_fork();
  test_keys();
  return finish("threads");
}
