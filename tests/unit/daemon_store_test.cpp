// The daemon's index: what is written is read back, by whom it may be, and damage costs content, never the daemon.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "daemon/store.h"

namespace phybin::daemon {
namespace {

Digest digest(uint8_t value) {
  Digest result;
  result.fill(value);
  return result;
}

class StoreTest : public testing::Test {
 protected:
  StoreTest() {
    std::string pattern = testing::TempDir() + "phybin-store-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~StoreTest() override {
    if (system(("rm -rf " + folder_).c_str()) != 0) ADD_FAILURE();
  }

  std::string folder_;
};

ImageRow image(uint8_t module, Scope scope) {
  ImageRow row;
  row.key = {digest(module), digest(9), 3, 1, scope};
  row.generation = 4;
  row.file_bytes = 1 << 20;
  row.profile = 77;
  row.entries = 80;
  row.created = 1000;
  row.last_used = 2000;
  row.uses = 5;
  return row;
}

TEST_F(StoreTest, ImagesSurviveAndReplaceOthersOfTheirKey) {
  {
    Store store;
    ASSERT_EQ(store.open(folder_), "");
    EXPECT_TRUE(store.fresh());
    const int64_t first = store.add_image(image(1, kEveryone));
    EXPECT_NE(first, 0);
    EXPECT_NE(store.add_image(image(1, 1000)), first);
    ImageRow newer = image(1, kEveryone);
    newer.generation = 5;
    EXPECT_NE(store.add_image(newer), 0);
  }
  Store store;
  ASSERT_EQ(store.open(folder_), "");
  EXPECT_FALSE(store.fresh());
  const std::vector<ImageRow> rows = store.images();
  ASSERT_EQ(rows.size(), 2u);
  for (const ImageRow& row : rows) {
    EXPECT_EQ(row.key, image(1, row.key.scope).key);
    EXPECT_EQ(row.generation, row.key.scope == kEveryone ? 5 : 4);
    EXPECT_EQ(row.file_bytes, 1u << 20);
    EXPECT_EQ(row.profile, 77u);
    EXPECT_EQ(row.entries, 80u);
    EXPECT_EQ(row.created, 1000);
    EXPECT_EQ(row.last_used, 2000);
    EXPECT_EQ(row.uses, 5);
  }
  store.remove_image(rows[0].id);
  EXPECT_EQ(store.images().size(), 1u);
}

TEST_F(StoreTest, FilesAreKnownToWhomTheyWereShown) {
  Store store;
  ASSERT_EQ(store.open(folder_), "");
  const proto::FileKey key{1, 2, 3, 4, 5};
  store.remember_file(digest(7), key, 1000, digest(1));
  EXPECT_EQ(store.find_file(digest(7), key, 1000), digest(1));
  EXPECT_FALSE(store.find_file(digest(7), key, 1001));
  EXPECT_FALSE(store.find_file(digest(8), key, 1000));
  // Each part of the key counts.
  for (const proto::FileKey& other :
       {proto::FileKey{0, 2, 3, 4, 5}, proto::FileKey{1, 0, 3, 4, 5}, proto::FileKey{1, 2, 0, 4, 5},
        proto::FileKey{1, 2, 3, 0, 5}, proto::FileKey{1, 2, 3, 4, 0}}) {
    EXPECT_FALSE(store.find_file(digest(7), other, 1000));
  }
  store.remember_file(digest(7), key, kEveryone, digest(2));
  EXPECT_EQ(store.find_file(digest(7), key, 1001), digest(2));
  // The file has changed: the old content is forgotten.
  const proto::FileKey changed{1, 2, 3, 4, 6};
  store.remember_file(digest(7), changed, kEveryone, digest(3));
  EXPECT_FALSE(store.find_file(digest(7), key, 1001));
  EXPECT_EQ(store.find_file(digest(7), changed, 1001), digest(3));
}

TEST_F(StoreTest, ProofsUsesEntriesFailures) {
  Store store;
  ASSERT_EQ(store.open(folder_), "");
  EXPECT_FALSE(store.module(digest(1)));
  store.prove(1000, {digest(1), 500, false, "/home/a/prog", 0});
  store.prove(1001, {digest(1), 500, true, "/opt/prog", 0});
  store.prove(1000, {digest(1), 500, false, "/home/a/prog", 0});
  EXPECT_EQ(store.provers(digest(1)), (std::vector<Scope>{1000, 1001}));
  ASSERT_TRUE(store.module(digest(1)));
  EXPECT_TRUE(store.module(digest(1))->everyone);
  EXPECT_EQ(store.module(digest(1))->bytes, 500u);
  EXPECT_EQ(store.proofs().size(), 2u);

  store.note_use(1000, digest(1), {1, 2, 3, 4, 5}, digest(2));
  store.note_use(1000, digest(1), {1, 2, 3, 4, 6}, digest(3));  // the same file, changed
  ASSERT_EQ(store.uses(1000, digest(1)).size(), 1u);
  EXPECT_EQ(store.uses(1000, digest(1))[0].module, digest(3));
  EXPECT_TRUE(store.uses(1001, digest(1)).empty());

  store.save_entries(digest(1), 1000, {1, 2, 0xffffffff});
  store.save_entries(digest(1), 1001, {});
  EXPECT_EQ(store.entries(digest(1)).at(1000), (std::vector<uint32_t>{1, 2, 0xffffffff}));
  EXPECT_EQ(store.entry_counts().at(1000), 3u);
  EXPECT_EQ(store.oldest_entries(1000), digest(1));
  store.remove_entries(digest(1), 1000);
  EXPECT_FALSE(store.oldest_entries(1000));

  const ImageKey key = image(1, 1000).key;
  EXPECT_FALSE(store.failure(key));
  store.save_failure(key, {2, 12345, "it broke"});
  EXPECT_EQ(store.failure(key)->reason, "it broke");
  EXPECT_FALSE(store.failure(image(1, 1001).key));
  store.clear_failure(key);
  EXPECT_FALSE(store.failure(key));

  store.forget_before(INT64_MAX / 2);
  EXPECT_FALSE(store.module(digest(1)));
  EXPECT_TRUE(store.uses(1000, digest(1)).empty());
}

// Whatever stands in the file: the daemon gets an index that works.
TEST_F(StoreTest, DamageIsSetAside) {
  const std::string path = folder_ + "/index.sqlite";
  std::string good;
  {
    Store store;
    ASSERT_EQ(store.open(folder_), "");
    for (uint8_t i = 0; i != 100; ++i) store.add_image(image(i, kEveryone));
  }
  {
    std::ifstream file(path);
    good.assign(std::istreambuf_iterator<char>(file), {});
  }
  ASSERT_GT(good.size(), 8192u);
  const auto damaged = [&](const std::string& content) {
    std::ofstream(path, std::ios::trunc) << content;
    Store store;
    EXPECT_EQ(store.open(folder_), "");
    EXPECT_TRUE(store.fresh());
    EXPECT_TRUE(store.images().empty());
    EXPECT_NE(store.add_image(image(1, 5)), 0);
    struct stat status;
    EXPECT_EQ(stat((folder_ + "/index.sqlite.damaged").c_str(), &status), 0);
  };
  damaged(std::string(good.size(), 'x'));
  std::string hole = good;
  hole.replace(4096, 4096, 4096, '\xff');
  damaged(hole);
  damaged(good.substr(0, good.size() - 4096));
  std::string version = good;
  version[63] = static_cast<char>(version[63] + 1);  // user_version in the header
  damaged(version);
}

}  // namespace
}  // namespace phybin::daemon
