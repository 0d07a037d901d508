// Maps a library a second time itself, into a reservation of its own, so that nothing is free behind it; then without
// one, and then only its text. Functions that need no relocation work in all of them.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static struct dl_phdr_info library;
static ElfW(Phdr) segments[16];
static char path[256];

static int find(struct dl_phdr_info* info, size_t size, void* name) {
  (void)size;
  if (strstr(info->dlpi_name, name) == NULL) return 0;
  library = *info;
  strcpy(path, info->dlpi_name);
  memcpy(segments, info->dlpi_phdr, info->dlpi_phnum * sizeof segments[0]);
  return 1;
}

static void map_segments(uintptr_t bias, int only_text) {
  int fd = open(path, O_RDONLY);
  for (int i = 0; i < library.dlpi_phnum; ++i) {
    const ElfW(Phdr)* s = &segments[i];
    if (s->p_type != PT_LOAD || (only_text && (s->p_flags & PF_X) == 0)) continue;
    uintptr_t start = bias + s->p_vaddr & ~(uintptr_t)4095, end = bias + s->p_vaddr + s->p_filesz;
    int protection = PROT_READ | (s->p_flags & PF_X ? PROT_EXEC : 0) | (s->p_flags & PF_W ? PROT_WRITE : 0);
    if (mmap((void*)start, end - start, protection, MAP_PRIVATE | MAP_FIXED, fd, (off_t)(s->p_offset & ~4095ul)) ==
        MAP_FAILED)
      perror("mmap");
  }
}

int main(void) {
  void* handle = dlopen("libz.so.1", RTLD_NOW);
  dl_iterate_phdr(find, "libz.so");
  uintptr_t (*bound)(uintptr_t) = (uintptr_t(*)(uintptr_t))dlsym(handle, "compressBound");
  uintptr_t offset = (uintptr_t)bound - library.dlpi_addr;
  printf("%lu\n", bound(100000));
  enum { kReserved = 64 << 20 };
  uintptr_t module = 0;
  for (int i = 0; i < library.dlpi_phnum; ++i) {
    const uintptr_t end = segments[i].p_vaddr + segments[i].p_memsz + 4095 & ~(uintptr_t)4095;
    if (segments[i].p_type == PT_LOAD && end > module) module = end;
  }
  for (int round = 0; round < 3; ++round) {
    char* room = mmap(NULL, kReserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (round != 0) munmap(room + module, kReserved - module);
    map_segments((uintptr_t)room, round == 2);
    bound = (uintptr_t(*)(uintptr_t))((uintptr_t)room + offset);
    printf("%lu\n", bound(100000u + (unsigned)round));
  }
  return 0;
}
