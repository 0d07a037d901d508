// Accesses that are not aligned: ordinary ones under the x86 memory model, and locked ones, within 16 bytes and
// across.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

enum { kThreads = 4, kRounds = 2000 };

static unsigned char* memory;

static void* add(void* argument) {
  unsigned char* at = argument;
  for (int i = 0; i < kRounds; ++i) {
    asm volatile("lock incl %0" : "+m"(*(uint32_t*)at)::"cc");
    uint64_t one = 1;
    asm volatile("lock xaddq %0, %1" : "+r"(one), "+m"(*(uint64_t*)(at + 5))::"cc", "memory");
    uint16_t old, fresh;
    do {
      old = *(volatile uint16_t*)(at + 13);
      fresh = (uint16_t)(old + 3);
      asm volatile("lock cmpxchgw %2, %1" : "+a"(old), "+m"(*(uint16_t*)(at + 13)) : "r"(fresh) : "cc", "memory");
    } while ((uint16_t)(fresh - 3) != old);
    asm volatile("lock subl $2, %0" : "+m"(*(uint32_t*)(at + 16))::"cc");
    asm volatile("lock xorb $1, %0" : "+m"(*(at + 20))::"cc");
  }
  return NULL;
}

static void test_locked(unsigned char* at) {
  memset(at, 0, 24);
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, add, at);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  uint32_t first, fourth;
  uint64_t second;
  uint16_t third;
  memcpy(&first, at, 4);
  memcpy(&second, at + 5, 8);
  memcpy(&third, at + 13, 2);
  memcpy(&fourth, at + 16, 4);
  CHECK(first == kThreads * kRounds);
  CHECK(second == kThreads * kRounds);
  CHECK(third == (uint16_t)(3 * kThreads * kRounds));
  CHECK(fourth == (uint32_t)(-2 * kThreads * kRounds));
  CHECK(at[20] == 0);
}

static void test_plain(void) {
  for (int offset = 0; offset < 64; ++offset) {
    volatile unsigned char* at = memory + 4096 - 32 + offset;
    *(volatile uint64_t*)at = 0x1122334455667788u + (unsigned)offset;
    CHECK(*(volatile uint64_t*)at == 0x1122334455667788u + (unsigned)offset);
    CHECK(*(volatile uint32_t*)(at + 3) == 0x22334455);
    *(volatile uint16_t*)(at + 1) = 0xabcd;
    CHECK(*(volatile int16_t*)(at + 1) == (int16_t)0xabcd);
    CHECK(at[0] == (unsigned char)(0x88 + offset) && at[3] == 0x55);
  }
  // Often at one place.
  uint64_t sum = 0;
  for (int i = 0; i < 1000; ++i) {
    *(volatile uint64_t*)(memory + 3) = (uint64_t)i;
    sum += *(volatile uint64_t*)(memory + 3);
  }
  CHECK(sum == 999 * 500);
}

static volatile int faults;
static void* fault_address;

static void on_fault(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)context;
  ++faults;
  fault_address = info->si_addr;
  mprotect(memory + 8192, 4096, PROT_READ | PROT_WRITE);
}

// The second half lies on a page that cannot be accessed.
static void test_faults(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, NULL);
  for (int locked = 0; locked < 2; ++locked) {
    faults = 0;
    memset(memory + 8192 - 8, 0, 16);
    mprotect(memory + 8192, 4096, PROT_NONE);
    if (locked) {
      asm volatile("lock addq $7, %0" : "+m"(*(uint64_t*)(memory + 8192 - 3))::"cc");
    } else {
      *(volatile uint64_t*)(memory + 8192 - 3) = 7;
    }
    CHECK(faults == 1 && fault_address == memory + 8192);
    CHECK(*(volatile uint64_t*)(memory + 8192 - 3) == 7);
  }
}

int main(void) {
  memory = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (int offset = 0; offset < 16; offset += 3) test_locked(memory + 256 + offset);
  test_locked(memory + 4096 - 7);
  test_plain();
  test_faults();
  return finish("unaligned");
}
