// Which descriptors a program sees, what happens to those it has not opened, and that libraries can still be loaded
// after all were closed.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void) {
  printf("first free: %d\n", dup(1));
  close(3);
  DIR* folder = opendir("/proc/self/fd");
  int seen = 0;
  for (struct dirent* entry; (entry = readdir(folder)) != NULL;) seen += entry->d_name[0] != '.';
  closedir(folder);
  printf("open: %d\n", seen);
  for (int fd = 3; fd < 5000; ++fd) {
    if (close(fd) == 0) printf("closed %d\n", fd);
  }
  for (int fd = 3; fd < 1024; fd += 7) {
    if (dup2(1, fd) != fd) printf("cannot have %d\n", fd);
  }
  syscall(SYS_close_range, 3u, ~0u, 0u);
  printf("after: %d\n", fcntl(10, F_GETFD));
  void* library = dlopen("libm.so.6", RTLD_NOW);
  double (*function)(double) = (double (*)(double))dlsym(library, "cbrt");
  printf("%.6f\n", function(2.0));
  return 0;
}
