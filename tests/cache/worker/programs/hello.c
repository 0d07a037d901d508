// Something to translate, with output that depends on it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void* a, const void* b) { return strcmp(*(char* const*)a, *(char* const*)b); }

int main(int argc, char** argv) {
  char text[] = "the quick brown fox jumps over the lazy dog";
  char* words[16];
  int count = 0;
  for (char* word = strtok(text, " "); word != NULL; word = strtok(NULL, " ")) words[count++] = word;
  qsort(words, (size_t)count, sizeof words[0], compare);
  for (int i = 0; i < count; ++i) printf("%s%c", words[i], i + 1 < count ? ' ' : '\n');
  printf("%d %.3f %s\n", argc, strtod("2.5e3", NULL) / 3, argc > 1 ? argv[1] : "");
  return 17;
}
