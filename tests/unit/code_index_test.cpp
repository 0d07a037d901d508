// The index of translations: what is put in is found, what is removed is not, growing keeps it.
#include "worker/runtime/code_index.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace phybin::runtime {
namespace {

TEST(CodeIndex, FindsWhatWasInserted) {
  CodeIndex index;
  EXPECT_EQ(index.find(0), 0u);
  EXPECT_EQ(index.find(0x401000), 0u);
  index.insert(0x401000, 7);
  EXPECT_EQ(index.find(0x401000), 7u);
  index.insert(0x401000, 9);
  EXPECT_EQ(index.find(0x401000), 9u);
  index.remove(0x401000);
  EXPECT_EQ(index.find(0x401000), 0u);
  index.remove(0x402000);
  index.insert(0x401000, 11);
  EXPECT_EQ(index.find(0x401000), 11u);
}

TEST(CodeIndex, GrowsAndForgetsTheRemoved) {
  CodeIndex index;
  constexpr uint64_t kCount = 50000;
  for (uint64_t i = 1; i <= kCount; ++i) index.insert(i * 16, i);
  for (uint64_t i = 1; i <= kCount; i += 3) index.remove(i * 16);
  for (uint64_t i = kCount + 1; i <= 2 * kCount; ++i) index.insert(i * 16, i);
  for (uint64_t i = 1; i <= 2 * kCount; ++i) EXPECT_EQ(index.find(i * 16), i <= kCount && i % 3 == 1 ? 0 : i);
}

TEST(CodeIndex, ReadersNeedNoLock) {
  CodeIndex index;
  std::atomic<bool> stop = false;
  std::atomic<uint64_t> wrong = 0;
  std::thread reader([&] {
    while (!stop) {
      for (uint64_t i = 1; i < 2000; ++i) {
        const uint64_t value = index.find(i * 64);
        if (value != 0 && value != i) ++wrong;
      }
    }
  });
  for (unsigned round = 0; round < 5; ++round) {
    for (uint64_t i = 1; i < 2000; ++i) index.insert(i * 64, i);
    for (uint64_t i = 1; i < 2000; i += 2) index.remove(i * 64);
    for (uint64_t i = 0; i < 4000; ++i) index.insert((1 << 20) + (round * 4000 + i) * 64, 1);
  }
  stop = true;
  reader.join();
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace phybin::runtime
