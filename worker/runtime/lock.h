// A mutual exclusion lock of one word, for the worker's own locks: pthread_mutex_t costs 70 instructions for each
// pair of lock and unlock, and system calls that map memory take several.
//
// Not recursive. Held across fork() and released in parent and child, it is as good as new in both: waiting is by the
// word's address within the process.
#pragma once

#include <atomic>
#include <cstdint>

namespace phybin::runtime {

class Lock {
 public:
  void lock() {
    uint32_t free = kFree;
    if (!word_.compare_exchange_strong(free, kHeld, std::memory_order_acquire)) wait();
  }
  void unlock() {
    if (word_.exchange(kFree, std::memory_order_release) == kWaitedFor) wake();
  }

 private:
  static constexpr uint32_t kFree = 0, kHeld = 1, kWaitedFor = 2;
  std::atomic<uint32_t> word_ = kFree;

  void wait();
  void wake();
};

}  // namespace phybin::runtime
