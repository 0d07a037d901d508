// A program that changes its own text and that of libraries, and maps onto what lies behind them.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "is_mapped.h"

static uintptr_t text, text_end, module_end;

static int find_text(struct dl_phdr_info* info, size_t size, void* name) {
  (void)size;
  if (strstr(info->dlpi_name, name) == NULL) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* segment = &info->dlpi_phdr[i];
    if (segment->p_type != PT_LOAD) continue;
    uintptr_t start = info->dlpi_addr + segment->p_vaddr;
    uintptr_t end = start + segment->p_memsz + 4095 & ~(uintptr_t)4095;
    if ((segment->p_flags & PF_X) != 0) text = start & ~(uintptr_t)4095, text_end = end;
    if (end > module_end) module_end = end;
  }
  return 1;
}

static sigjmp_buf back;
static void on_fault(int signal) { siglongjmp(back, signal); }

static double (*load(void** library))(double) {
  *library = dlopen("libm.so.6", RTLD_NOW);
  text = text_end = module_end = 0;
  dl_iterate_phdr(find_text, "libm.so");
  return (double (*)(double))dlsym(*library, "lgamma");
}

int main(void) {
  signal(SIGSEGV, on_fault);
  void* library;

  // Made writable and changed: RET at the entry of a function; then as it was.
  double (*function)(double) = load(&library);
  printf("%.6f\n", function(3.5));
  printf("writable: %d\n", mprotect((void*)text, text_end - text, PROT_READ | PROT_WRITE | PROT_EXEC));
  unsigned char* code = (unsigned char*)function;
  unsigned char before = *code;
  *code = 0xc3;
  function(1.5);
  *code = before;
  printf("%.6f\n", function(3.5));
  printf("executable: %d\n", mprotect((void*)text, text_end - text, PROT_READ | PROT_EXEC));
  printf("%.6f\n", function(3.5));
  dlclose(library);

  // Not executable any more.
  function = load(&library);
  printf("%.6f\n", function(2.5));
  mprotect((void*)text, text_end - text, PROT_READ);
  if (sigsetjmp(back, 1) == 0)
    printf("%.6f\n", function(2.5));
  else
    puts("fault");
  mprotect((void*)text, text_end - text, PROT_READ | PROT_EXEC);
  printf("%.6f\n", function(2.5));
  dlclose(library);

  // One page replaced by a copy, elsewhere and back.
  function = load(&library);
  printf("%.6f\n", function(4.5));
  void* page = (void*)((uintptr_t)function & ~(uintptr_t)4095);
  void* copy = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(copy, page, 4096);
  mprotect(copy, 4096, PROT_READ | PROT_EXEC);
  printf("moved: %d\n", mremap(copy, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, page) == page);
  printf("%.6f\n", function(4.5));
  munmap(page, 4096);
  if (sigsetjmp(back, 1) == 0)
    printf("%.6f\n", function(4.5));
  else
    puts("fault");
  mmap(page, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  dlclose(library);

  // Mappings onto whatever stands behind the module.
  for (int round = 0; round < 2; ++round) {
    function = load(&library);
    printf("%.6f\n", function(5.5));
    for (uintptr_t at = module_end; at < module_end + (2 << 20); at += 64 << 10) {
      int flags = MAP_PRIVATE | MAP_ANONYMOUS | (round == 0 ? MAP_FIXED : MAP_FIXED_NOREPLACE);
      // Behind the module other libraries may follow; those must stay.
      if (is_mapped(at, at + 4096)) break;
      void* result = mmap((void*)at, 4096, PROT_READ | PROT_WRITE, flags, -1, 0);
      if (result == (void*)at) {
        *(volatile char*)result = 1;
        munmap(result, 4096);
      } else if (round == 0) {
        puts("no room behind the module");
      }
    }
    printf("%.6f\n", function(5.5));
    dlclose(library);
  }
  return 0;
}
