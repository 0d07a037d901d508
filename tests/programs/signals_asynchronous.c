// Signals from outside: when they are delivered, masks, interrupted system calls, queued values, directed at threads.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static volatile sig_atomic_t count, depth, deepest;
static int order[64];

static void counter(int signal) {
  (void)signal;
  ++count;
}

static void handle(int signal, void (*handler)(int), int flags) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  CHECK(sigaction(signal, &action, NULL) == 0);
}

// A loop without calls must notice.
static void test_busy_loop(void) {
  handle(SIGALRM, counter, 0);
  count = 0;
  struct itimerval timer = {{0, 2000}, {0, 2000}};
  setitimer(ITIMER_REAL, &timer, NULL);
  uint64_t sum = 0;
  while (count < 20) sum += (uint64_t)count * 3;
  timer = (struct itimerval){{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &timer, NULL);
  CHECK(sum > 0);
}

static void* write_later(void* pipe_end) {
  usleep(600000);
  CHECK(write(*(int*)pipe_end, "x", 1) == 1);
  return NULL;
}

static void block(int signal, int how) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  pthread_sigmask(how, &set, NULL);
}

static void test_interrupted_calls(void) {
  int ends[2];
  CHECK(pipe(ends) == 0);
  char byte;
  struct itimerval once = {{0, 0}, {0, 200000}};
  handle(SIGALRM, counter, 0);
  count = 0;
  setitimer(ITIMER_REAL, &once, NULL);
  CHECK(read(ends[0], &byte, 1) == -1 && errno == EINTR && count == 1);

  // With SA_RESTART the read goes on until there is something.
  handle(SIGALRM, counter, SA_RESTART);
  pthread_t writer;
  block(SIGALRM, SIG_BLOCK);
  pthread_create(&writer, NULL, write_later, &ends[1]);
  block(SIGALRM, SIG_UNBLOCK);
  setitimer(ITIMER_REAL, &once, NULL);
  CHECK(read(ends[0], &byte, 1) == 1 && byte == 'x' && count == 2);
  pthread_join(writer, NULL);

  // poll and nanosleep never restart.
  struct pollfd poller = {.fd = ends[0], .events = POLLIN};
  setitimer(ITIMER_REAL, &once, NULL);
  CHECK(poll(&poller, 1, 5000) == -1 && errno == EINTR && count == 3);
  struct timespec left, second = {1, 0};
  setitimer(ITIMER_REAL, &once, NULL);
  CHECK(nanosleep(&second, &left) == -1 && errno == EINTR && left.tv_sec == 0 && left.tv_nsec > 500000000);
  CHECK(count == 4);
  close(ends[0]);
  close(ends[1]);
}

static void test_masks(void) {
  handle(SIGUSR1, counter, 0);
  count = 0;
  sigset_t old, pending;
  block(SIGUSR1, SIG_BLOCK);
  raise(SIGUSR1);
  raise(SIGUSR1);
  CHECK(count == 0);
  sigpending(&pending);
  CHECK(sigismember(&pending, SIGUSR1));
  block(SIGUSR1, SIG_UNBLOCK);
  CHECK(count == 1);

  block(SIGUSR1, SIG_BLOCK);
  kill(getpid(), SIGUSR1);
  sigset_t empty;
  sigemptyset(&empty);
  CHECK(sigsuspend(&empty) == -1 && errno == EINTR && count == 2);
  pthread_sigmask(SIG_BLOCK, NULL, &old);
  CHECK(sigismember(&old, SIGUSR1));

  kill(getpid(), SIGUSR1);
  siginfo_t info;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  CHECK(sigwaitinfo(&set, &info) == SIGUSR1 && info.si_pid == getpid() && count == 2);

  int fd = signalfd(-1, &set, 0);
  kill(getpid(), SIGUSR1);
  struct signalfd_siginfo from_fd;
  CHECK(read(fd, &from_fd, sizeof from_fd) == sizeof from_fd && from_fd.ssi_signo == SIGUSR1 && count == 2);
  close(fd);

  struct timespec timeout = {0, 1000000};
  CHECK(sigtimedwait(&set, &info, &timeout) == -1 && errno == EAGAIN);
  kill(getpid(), SIGUSR1);
  struct timespec long_time = {5, 0};
  CHECK(ppoll(NULL, 0, &long_time, &empty) == -1 && errno == EINTR && count == 3);
  block(SIGUSR1, SIG_UNBLOCK);
}

static void nested(int signal) {
  order[count++ & 63] = signal;
  if (++depth > deepest) deepest = depth;
  if (signal == SIGUSR1) raise(SIGUSR2);
  --depth;
}

static void again(int signal) {
  if (++depth > deepest) deepest = depth;
  if (depth < 4) raise(signal);
  --depth;
}

static void test_nesting(void) {
  count = deepest = depth = 0;
  handle(SIGUSR1, nested, 0);
  handle(SIGUSR2, nested, 0);
  raise(SIGUSR1);
  CHECK(count == 2 && order[0] == SIGUSR1 && order[1] == SIGUSR2 && deepest == 2);
  deepest = depth = 0;
  handle(SIGUSR1, again, SA_NODEFER);
  raise(SIGUSR1);
  CHECK(deepest == 4);
  handle(SIGUSR1, counter, SA_RESETHAND);
  count = 0;
  raise(SIGUSR1);
  struct sigaction now;
  sigaction(SIGUSR1, NULL, &now);
  CHECK(count == 1 && now.sa_handler == SIG_DFL);
  handle(SIGUSR1, SIG_IGN, 0);
  raise(SIGUSR1);
  CHECK(count == 1);
}

static int values[8], values_seen;

static void take_value(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)context;
  if (info->si_code == SI_QUEUE) values[values_seen++ & 7] = info->si_value.sival_int;
}

static void test_queued_values(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = take_value;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGRTMIN + 3, &action, NULL);
  block(SIGRTMIN + 3, SIG_BLOCK);
  for (int i = 0; i < 5; ++i) {
    union sigval value = {.sival_int = 100 + i};
    CHECK(sigqueue(getpid(), SIGRTMIN + 3, value) == 0);
  }
  block(SIGRTMIN + 3, SIG_UNBLOCK);
  CHECK(values_seen == 5);
  for (int i = 0; i < 5; ++i) CHECK(values[i] == 100 + i);
}

static pthread_t target;
static volatile sig_atomic_t in_target;

static void note_thread(int signal) {
  (void)signal;
  in_target += pthread_equal(pthread_self(), target) ? 1 : 100;
}

static volatile int stop;

static void* spin(void* unused) {
  (void)unused;
  uint64_t sum = 0;
  while (!stop) ++sum;
  return (void*)(uintptr_t)(sum != 0);
}

static void test_threads(void) {
  handle(SIGUSR1, note_thread, 0);
  CHECK(pthread_create(&target, NULL, spin, NULL) == 0);
  for (int i = 1; i <= 20; ++i) {
    CHECK(pthread_kill(target, SIGUSR1) == 0);
    for (int wait = 0; in_target < i && wait < 5000; ++wait) usleep(1000);
    CHECK(in_target == i);
  }
  stop = 1;
  void* result;
  pthread_join(target, &result);
  CHECK(result != NULL);
}

static void* wait_forever(void* unused) {
  (void)unused;
  for (;;) pause();
  return NULL;
}

static void test_cancel(void) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, wait_forever, NULL) == 0);
  usleep(5000);
  CHECK(pthread_cancel(thread) == 0);
  void* result;
  CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
}

static void test_children(void) {
  handle(SIGCHLD, counter, SA_RESTART);
  count = 0;
  for (int i = 0; i < 5; ++i) {
    pid_t child = fork();
    if (child == 0) _exit(i);
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == i);
  }
  CHECK(count == 5);
  handle(SIGCHLD, SIG_DFL, 0);
}

int main(void) {
  test_busy_loop();
  test_interrupted_calls();
  test_masks();
  test_nesting();
  test_queued_values();
  test_threads();
  test_cancel();
  test_children();
  return finish("signals_asynchronous");
}
