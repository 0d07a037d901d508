// Guest address -> host address of its code: open addressing, read without a lock.
//
// Writers hold the code lock. A reader that races with a removal may still see the old value; that is sound because
// retired code stays mapped until each thread has passed a safepoint. Tables that were outgrown are kept: readers may
// be inside, and together they are no larger than the present one.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "worker/runtime/stub_offsets.h"

namespace phybin::runtime {

class CodeIndex {
 public:
  CodeIndex() { grow(); }

  // 0 if there is nothing.
  uint64_t find(uint64_t guest) const {
    const Table* table = current_.load(std::memory_order_acquire);
    for (uint64_t i = hash(guest);; ++i) {
      const Entry& entry = table->entries[i & table->mask];
      const uint64_t key = entry.key.load(std::memory_order_acquire);
      if (key == guest + 1) return entry.value.load(std::memory_order_acquire);
      if (key == 0) return 0;
    }
  }

  // The pointer to the table in use, which stubs.S reads as find() does; the layout of Table and Entry is known
  // there.
  const void* current_table() const { return &current_; }

  void insert(uint64_t guest, uint64_t value) {
    make_room(1);
    put(table(), guest, value, true);
  }
  // Leaves what is there. There must be room for what may be new.
  void insert_new_in_room(uint64_t guest, uint64_t value) { put(table(), guest, value, false); }
  void make_room(uint64_t count) {
    while ((used_ + count) * 2 > table().mask) grow();
  }

  void remove(uint64_t guest) {
    Table* table = current_.load(std::memory_order_relaxed);
    for (uint64_t i = hash(guest);; ++i) {
      Entry& entry = table->entries[i & table->mask];
      const uint64_t key = entry.key.load(std::memory_order_relaxed);
      if (key == guest + 1) return entry.value.store(0, std::memory_order_release);
      if (key == 0) return;
    }
  }

 private:
  struct Entry {
    std::atomic<uint64_t> key{0};  // guest address + 1; 0: never used
    std::atomic<uint64_t> value{0};
  };
  // Large enough for most programs: what is not used costs nothing, since tables are mapped, not allocated. (The heap
  // would give dirty memory if it has some, and clear it.)
  static constexpr uint64_t kFirstSize = 8192;
  struct Table {
    uint64_t mask;
    Entry* entries;

    explicit Table(uint64_t size) : mask(size - 1) {
      void* memory = mmap(nullptr, size * sizeof(Entry), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (memory == MAP_FAILED) throw std::bad_alloc();
      entries = static_cast<Entry*>(memory);
    }
    ~Table() { munmap(entries, (mask + 1) * sizeof(Entry)); }
    Table(const Table&) = delete;
    Table& operator=(const Table&) = delete;
  };
  static_assert(sizeof(Entry) == 16 && sizeof(Table) == 16);

  static uint64_t hash(uint64_t guest) { return guest * CODE_INDEX_MULTIPLIER >> 32; }

  // As writers see it.
  Table& table() { return *current_.load(std::memory_order_relaxed); }

  void put(Table& table, uint64_t guest, uint64_t value, bool replace) {
    for (uint64_t i = hash(guest);; ++i) {
      Entry& entry = table.entries[i & table.mask];
      const uint64_t key = entry.key.load(std::memory_order_relaxed);
      if (key == guest + 1) {
        if (replace || entry.value.load(std::memory_order_relaxed) == 0)
          entry.value.store(value, std::memory_order_release);
        return;
      }
      if (key == 0) {
        entry.value.store(value, std::memory_order_relaxed);
        entry.key.store(guest + 1, std::memory_order_release);
        ++used_;
        return;
      }
    }
  }

  void grow() {
    const Table* old = current_.load(std::memory_order_relaxed);
    const uint64_t size = old == nullptr ? kFirstSize : 2 * (old->mask + 1);
    auto table = std::make_unique<Table>(size);
    used_ = 0;
    if (old != nullptr) {
      for (uint64_t i = 0; i <= old->mask; ++i) {
        const uint64_t value = old->entries[i].value.load(std::memory_order_relaxed);
        if (value != 0) put(*table, old->entries[i].key.load(std::memory_order_relaxed) - 1, value, true);
      }
    }
    current_.store(table.get(), std::memory_order_release);
    tables_.push_back(std::move(table));
  }

  std::atomic<Table*> current_ = nullptr;
  uint64_t used_ = 0;
  std::vector<std::unique_ptr<Table>> tables_;
};

}  // namespace phybin::runtime
