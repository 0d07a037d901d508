// The list of guest mappings against a model that keeps one entry a page.
#include "worker/process/core/mapping_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

namespace phybin::process {
namespace {

constexpr uint64_t kPage = 0x1000;

Range range(int protection, bool shared = false, uint64_t offset = 0) {
  Range result;
  result.protection = protection;
  result.shared = shared;
  result.offset = offset;
  return result;
}

TEST(MappingList, AssignSplitsAndMerges) {
  MappingList list;
  list.set_bounds(kPage, 1000 * kPage);
  list.assign(10 * kPage, 20 * kPage, range(3));
  list.assign(12 * kPage, 14 * kPage, range(1));
  EXPECT_EQ(list.size(), 3u);
  EXPECT_EQ(list.find(13 * kPage)->protection, 1);
  EXPECT_EQ(list.find(14 * kPage)->protection, 3);
  list.assign(12 * kPage, 14 * kPage, range(3));
  EXPECT_EQ(list.size(), 1u);
  list.erase(15 * kPage, 16 * kPage);
  EXPECT_EQ(list.size(), 2u);
  uint64_t hole = 0;
  EXPECT_FALSE(list.is_covered(10 * kPage, 20 * kPage, &hole));
  EXPECT_EQ(hole, 15 * kPage);
  EXPECT_TRUE(list.is_free(15 * kPage, 16 * kPage));
  EXPECT_FALSE(list.is_free(14 * kPage, 16 * kPage));
}

TEST(MappingList, OffsetsOfSharedMappingsSurviveSplits) {
  MappingList list;
  list.set_bounds(kPage, 1000 * kPage);
  list.assign(10 * kPage, 20 * kPage, range(3, true, 0x5000));
  list.erase(12 * kPage, 13 * kPage);
  EXPECT_EQ(list.find(13 * kPage)->offset, 0x8000u);
  list.assign(12 * kPage, 13 * kPage, range(3, true, 0x7000));
  EXPECT_EQ(list.size(), 1u);
  EXPECT_EQ(list.find(10 * kPage)->offset, 0x5000u);
  list.assign(20 * kPage, 21 * kPage, range(3, true, 0));
  EXPECT_EQ(list.size(), 2u);
}

TEST(MappingList, FindsFreePlaces) {
  MappingList list;
  list.set_bounds(kPage, 100 * kPage);
  EXPECT_EQ(list.find_free(10 * kPage, kPage), 90 * kPage);
  list.assign(90 * kPage, 100 * kPage, range(1));
  EXPECT_EQ(list.find_free(10 * kPage, kPage), 80 * kPage);
  list.assign(80 * kPage, 90 * kPage, range(1));
  list.erase(95 * kPage, 97 * kPage);
  EXPECT_EQ(list.find_free(2 * kPage, kPage), 95 * kPage);
  EXPECT_EQ(list.find_free(3 * kPage, kPage), 77 * kPage);
  EXPECT_EQ(list.find_free(10 * kPage, 64 * kPage), 64 * kPage);
  EXPECT_EQ(list.find_free(80 * kPage, kPage), 0u);
  EXPECT_EQ(list.find_free(4 * kPage, kPage, 10 * kPage, 20 * kPage), 16 * kPage);
}

TEST(MappingList, AgreesWithAModel) {
  constexpr uint64_t kPages = 200;
  MappingList list;
  list.set_bounds(kPage, kPages * kPage);
  std::map<uint64_t, Range> model;  // page -> its range
  uint64_t seed = 3;
  auto random = [&](uint64_t limit) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % limit;
  };
  for (int round = 0; round < 20000; ++round) {
    uint64_t start = 1 + random(kPages - 1), end = std::min(kPages, start + 1 + random(20));
    switch (random(4)) {
      case 0:
        list.erase(start * kPage, end * kPage);
        for (uint64_t page = start; page < end; ++page) model.erase(page);
        break;
      case 1: {
        Range value = range(static_cast<int>(random(3)), random(2), random(4) * kPage);
        value.kind = static_cast<RangeKind>(random(3));
        list.assign(start * kPage, end * kPage, value);
        for (uint64_t page = start; page < end; ++page) {
          model[page] = value;
          model[page].offset += (page - start) * kPage;
        }
        break;
      }
      case 2: {
        uint64_t length = 1 + random(12), place = list.find_free(length * kPage, kPage);
        auto fits = [&](uint64_t at) {
          for (uint64_t page = at; page < at + length; ++page) {
            if (model.count(page)) return false;
          }
          return true;
        };
        bool possible = false;
        for (uint64_t page = 1; page + length <= kPages; ++page) possible |= fits(page);
        ASSERT_EQ(place != 0, possible);
        if (place) {
          ASSERT_TRUE(fits(place / kPage));
        }
        break;
      }
      default: {
        for (uint64_t page = 1; page < kPages; ++page) {
          uint64_t from = 0;
          const Range* found = list.find(page * kPage, &from);
          auto expected = model.find(page);
          ASSERT_EQ(found != nullptr, expected != model.end());
          if (!found) continue;
          ASSERT_EQ(found->protection, expected->second.protection);
          ASSERT_EQ(found->kind, expected->second.kind);
          if (found->shared) {
            ASSERT_EQ(found->offset + page * kPage - from, expected->second.offset);
          }
        }
        bool covered = true;
        for (uint64_t page = start; page < end; ++page) {
          auto entry = model.find(page);
          covered &= entry != model.end() && entry->second.kind == RangeKind::kGuest;
        }
        ASSERT_EQ(list.is_covered(start * kPage, end * kPage), covered);
      }
    }
  }
}

// Enough ranges for many blocks; pages of two kinds, so that neighbours stay apart.
TEST(MappingList, KeepsManyRanges) {
  constexpr uint64_t kPages = 4000;
  MappingList list;
  list.set_bounds(kPage, kPages * kPage);
  std::vector<int> model(kPages, -1);  // protection by page
  uint64_t seed = 5;
  auto random = [&](uint64_t limit) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % limit;
  };
  const auto count_runs = [&] {
    size_t runs = 0;
    for (uint64_t page = 1; page < kPages; ++page) runs += model[page] >= 0 && model[page] != model[page - 1] ? 1 : 0;
    return runs;
  };
  size_t most = 0;
  for (int round = 0; round < 30000; ++round) {
    const uint64_t start = 1 + random(kPages - 1);
    const bool wide = random(2000) == 0;
    const uint64_t end = std::min(kPages, start + 1 + random(wide ? 2000 : 3));
    const int value = static_cast<int>(random(5)) - 1;
    if (value < 0)
      list.erase(start * kPage, end * kPage);
    else
      list.assign(start * kPage, end * kPage, range(value));
    std::fill(model.begin() + static_cast<ptrdiff_t>(start), model.begin() + static_cast<ptrdiff_t>(end), value);
    if (round % 100 != 0) continue;
    most = std::max(most, list.size());
    ASSERT_EQ(list.size(), count_runs());
    uint64_t at = 0;
    list.visit(kPage, kPages * kPage, [&](uint64_t from, uint64_t to, const Range& found) {
      ASSERT_GE(from, at);
      at = to;
      for (uint64_t page = from / kPage; page < to / kPage; ++page) ASSERT_EQ(model[page], found.protection);
    });
    for (uint64_t page = 1; page < kPages; ++page) {
      ASSERT_EQ(list.is_free(page * kPage, (page + 1) * kPage), model[page] < 0);
      const Range* found = list.find(page * kPage + 5);
      ASSERT_EQ(found != nullptr, model[page] >= 0);
    }
  }
  EXPECT_GT(most, 1000u);
}

// Private executable mappings of a file know their offsets, so that code can be named by file and offset.
TEST(MappingList, ModulesKeepTheirOffsets) {
  MappingList list;
  list.set_bounds(kPage, 64 * kPage);
  Range text;
  text.module = 3;
  text.offset = 5 * kPage;
  list.assign(10 * kPage, 14 * kPage, text);
  text.offset = 9 * kPage;
  list.assign(14 * kPage, 16 * kPage, text);  // goes on in the file
  EXPECT_EQ(list.size(), 1u);
  text.offset = 0;
  list.assign(16 * kPage, 18 * kPage, text);  // does not
  EXPECT_EQ(list.size(), 2u);
  text.offset = 2 * kPage;
  text.module = 4;
  list.assign(18 * kPage, 20 * kPage, text);  // of another file
  EXPECT_EQ(list.size(), 3u);
  list.erase(12 * kPage, 13 * kPage);
  uint64_t start = 0;
  const Range* rest = list.find(13 * kPage, &start);
  ASSERT_NE(rest, nullptr);
  EXPECT_EQ(start, 13 * kPage);
  EXPECT_EQ(rest->offset, 8 * kPage);
  EXPECT_EQ(rest->module, 3u);
}

}  // namespace
}  // namespace phybin::process
