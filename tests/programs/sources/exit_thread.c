// The first thread ends before the others; the process lives until the last one calls exit.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void* work(void* data) {
  (void)data;
  usleep(100000);
  puts("the second thread ends the process");
  exit(23);
}

int main(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, work, NULL)) return 1;
  pthread_exit(NULL);
}
