// A plugin of qemu-aarch64 (API version 1) that counts the instructions that a program executes. A block's
// instructions are counted when the block is entered, so the result is exact and repeatable except for blocks that a
// fault leaves early. Arguments, as `-plugin libcount.so,NAME=VALUE,...`:
//   out=FILE      where the total goes at the exit of the process (forked children write nothing);
//   each=FILE     to this file each process that was started by exec appends its line: for commands with children;
//   threads=on    count per thread through a callback: additions made inline share one counter and two threads that
//   run
//                 at once can lose some. Slower, so only for programs with threads;
//   range=LOW-HIGH  a second number in the file: the instructions whose address lies there (hexadecimal);
//   word=WORD       or: the instructions that have this encoding;
//   profile=FILE  each block: how often it was entered, its address, its code as hexadecimal words. What
//                 tests/bench/hot_code reads.
// The header of the API is not packaged by every distribution; the few functions used are declared here.
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef uint64_t Id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef void (*BlockTranslated)(Id, struct qemu_plugin_tb*);
typedef void (*BlockEntered)(unsigned, void*);
void qemu_plugin_register_vcpu_tb_trans_cb(Id, BlockTranslated);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb*, int operation, void*, uint64_t);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb*, BlockEntered, int flags, void*);
void qemu_plugin_register_atexit_cb(Id, void (*)(Id, void*), void*);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb*);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb*);
struct qemu_plugin_insn* qemu_plugin_tb_get_insn(const struct qemu_plugin_tb*, size_t);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn*);
const void* qemu_plugin_insn_data(const struct qemu_plugin_insn*);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;
enum { kAddInline = 0, kNoRegisters = 0, kThreads = 1024 };

typedef struct {
  uint64_t all, in_range;
  char padding[48];  // a cache line for each thread
} Counters;

typedef struct Block {
  struct Block* next;
  uint64_t entered, address, all, in_range;
  uint32_t code[];
} Block;

static Counters counters[kThreads];
static Block* blocks;
static const char *out_path, *each_path, *profile_path;
static bool per_thread;
static uint64_t range_low, range_high;
static uint32_t wanted_word;
static pid_t owner;

static void block_entered(unsigned vcpu, void* data) {
  const Block* block = data;
  Counters* c = &counters[vcpu % kThreads];
  c->all += block->all;
  c->in_range += block->in_range;
}

// qemu calls this with its translation lock held.
static void block_translated(Id id, struct qemu_plugin_tb* tb) {
  (void)id;
  size_t n = qemu_plugin_tb_n_insns(tb);
  Block* block = calloc(1, sizeof *block + n * sizeof block->code[0]);
  block->all = n;
  block->address = qemu_plugin_tb_vaddr(tb);
  for (size_t i = 0; i < n; i++) {
    const struct qemu_plugin_insn* insn = qemu_plugin_tb_get_insn(tb, i);
    uint64_t address = qemu_plugin_insn_vaddr(insn);
    memcpy(&block->code[i], qemu_plugin_insn_data(insn), sizeof block->code[0]);
    block->in_range += wanted_word ? block->code[i] == wanted_word : address >= range_low && address < range_high;
  }
  if (per_thread) {
    qemu_plugin_register_vcpu_tb_exec_cb(tb, block_entered, kNoRegisters, block);
  } else {
    qemu_plugin_register_vcpu_tb_exec_inline(tb, kAddInline, &counters[0].all, block->all);
    if (block->in_range)
      qemu_plugin_register_vcpu_tb_exec_inline(tb, kAddInline, &counters[0].in_range, block->in_range);
  }
  if (profile_path) {
    qemu_plugin_register_vcpu_tb_exec_inline(tb, kAddInline, &block->entered, 1);
    block->next = blocks;
    blocks = block;
  } else if (!per_thread) {
    free(block);
  }
}

static void at_exit(Id id, void* unused) {
  (void)id, (void)unused;
  if (owner != getpid()) return;
  FILE* out = out_path ? fopen(out_path, "w") : each_path ? fopen(each_path, "a") : NULL;
  if (out) {
    Counters sum = {0};
    for (int i = 0; i < kThreads; i++) sum.all += counters[i].all, sum.in_range += counters[i].in_range;
    fprintf(out, "%" PRIu64 " %" PRIu64 "\n", sum.all, sum.in_range);
    fclose(out);
  }
  FILE* profile = profile_path ? fopen(profile_path, "w") : NULL;
  if (profile) {
    for (const Block* block = blocks; block; block = block->next) {
      if (!block->entered) continue;
      fprintf(profile, "%" PRIu64 " %" PRIx64, block->entered, block->address);
      for (uint64_t i = 0; i < block->all; i++) fprintf(profile, " %08x", block->code[i]);
      fputc('\n', profile);
    }
    fclose(profile);
  }
}

__attribute__((visibility("default"))) int qemu_plugin_install(Id id, const void* info, int argc, char** argv) {
  (void)info;
  owner = getpid();
  for (int i = 0; i < argc; i++) {
    if (strncmp(argv[i], "out=", 4) == 0) {
      out_path = strdup(argv[i] + 4);
    } else if (strncmp(argv[i], "each=", 5) == 0) {
      each_path = strdup(argv[i] + 5);
    } else if (strncmp(argv[i], "profile=", 8) == 0) {
      profile_path = strdup(argv[i] + 8);
    } else if (strcmp(argv[i], "threads=on") == 0) {
      per_thread = true;
    } else if (sscanf(argv[i], "word=%" SCNx32, &wanted_word) == 1) {
      continue;
    } else if (sscanf(argv[i], "range=%" SCNx64 "-%" SCNx64, &range_low, &range_high) != 2) {
      fprintf(stderr, "count_plugin: unknown argument '%s'\n", argv[i]);
      return -1;
    }
  }
  qemu_plugin_register_vcpu_tb_trans_cb(id, block_translated);
  qemu_plugin_register_atexit_cb(id, at_exit, NULL);
  return 0;
}
