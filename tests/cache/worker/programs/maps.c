// Executable mappings that /proc/self/maps shows, in the order of their names; and whether mincore() agrees with it
// about what is mapped, behind the end of each.
#define _DEFAULT_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "is_mapped.h"

static int compare(const void* a, const void* b) { return strcmp(*(char* const*)a, *(char* const*)b); }

int main(void) {
  FILE* file = fopen("/proc/self/maps", "r");
  char line[512];
  char* names[64];
  unsigned long ends[64];
  int executable = 0;
  while (fgets(line, sizeof line, file) != NULL) {
    char* flags = strchr(line, ' ') + 1;
    if (flags[2] != 'x' || strstr(line, "[v") != NULL) continue;
    char* name = strrchr(line, '/');
    sscanf(line, "%*x-%lx", &ends[executable]);
    names[executable++] = strdup(name != NULL ? name : "no name\n");
  }
  qsort(names, (size_t)executable, sizeof names[0], compare);
  for (int i = 0; i < executable; ++i) fputs(names[i], stdout);
  printf("%d\n", executable);
  int wrong = 0;
  for (int i = 0; i < executable; ++i) {
    for (unsigned long at = ends[i]; at < ends[i] + (1 << 20); at += 16384) {
      unsigned char there[1];
      const int mapped = mincore((void*)at, 4096, there) == 0;
      if (!mapped && errno != ENOMEM) puts(strerror(errno));
      wrong += mapped != is_mapped(at, at + 4096);
    }
  }
  printf("%d wrong\n", wrong);
  return 0;
}
