// What differs between the kernels of the two machines, as programs see it.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

#define CHECK(what) printf("%s: %s\n", #what, (what) ? "yes" : "no")

static int error_of(long result) { return result < 0 ? errno : 0; }

static void files(const char* folder) {
  char name[PATH_MAX], link[PATH_MAX];
  snprintf(name, sizeof name, "%s/file", folder);
  snprintf(link, sizeof link, "%s/link", folder);
  int fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_LARGEFILE, 0640);
  CHECK(write(fd, "0123456789", 10) == 10);
  struct stat status;
  CHECK(stat(name, &status) == 0 && status.st_size == 10 && (status.st_mode & 0777) == 0640 && status.st_nlink == 1);
  CHECK(fstat(fd, &status) == 0 && status.st_blksize > 0);
  CHECK(symlink("file", link) == 0);
  CHECK(lstat(link, &status) == 0 && S_ISLNK(status.st_mode));
  CHECK(error_of(open(link, O_RDONLY | O_NOFOLLOW)) == ELOOP);
  CHECK(error_of(open(name, O_RDONLY | O_DIRECTORY)) == ENOTDIR);
  CHECK(open(folder, O_RDONLY | O_DIRECTORY) >= 0);
  CHECK((fcntl(fd, F_GETFL) & (O_ACCMODE | O_DIRECTORY | O_DIRECT | O_NOFOLLOW)) == O_RDWR);
  CHECK(fcntl(fd, F_SETFL, O_APPEND | O_NONBLOCK) == 0 && (fcntl(fd, F_GETFL) & O_APPEND));
  struct flock lock = {.l_type = F_WRLCK};
  CHECK(fcntl(fd, F_SETLK, &lock) == 0);
  struct utimbuf times = {1000, 2000};
  CHECK(utime(name, &times) == 0 && stat(name, &status) == 0 && status.st_mtime == 2000 && status.st_atime == 1000);
  struct timeval precise[2] = {{5, 6}, {7, 8}};
  CHECK(utimes(name, precise) == 0 && stat(name, &status) == 0 && status.st_mtim.tv_nsec == 8000);
  char target[64];
  CHECK(readlink(link, target, sizeof target) == 4);
  CHECK(syscall(SYS_access, name, R_OK) == 0);
  CHECK(syscall(SYS_rename, name, link) == 0);
  CHECK(syscall(SYS_unlink, link) == 0);
  CHECK(syscall(SYS_mkdir, name, 0700) == 0 && syscall(SYS_rmdir, name) == 0);
  char entries[1024];
  int dir = open(folder, O_RDONLY | O_DIRECTORY);
  CHECK(syscall(SYS_getdents, dir, entries, sizeof entries) > 0);
  close(dir);
  close(fd);
}

static void waiting(void) {
  int ends[2];
  CHECK(pipe(ends) == 0);
  struct pollfd poller = {ends[0], POLLIN, 0};
  CHECK(poll(&poller, 1, 10) == 0);
  int epoll = epoll_create(1);
  struct epoll_event event = {EPOLLIN, {.u64 = 0x1122334455667788}}, got[4];
  CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event) == 0);
  CHECK(epoll_wait(epoll, got, 4, 5) == 0);
  CHECK(write(ends[1], "x", 1) == 1);
  CHECK(epoll_wait(epoll, got, 4, -1) == 1 && got[0].data.u64 == 0x1122334455667788 && got[0].events == EPOLLIN);
  fd_set set;
  FD_ZERO(&set);
  FD_SET(ends[0], &set);
  struct timeval wait = {1, 0};
  CHECK(select(ends[0] + 1, &set, NULL, NULL, &wait) == 1 && FD_ISSET(ends[0], &set));
  CHECK(poll(&poller, 1, -1) == 1 && poller.revents == POLLIN);
  int event_fd = eventfd(3, 0);
  uint64_t value;
  CHECK(read(event_fd, &value, 8) == 8 && value == 3);
  struct timespec now, real;
  CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0 && clock_gettime(CLOCK_REALTIME, &real) == 0);
  CHECK(labs(time(NULL) - real.tv_sec) < 2);
  alarm(100);
  CHECK(alarm(0) == 100);
}

static void memory(void) {
  CHECK(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, -1, 0) == MAP_FAILED && errno == EBADF);
  char* low = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  CHECK(low != MAP_FAILED && (unsigned long)low + 65536 <= 1ul << 31);
  char* memory = mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memory[0] = 'a';
  CHECK(munmap(memory + 4096, 4096) == 0);
  CHECK(error_of(mprotect(memory, 4 * 4096, PROT_READ)) == ENOMEM);
  CHECK(mmap(memory + 4096, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) ==
        memory + 4096);
  CHECK(mmap(memory, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED &&
        errno == EEXIST);
  char* moved = mremap(memory, 4096, 64 * 4096, MREMAP_MAYMOVE);
  CHECK(moved != MAP_FAILED && moved[0] == 'a');
  CHECK(munmap(moved, 64 * 4096) == 0);
  CHECK(error_of((long)mremap(moved, 4096, 8192, MREMAP_MAYMOVE)) == EFAULT);
  char* before = sbrk(0);
  CHECK(sbrk(1 << 20) == before && (before[100000] = 1) && sbrk(-(1 << 20)) == before + (1 << 20) &&
        sbrk(0) == before);
  int id = shmget(IPC_PRIVATE, 8192, IPC_CREAT | 0600);
  char* shared = shmat(id, NULL, 0);
  CHECK(shared != (void*)-1 && (unsigned long)shared < 1ul << 47);
  CHECK(shmdt(shared) == 0 && shmctl(id, IPC_RMID, NULL) == 0);
  int semaphores = semget(IPC_PRIVATE, 3, IPC_CREAT | 0600);
  struct semid_ds info;
  CHECK(semctl(semaphores, 0, IPC_STAT, &info) == 0 && info.sem_nsems == 3 && info.sem_ctime != 0);
  semctl(semaphores, 0, IPC_RMID);
}

static void bad_pointers(void) {
  char* bad = (char*)16;
  CHECK(error_of(write(1, bad, 1)) == EFAULT);
  CHECK(error_of(open(bad, O_RDONLY)) == EFAULT);
  CHECK(error_of(syscall(SYS_stat, "/", bad)) == EFAULT);
  CHECK(error_of(syscall(SYS_stat, bad, bad)) == EFAULT);
  CHECK(error_of(syscall(SYS_readlink, "/proc/self/exe", bad, 100)) == EFAULT);
  CHECK(error_of(syscall(SYS_pipe, bad)) == EFAULT);
  CHECK(error_of(syscall(SYS_uname, bad)) == EFAULT);
  CHECK(error_of(syscall(SYS_execve, bad, bad, bad)) == EFAULT);
  CHECK(error_of(syscall(SYS_select, 1, bad, 0, 0, bad)) == EFAULT);
  CHECK(error_of(syscall(SYS_clock_gettime, 0, bad)) == EFAULT);
  CHECK(error_of(syscall(SYS_epoll_ctl, 0, EPOLL_CTL_ADD, 0, bad)) == EFAULT);
  CHECK(error_of(syscall(SYS_rt_sigaction, SIGUSR1, bad, 0, 8)) == EFAULT);
  CHECK(error_of(syscall(9999)) == ENOSYS);
}

int main(int argc, char** argv) {
  struct utsname name;
  uname(&name);
  CHECK(strcmp(name.machine, "x86_64") == 0);
  CHECK(strcmp((char*)getauxval(AT_PLATFORM), "x86_64") == 0);
  CHECK(getauxval(AT_SYSINFO_EHDR) != 0 && getauxval(AT_RANDOM) != 0 && getauxval(AT_PAGESZ) == 4096);
  char self[PATH_MAX], full[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  self[length > 0 ? length : 0] = 0;
  CHECK(realpath(argv[0], full) && strcmp(self, full) == 0);
  struct stat by_link, by_name;
  CHECK(stat("/proc/self/exe", &by_link) == 0 && stat(argv[0], &by_name) == 0 && by_link.st_ino == by_name.st_ino);
  FILE* file = fopen("/proc/self/cmdline", "r");
  char text[4096];
  CHECK(file && fread(text, 1, sizeof text, file) > 0 && strcmp(text, argv[0]) == 0);
  file = fopen("/proc/self/maps", "r");
  int has_stack = 0, has_self = 0, executable = 0;
  while (fgets(text, sizeof text, file)) {
    unsigned long start, end;
    char flags[5];
    sscanf(text, "%lx-%lx %4s", &start, &end, flags);
    if ((unsigned long)&text >= start && (unsigned long)&text < end) has_stack = strstr(text, "[stack]") != NULL;
    if ((unsigned long)&main >= start && (unsigned long)&main < end) {
      has_self = strstr(text, full) != NULL;
      executable = flags[2] == 'x';
    }
  }
  CHECK(has_stack && has_self && executable);
  file = fopen("/proc/cpuinfo", "r");
  int has_sse2 = 0;
  while (fgets(text, sizeof text, file)) has_sse2 |= strncmp(text, "flags", 5) == 0 && strstr(text, " sse2 ");
  CHECK(has_sse2);
  // Every descriptor that is listed can be used.
  DIR* descriptors = opendir("/proc/self/fd");
  int listed = 0, usable = 0;
  for (struct dirent* entry; (entry = readdir(descriptors));) {
    if (entry->d_name[0] == '.') continue;
    listed++;
    usable += fcntl(atoi(entry->d_name), F_GETFD) >= 0;
  }
  CHECK(listed >= 4 && usable == listed);
  files(argc > 1 ? argv[1] : ".");
  waiting();
  memory();
  bad_pointers();
  return 0;
}
