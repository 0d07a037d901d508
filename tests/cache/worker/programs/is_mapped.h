// Whether the program has something mapped in [start, end), by /proc/self/maps.
#pragma once

#include <stdint.h>
#include <stdio.h>

static int is_mapped(uintptr_t start, uintptr_t end) {
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[512];
  int found = 0;
  while (fgets(line, sizeof line, maps) != NULL) {
    unsigned long from, to;
    if (sscanf(line, "%lx-%lx", &from, &to) == 2 && from < end && start < to) found = 1;
  }
  fclose(maps);
  return found;
}
