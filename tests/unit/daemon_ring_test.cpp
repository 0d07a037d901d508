// The ring of entry points: what a worker wrote is taken once, and whatever else it writes does no harm.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "daemon/ring.h"

namespace phybin::daemon {
namespace {

constexpr uint64_t kEntries = proto::WorkerPage::kRingEntries;

class Ring : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(memory_.create());
    void* memory = mmap(nullptr, sizeof(proto::WorkerPage), PROT_READ | PROT_WRITE, MAP_SHARED, memory_.file(), 0);
    ASSERT_NE(memory, MAP_FAILED);
    worker_ = static_cast<proto::WorkerPage*>(memory);
  }
  ~Ring() override { munmap(worker_, sizeof *worker_); }

  void write(uint64_t count) {
    for (uint64_t i = 0; i != count; ++i, ++written_) {
      worker_->ring[written_ % kEntries] = {static_cast<uint32_t>(written_ >> 32), static_cast<uint32_t>(written_)};
    }
    worker_->ring_count = written_;
  }
  std::vector<proto::RingEntry> drain(size_t limit = SIZE_MAX) {
    std::vector<proto::RingEntry> entries;
    drain_ring(memory_, position_, limit, entries);
    return entries;
  }

  WorkerMemory memory_;
  proto::WorkerPage* worker_ = nullptr;
  uint64_t position_ = 0, written_ = 0;
};

TEST_F(Ring, EachEntryOnce) {
  EXPECT_TRUE(drain().empty());
  uint64_t expected = 0;
  for (uint64_t count : {uint64_t{1}, uint64_t{1000}, kEntries - 7, kEntries, uint64_t{3}, kEntries - 1}) {
    write(count);
    for (const proto::RingEntry& entry : drain()) EXPECT_EQ(entry.offset, expected++);
    EXPECT_EQ(expected, written_);
    EXPECT_TRUE(drain().empty());
  }
}

TEST_F(Ring, LimitLeavesTheRestForLater) {
  write(1000);
  EXPECT_EQ(drain(300).size(), 300u);
  EXPECT_EQ(drain(300).front().offset, 300u);
  EXPECT_EQ(drain().size(), 400u);
}

TEST_F(Ring, OverwrittenEntriesAreLost) {
  write(10);
  drain();
  write(kEntries + 5);
  const auto entries = drain();
  ASSERT_EQ(entries.size(), kEntries);
  EXPECT_EQ(entries.front().offset, 15u);
  EXPECT_EQ(entries.back().offset, static_cast<uint32_t>(written_ - 1));
}

TEST_F(Ring, NonsenseCountsEndWell) {
  write(100);
  drain();
  worker_->ring_count = 3;
  EXPECT_TRUE(drain().empty());
  worker_->ring_count = UINT64_MAX;
  EXPECT_EQ(drain().size(), kEntries);
  worker_->ring_count = UINT64_MAX - kEntries;
  EXPECT_TRUE(drain().empty());
  worker_->ring_count = 0;
  EXPECT_TRUE(drain().empty());
  worker_->ring_count = 4;
  EXPECT_EQ(drain().size(), 4u);
}

// The worker can neither shrink nor grow the memory under the daemon.
TEST_F(Ring, SizeIsSealed) {
  EXPECT_NE(ftruncate(memory_.file(), 0), 0);
  EXPECT_NE(ftruncate(memory_.file(), 1 << 24), 0);
}

TEST(PolicyPage, CannotBeWrittenThroughItsDescriptor) {
  PolicyMemory memory;
  memory.page().words[3] = 7;
  void* read = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, memory.file(), 0);
  ASSERT_NE(read, MAP_FAILED);
  EXPECT_EQ(static_cast<proto::PolicyPage*>(read)->words[3].load(), 7u);
  munmap(read, 4096);
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory.file(), 0), MAP_FAILED);
  EXPECT_LT(write(memory.file(), "x", 1), 0);
  EXPECT_NE(ftruncate(memory.file(), 0), 0);
}

}  // namespace
}  // namespace phybin::daemon
