// fork, exec, pipes, wait statuses, signals of death, posix_spawn, shared memory.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;
static volatile sig_atomic_t children;

static void on_child(int signal) {
  (void)signal;
  children++;
}

static void show(const char* what, int status) {
  if (WIFEXITED(status))
    printf("%s: exit %d\n", what, WEXITSTATUS(status));
  else if (WIFSIGNALED(status))
    printf("%s: signal %d\n", what, WTERMSIG(status));
  fflush(stdout);
}

static int wait_for(pid_t child) {
  int status;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

static void child_dies(const char* what, void (*how)(void)) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    how();
    _exit(99);
  }
  show(what, wait_for(child));
}

static void by_exit(void) { exit(7); }
static void by_kill(void) { kill(getpid(), SIGKILL); }
static void by_abort(void) { abort(); }
static void by_fault(void) { *(volatile int*)8 = 1; }
// In assembly: compilers know what becomes of a division of 1.
static void by_division(void) {
  int quotient = 1, remainder = 0;
  __asm__ volatile("idivl %2" : "+a"(quotient), "+d"(remainder) : "r"(0));
}
static void by_ud2(void) { __asm__ volatile("ud2"); }
static void by_exec(void) { execl("/bin/echo", "renamed", "executed", "twice", NULL); }
static void by_missing(void) {
  execl("/nonexistent", "x", NULL);
  _exit(errno == ENOENT ? 50 : 51);
}
static void by_folder(void) {
  execl("/tmp", "x", NULL);
  _exit(errno == EACCES ? 52 : 53);
}

int main(void) {
  struct sigaction action = {.sa_handler = on_child, .sa_flags = SA_RESTART};
  sigaction(SIGCHLD, &action, NULL);
  child_dies("exit", by_exit);
  child_dies("kill", by_kill);
  child_dies("abort", by_abort);
  child_dies("fault", by_fault);
  child_dies("division", by_division);
  child_dies("ud2", by_ud2);
  child_dies("exec", by_exec);
  child_dies("missing", by_missing);
  child_dies("folder", by_folder);
  printf("children %d\n", children);
  fflush(stdout);

  char* arguments[] = {"sh", "-c", "echo spawned; exit 3", NULL};
  pid_t child;
  int error = posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ);
  if (error)
    printf("posix_spawn: %s\n", strerror(error));
  else
    show("spawn", wait_for(child));

  int* shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int ends[2];
  if (shared == MAP_FAILED || pipe(ends)) return 1;
  child = fork();
  if (child == 0) {
    *shared = 1234;
    if (write(ends[1], "x", 1) != 1) _exit(1);
    _exit(0);
  }
  char byte;
  if (read(ends[0], &byte, 1) != 1) return 1;
  show("sharing", wait_for(child));
  printf("shared %d\n", *shared);

  FILE* pipe_to = popen("tr a-z A-Z", "w");
  fputs("through a pipe\n", pipe_to);
  printf("pclose %d\n", pclose(pipe_to));
  return 0;
}
