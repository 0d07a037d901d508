// Code written at run time, rewritten in place, and mapped twice.
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef int (*Function)(void);

static void write_function(unsigned char* at, int value) {
  at[0] = 0xb8;  // mov eax, value
  memcpy(at + 1, &value, 4);
  at[5] = 0xc3;  // ret
}

int main(void) {
  unsigned char* code = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  long sum = 0;
  for (int i = 0; i < 2000; i++) {
    write_function(code + (i % 3) * 16, i);
    sum += ((Function)(code + (i % 3) * 16))();
  }
  printf("rewritten %ld\n", sum);

  mprotect(code, 8192, PROT_READ | PROT_WRITE);
  write_function(code, 11);
  mprotect(code, 8192, PROT_READ | PROT_EXEC);
  printf("protected %d\n", ((Function)code)());
  munmap(code, 8192);
  code = mmap(code, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  write_function(code, 12);
  printf("mapped again %d\n", ((Function)code)());

  int fd = memfd_create("code", 0);
  if (ftruncate(fd, 4096)) return 1;
  unsigned char* writable = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  unsigned char* executable = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
  sum = 0;
  for (int i = 0; i < 100; i++) {
    write_function(writable, i);
    sum += ((Function)executable)();
  }
  printf("twice %ld\n", sum);
  // The kernel writes code.
  int ends[2];
  if (pipe(ends)) return 1;
  unsigned char text[16] = {0};
  for (int i = 0; i < 5; i++) {
    write_function(text, 100 + i);
    if (write(ends[1], text, 6) != 6 || read(ends[0], code, 6) != 6) return 1;
    printf("read %d\n", ((Function)code)());
  }
  return 0;
}
