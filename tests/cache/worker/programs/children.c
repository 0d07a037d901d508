// A child of fork, one that starts a program, and one of posix_spawn.
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

int main(int argc, char** argv) {
  if (argc < 2) return 1;
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (int round = 0; round < 3; ++round) {
    int status = 0;
    pid_t child;
    char* arguments[] = {argv[1], "x", NULL};
    if (round == 2) {
      if (posix_spawn(&child, argv[1], NULL, NULL, arguments, environ) != 0) return 2;
    } else {
      child = fork();
      if (child == 0 && round == 0) {
        char text[64];
        snprintf(text, sizeof text, "%s %d", "child", 42);
        puts(text);
        exit(5);
      }
      if (child == 0) execv(argv[1], arguments);
    }
    waitpid(child, &status, 0);
    printf("status %d\n", WEXITSTATUS(status));
  }
  return 0;
}
