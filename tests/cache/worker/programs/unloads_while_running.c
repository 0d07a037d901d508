// Threads that compute in one library while another is loaded, used and unloaded, something is mapped onto what lies
// behind the first, and its text changes its protection.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "is_mapped.h"

static volatile int stop;
static double (*function)(double);

static void* compute(void* argument) {
  (void)argument;
  double sum = 0;
  for (int i = 0; !stop; ++i) {
    double value = function(2.5 + i % 7);
    if (i < 7) sum += value;
  }
  static double results[4];
  static int count;
  results[count % 4] = sum;
  return &results[count++ % 4];
}

static uintptr_t start, end, module_end;

static int find_text(struct dl_phdr_info* info, size_t size, void* name) {
  (void)size;
  if (strstr(info->dlpi_name, name) == NULL) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* segment = &info->dlpi_phdr[i];
    if (segment->p_type != PT_LOAD) continue;
    uintptr_t last = info->dlpi_addr + segment->p_vaddr + segment->p_memsz;
    if (last > module_end) module_end = last;
    if ((segment->p_flags & PF_X) == 0) continue;
    start = info->dlpi_addr + segment->p_vaddr & ~(uintptr_t)4095;
    end = info->dlpi_addr + segment->p_vaddr + segment->p_memsz + 4095 & ~(uintptr_t)4095;
  }
  return 1;
}

int main(void) {
  void* library = dlopen("libm.so.6", RTLD_NOW);
  function = (double (*)(double))dlsym(library, "lgamma");
  dl_iterate_phdr(find_text, "libm.so");
  pthread_t threads[3];
  for (int i = 0; i < 3; ++i) pthread_create(&threads[i], NULL, compute, NULL);
  for (int i = 0; i < 30; ++i) {
    void* other = dlopen(i % 2 == 0 ? "libresolv.so.2" : "libz.so.1", RTLD_NOW);
    if (other != NULL) dlclose(other);
    if (i == 10) {
      // Where an image would be, and natively other libraries or nothing.
      for (uintptr_t at = module_end + 0x1ffff & ~0xfffful; at < module_end + (4 << 20); at += 0x10000) {
        if (is_mapped(at, at + 4096)) break;
        if (mmap((void*)at, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != (void*)at)
          puts("no room");
        munmap((void*)at, 4096);
      }
    }
    if (i == 15) printf("%d\n", mprotect((void*)start, end - start, PROT_READ | PROT_EXEC));
  }
  stop = 1;
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
  printf("%.6f\n", function(3.5));
  return 0;
}
