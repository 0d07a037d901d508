// Starting the runtime, fork, guarded copies, and what touches all of its parts.
#include "worker/runtime/runtime.h"

#include <cstring>

#include "worker/runtime/images.h"
#include "worker/runtime/regions.h"
#include "worker/runtime/signal_state.h"
#include "worker/runtime/thread.h"
#include "worker/runtime/worker_memory.h"

namespace phybin::runtime {

void initialise(const Config& given) {
  config = given;
  initialise_actions();
  install_worker_handlers();
}

Counters counters() {
  CodeLock lock;
  return counts;
}

// Order of locks: code, threads, signal dispositions, worker memory.
void before_fork() {
  code_lock.lock();
  lock_thread_list();
  lock_signals();
  lock_worker_memory();
}

void after_fork_parent() {
  unlock_worker_memory();
  unlock_signals();
  unlock_thread_list();
  code_lock.unlock();
}

void after_fork_child() {
  after_fork_parent();
  keep_only_this_thread();
  regions_after_fork_child();
  if (this_thread != nullptr) signals_after_fork_child();
  if (config.forked != nullptr) config.forked();
}

void switch_memory_model_to_tso() {
  CodeLock lock;
  if (config.code.memory_model == MemoryModel::kTso) return;
  config.code.memory_model = MemoryModel::kTso;
  switch_image_variants();
  retire_private_code();
}

bool copy_from_guest(void* to, uint64_t from, size_t size) {
  return phybin_guarded_copy(to, reinterpret_cast<const void*>(from), size) == 0;
}

bool copy_to_guest(uint64_t to, const void* from, size_t size) {
  // A page may be protected between the two; then the second attempt finds it so.
  for (int attempt = 0; attempt < 3; ++attempt) {
    before_kernel_writes(to, size);
    if (phybin_guarded_copy(reinterpret_cast<void*>(to), from, size) == 0) return true;
  }
  return false;
}

int64_t guest_string_length(uint64_t from, size_t limit) {
  char chunk[64];
  for (size_t length = 0; length < limit;) {
    // Up to the next multiple of 64: never into a page that the string does not reach.
    size_t size = sizeof chunk - (from + length) % sizeof chunk;
    if (size > limit - length) size = limit - length;
    if (!copy_from_guest(chunk, from + length, size)) return -1;
    if (const void* end = memchr(chunk, 0, size))
      return static_cast<int64_t>(length + static_cast<size_t>(static_cast<const char*>(end) - chunk));
    length += size;
  }
  return static_cast<int64_t>(limit);
}

}  // namespace phybin::runtime
