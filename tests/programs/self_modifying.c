// Code that changes: rewritten functions, data beside code, code that changes the next instruction, code loaded by
// system calls, W^X flips, two mappings of one memfd, and a function replaced while another thread runs it.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "check.h"

typedef int (*function)(void);

// mov $value, %eax; ret
static size_t put_function(unsigned char* at, int value) {
  unsigned char code[6] = {0xb8, 0, 0, 0, 0, 0xc3};
  memcpy(code + 1, &value, 4);
  memcpy(at, code, sizeof code);
  return sizeof code;
}

static unsigned char* pages(size_t count, int protection) {
  return mmap(NULL, count * 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void test_rewrite(void) {
  unsigned char* code = pages(1, PROT_READ | PROT_WRITE | PROT_EXEC);
  for (int i = 0; i < 3000; ++i) {
    put_function(code, i);
    CHECK(((function)code)() == i);
  }
  munmap(code, 4096);
}

// A compiler that fills one page with many functions and calls each at once, and old ones again.
static void test_filling(void) {
  unsigned char* code = pages(16, PROT_READ | PROT_WRITE | PROT_EXEC);
  unsigned char* at = code;
  for (int i = 0; i < 4000; ++i) {
    unsigned char* start = at;
    at += put_function(at, i * 7);
    CHECK(((function)start)() == i * 7);
    if (i % 16 == 0) CHECK(((function)code)() == 0);
  }
  munmap(code, 16 * 4096);
}

// A counter in the same page as the code that increments it.
static void test_data_beside_code(void) {
  unsigned char* code = pages(1, PROT_READ | PROT_WRITE | PROT_EXEC);
  // incl 2048-6(%rip); mov 2048-12(%rip), %eax; ret
  static const unsigned char bytes[] = {0xff, 0x05, 0xfa, 0x07, 0, 0, 0x8b, 0x05, 0xf4, 0x07, 0, 0, 0xc3};
  memcpy(code, bytes, sizeof bytes);
  int last = 0;
  for (int i = 0; i < 5000; ++i) last = ((function)code)();
  CHECK(last == 5000);
  munmap(code, 4096);
}

// movb $value, the immediate of the next instruction; mov $0, %eax; ret
static void test_next_instruction(void) {
  unsigned char* code = pages(1, PROT_READ | PROT_WRITE | PROT_EXEC);
  for (int i = 1; i < 100; ++i) {
    unsigned char bytes[] = {0xc6, 0x05, 1, 0, 0, 0, (unsigned char)i, 0xb8, 0, 0, 0, 0, 0xc3};
    memcpy(code, bytes, sizeof bytes);
    CHECK(((function)code)() == i);
    code[6] = (unsigned char)(i + 1);
    CHECK(((function)code)() == i + 1);
  }
  munmap(code, 4096);
}

static void test_flip(void) {
  unsigned char* code = pages(1, PROT_READ | PROT_WRITE);
  for (int i = 0; i < 500; ++i) {
    mprotect(code, 4096, PROT_READ | PROT_WRITE);
    put_function(code, i);
    mprotect(code, 4096, PROT_READ | PROT_EXEC);
    CHECK(((function)code)() == i);
  }
  munmap(code, 4096);
}

static void test_remap(void) {
  unsigned char* place = pages(1, PROT_NONE);
  for (int i = 0; i < 200; ++i) {
    unsigned char* code =
        mmap(place, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    CHECK(code == place);
    put_function(code, i + 1);
    CHECK(((function)code)() == i + 1);
    if (i & 1) munmap(code, 4096);
  }
}

static void test_read_into_code(void) {
  unsigned char* code = pages(1, PROT_READ | PROT_WRITE | PROT_EXEC);
  int ends[2];
  CHECK(pipe(ends) == 0);
  for (int i = 0; i < 200; ++i) {
    unsigned char bytes[6];
    put_function(bytes, i);
    CHECK(write(ends[1], bytes, 6) == 6);
    if (i & 1) {
      CHECK(read(ends[0], code, 6) == 6);
    } else {
      struct iovec parts[2] = {{code, 3}, {code + 3, 3}};
      CHECK(readv(ends[0], parts, 2) == 6);
    }
    CHECK(((function)code)() == i);
  }
  close(ends[0]);
  close(ends[1]);
  munmap(code, 4096);
}

static void test_two_mappings(void) {
  int fd = memfd_create("code", 0);
  CHECK(ftruncate(fd, 4096) == 0);
  unsigned char* writable = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  unsigned char* code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
  close(fd);
  for (int i = 0; i < 500; ++i) {
    put_function(writable, i);
    CHECK(((function)code)() == i);
  }
  munmap(writable, 4096);
  munmap(code, 4096);
}

static unsigned char* shared_code;
static volatile int go_on = 1;
static long wrong;

static void* call_often(void* unused) {
  (void)unused;
  while (go_on) {
    int value = ((function)shared_code)();
    if (value < 0 || value > 255) ++wrong;
  }
  return NULL;
}

// Another thread calls the function while one byte of it changes; it must see the last value in the end.
static void test_other_thread(void) {
  shared_code = pages(1, PROT_READ | PROT_WRITE | PROT_EXEC);
  put_function(shared_code, 0);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, call_often, NULL) == 0);
  for (int i = 0; i < 256; ++i) {
    *(volatile unsigned char*)(shared_code + 1) = (unsigned char)i;
    CHECK(((function)shared_code)() == i);
  }
  go_on = 0;
  pthread_join(thread, NULL);
  CHECK(wrong == 0);
}

static int slow_pipe[2];

static void* read_slowly(void* unused) {
  (void)unused;
  return (void*)(intptr_t)read(slow_pipe[0], shared_code + 64, 6);
}

// A thread waits in read() for bytes that go to a page whose code another thread runs meanwhile.
static void test_waiting_read(void) {
  shared_code = pages(1, PROT_READ | PROT_WRITE | PROT_EXEC);
  put_function(shared_code, 5);
  CHECK(((function)shared_code)() == 5);
  CHECK(pipe(slow_pipe) == 0);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, read_slowly, NULL) == 0);
  usleep(100000);
  for (int i = 0; i < 100; ++i) CHECK(((function)shared_code)() == 5);
  unsigned char bytes[6];
  put_function(bytes, 6);
  CHECK(write(slow_pipe[1], bytes, 6) == 6);
  void* result;
  pthread_join(thread, &result);
  CHECK((intptr_t)result == 6);
  CHECK(((function)(shared_code + 64))() == 6);
}

int main(void) {
  test_rewrite();
  test_filling();
  test_data_beside_code();
  test_next_instruction();
  test_flip();
  test_remap();
  test_read_into_code();
  test_two_mappings();
  test_other_thread();
  test_waiting_read();
  return finish("self_modifying");
}
