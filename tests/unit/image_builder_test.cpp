// Making images: which files there can be images of, which entry points come in, and that what is made holds
// together. That the code is right, too, is for programs to show (tests/cache).
#include "worker/image/image_builder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <set>

#include "proto/image_verify.h"
#include "tests/support/code_sections.h"
#include "tests/support/small_elf.h"
#include "worker/image/module.h"
#include "worker/image/reachable.h"

namespace phybin {
namespace {

using Bytes = std::vector<uint8_t>;
using proto::ImageHeader;
using proto::ImageVariant;

Bytes read_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return Bytes{std::istreambuf_iterator<char>(stream), {}};
}

struct Result {
  std::string problem;
  Bytes image;
  image::ImageReport report;

  ImageHeader header() const {
    ImageHeader header;
    memcpy(&header, image.data(), sizeof header);
    return header;
  }
  template <typename T>
  std::vector<T> section(uint64_t offset, uint64_t count) const {
    std::vector<T> values(count);
    if (count != 0) memcpy(values.data(), image.data() + offset, count * sizeof(T));
    return values;
  }
};

Result build(const Bytes& file, std::vector<uint32_t> entry_points) {
  // Of exactly the file's size, so that the sanitizers see each byte too many.
  const std::unique_ptr<uint8_t[]> copy(new uint8_t[file.size() + 1]);
  std::copy(file.begin(), file.end(), copy.get());
  image::ImageInput input;
  input.file = copy.get();
  input.size = file.size();
  input.entry_points = std::move(entry_points);
  Result result;
  result.problem = image::build_image(input, result.image, result.report);
  return result;
}

const Bytes kReturn = {0xc3};

std::string problem_of(const test::SmallElf& elf) { return build(elf.bytes(), {0x1000}).problem; }

TEST(ImageBuilder, WhichFilesHaveImages) {
  EXPECT_EQ(problem_of(test::SmallElf(kReturn)), "");
  EXPECT_EQ(problem_of(test::SmallElf(kReturn, ET_EXEC)), "");
  EXPECT_EQ(problem_of(test::SmallElf(kReturn, ET_REL)), "an object file, not a program");
  {
    test::SmallElf elf(kReturn);
    elf.add(PT_LOAD, PF_R | PF_X, 0x1000, 0x3000, 1);
    EXPECT_EQ(problem_of(elf), "more than one executable segment");
  }
  {
    test::SmallElf elf(kReturn);
    elf.segments[0].p_flags = PF_R;
    EXPECT_EQ(problem_of(elf), "no executable segment");
  }
  {
    test::SmallElf elf(kReturn);
    elf.segments[0].p_flags |= PF_W;
    EXPECT_EQ(problem_of(elf), "the executable segment is writable");
  }
  {
    test::SmallElf elf(kReturn);
    elf.add(PT_LOAD, PF_R | PF_W, 0x800, 0x1800, 1);
    EXPECT_EQ(problem_of(elf), "another segment shares a page with the executable one");
  }
  {
    test::SmallElf elf(kReturn);
    elf.add(PT_LOAD, PF_R | PF_W, 0, 0x2000, 1).p_memsz = uint64_t{2} << 30;
    EXPECT_EQ(problem_of(elf), "too large a module");
  }
  for (const Elf64_Dyn& entry : {Elf64_Dyn{DT_TEXTREL, {0}}, Elf64_Dyn{DT_FLAGS, {DF_TEXTREL}}}) {
    Bytes code(1 + sizeof entry, 0xc3);
    memcpy(code.data() + 1, &entry, sizeof entry);
    test::SmallElf elf(code);
    elf.add(PT_DYNAMIC, PF_R, 0x1001, 0x1001, sizeof entry);
    EXPECT_EQ(problem_of(elf), "relocations in the executable segment");
  }
  {
    test::SmallElf elf(kReturn);
    elf.add(PT_DYNAMIC, PF_R, 0x1000, 0x1000, 2);
    EXPECT_EQ(problem_of(elf), "dynamic section beyond the end of the file");
  }
}

TEST(ImageBuilder, WhereImagesGo) {
  test::SmallElf elf(kReturn);
  elf.add(PT_LOAD, PF_R | PF_W, 0, 0x3000, 1).p_memsz = 0x20000;
  ImageHeader header = build(elf.bytes(), {0x1000}).header();
  EXPECT_EQ(header.text_file_offset, 0x1000u);
  EXPECT_EQ(header.text_address, 0x1000u);
  EXPECT_EQ(header.text_bytes, 1u);
  EXPECT_EQ(header.image_address, 0x30000u + proto::kImageAlignment);
  header = build(test::SmallElf(kReturn, ET_EXEC).bytes(), {0x1000}).header();
  EXPECT_EQ(header.text_address, 0x401000u);
  EXPECT_EQ(header.image_address, 0u);
}

TEST(ImageBuilder, EntryPoints) {
  // nop; ret; then a call that the end of the text cuts off.
  const Result result = build(test::SmallElf({0x90, 0xc3, 0xe8, 0x00}).bytes(),
                              {0x1001, 0x1002, 0x1000, 0x1001, 0xfff, 0x1004, 0x500000});
  EXPECT_EQ(result.problem, "");
  EXPECT_EQ(result.report.given, 6u);
  EXPECT_EQ(result.report.outside, 3u);
  for (unsigned i = 0; i < proto::kVariants; ++i) {
    const ImageVariant& v = result.header().variants[i];
    EXPECT_EQ(result.report.variants[i].dropped, 1u);
    std::set<uint32_t> keys;
    for (const auto& bucket : result.section<proto::ImageIndexBucket>(v.index_offset, v.index_mask + 1)) {
      if (bucket.key != 0) keys.insert(bucket.key);
    }
    EXPECT_EQ(keys, (std::set<uint32_t>{1, 2}));
  }
  EXPECT_EQ(build(test::SmallElf(kReturn).bytes(), {0x2000}).problem, "no entry point that could be translated");
}

uint32_t branch_target(uint32_t word, uint32_t at) {
  return at + static_cast<uint32_t>(static_cast<int32_t>(word << 6) >> 6);
}

constexpr uint32_t kB = 0x14000000, kBl = 0x94000000, kBranchMask = 0xfc000000;

// The function at 0 calls the one at 0x20, then branches to 0x30, an entry that needs flags, or to what is no entry.
TEST(ImageBuilder, Links) {
  Bytes code(0x50, 0xcc);
  const auto put = [&code](size_t at, std::initializer_list<uint8_t> bytes) {
    std::copy(bytes.begin(), bytes.end(), code.begin() + static_cast<std::ptrdiff_t>(at));
  };
  put(0x00, {0xe8, 0x1b, 0x00, 0x00, 0x00});  // call 0x20
  put(0x05, {0x01, 0xc8});                    // add eax, ecx
  put(0x07, {0x78, 0x27});                    // js 0x30
  put(0x09, {0xe9, 0x02, 0x10, 0x00, 0x00});  // jmp 0x1010
  put(0x20, {0x31, 0xc0, 0xc3});              // xor eax, eax; ret
  put(0x30, {0x11, 0xd1, 0xc3});              // adc ecx, edx; ret
  const Result result = build(test::SmallElf(code).bytes(), {0x1000, 0x1020, 0x1030});
  ASSERT_EQ(result.problem, "");
  for (const ImageVariant& v : result.header().variants) {
    const auto words = result.section<uint32_t>(v.code_offset, v.code_bytes / 4);
    std::map<uint32_t, uint32_t> entries;  // by offset in the text: word
    for (const auto& bucket : result.section<proto::ImageIndexBucket>(v.index_offset, v.index_mask + 1)) {
      if (bucket.key != 0) entries[bucket.key - 1] = bucket.code;
    }
    ASSERT_TRUE(entries.contains(0) && entries.contains(0x20) && entries.contains(0x30));
    EXPECT_EQ(entries[0x20] & 1, 0u);
    EXPECT_EQ(entries[0x30] & 1, 1u);
    std::multiset<uint32_t> calls, jumps;
    for (uint32_t at = 0; at < words.size(); ++at) {
      if ((words[at] & kBranchMask) == kBl) calls.insert(branch_target(words[at], at) * 4);
      if ((words[at] & kBranchMask) == kB) jumps.insert(branch_target(words[at], at) * 4);
    }
    EXPECT_EQ(calls, (std::multiset<uint32_t>{entries[0x20]}));
    // Behind the cold half of the exit that has made flags canonical; not from its hot half, which has not.
    EXPECT_EQ(jumps.count(entries[0x30] & ~1u), 1u);
    ASSERT_EQ(v.slot_pairs, 1u);
    EXPECT_EQ(result.section<proto::ImageSlotPair>(v.slots_offset, 1)[0].target, 0x1010);
  }
}

// ADRP and what follows it in veneers and resolvers lead to the slot pairs, from wherever they stand.
void check_slot_uses(const Result& result, const ImageVariant& v) {
  const auto words = result.section<uint32_t>(v.code_offset, v.code_bytes / 4);
  const uint64_t slots = result.header().image_address + v.slots_offset;
  const uint64_t code = result.header().image_address + v.code_offset;
  std::set<uint64_t> loaded, added;
  for (uint64_t at = 0; at + 1 < words.size(); ++at) {
    const uint32_t adrp = words[at], next = words[at + 1];
    if ((adrp & 0x9f00001f) != 0x90000011) continue;  // adrp x17
    const int64_t pages = static_cast<int32_t>((adrp >> 5 & 0x7ffff) << 2 << 11 | (adrp >> 29 & 3) << 11) >> 11;
    const uint64_t page = ((code + at * 4) & ~uint64_t{4095}) + static_cast<uint64_t>(pages * 4096);
    if ((next & 0xffc003ff) == 0xf9400230) loaded.insert(page + (next >> 10 & 0xfff) * 8 - slots);  // ldr x16, [x17]
    if ((next & 0xffc003ff) == 0x91000231) added.insert(page + (next >> 10 & 0xfff) - slots);       // add x17, x17
  }
  EXPECT_EQ(loaded, added);
  EXPECT_EQ(loaded.size(), v.slot_pairs);
  for (const uint64_t offset : loaded) {
    EXPECT_EQ(offset % sizeof(proto::ImageSlotPair), 0u);
    EXPECT_LT(offset / sizeof(proto::ImageSlotPair), v.slot_pairs);
  }
}

std::vector<uint32_t> some_entry_points(const image::Module& module, unsigned step) {
  std::vector<uint32_t> offsets;
  for (uint32_t at = 0; at < module.text_bytes; at += step) offsets.push_back(at);
  image::keep_reachable(module, offsets);
  for (uint32_t& offset : offsets) offset += static_cast<uint32_t>(module.text_file_offset);
  return offsets;
}

// One region is too small for it: it goes on in others, which nobody needs to have asked for.
TEST(ImageBuilder, LongStraightCode) {
  Bytes code;
  for (int i = 0; i < 1000; ++i) code.insert(code.end(), {0x48, 0x83, 0xc0, 0x01});  // add rax, 1
  code.push_back(0xc3);
  const ImageHeader header = build(test::SmallElf(code).bytes(), {0x1000}).header();
  for (const ImageVariant& variant : header.variants) {
    EXPECT_EQ(variant.entries, 4u);
    EXPECT_EQ(variant.slot_pairs, 0u);
  }
}

TEST(ImageBuilder, RealModules) {
  for (const char* name : {"libm.so.6", "ld-linux-x86-64.so.2"}) {
    const Bytes file = read_file(std::string(test::kLibraryFolder) + name);
    image::Module module;
    ASSERT_EQ(image::read_module(file.data(), file.size(), module), "");
    const Result result = build(file, some_entry_points(module, 400));
    ASSERT_EQ(result.problem, "");
    EXPECT_EQ(proto::verify_image(result.image.data(), result.image.size()), nullptr);
    const ImageHeader header = result.header();
    for (const ImageVariant& v : header.variants) {
      EXPECT_GT(v.entries, 100u);
      const auto words = result.section<uint32_t>(v.code_offset, v.code_bytes / 4);
      for (uint32_t at = 0; at < words.size(); ++at) {
        if ((words[at] & kBranchMask) != kBl) continue;
        ASSERT_LT(branch_target(words[at], at), words.size());
        ASSERT_NE(branch_target(words[at], at), at) << "a call that was left open";
      }
      check_slot_uses(result, v);
    }
  }
}

TEST(ImageBuilder, SameInputSameImage) {
  const Bytes file = read_file(std::string(test::kLibraryFolder) + "ld-linux-x86-64.so.2");
  image::Module module;
  ASSERT_EQ(image::read_module(file.data(), file.size(), module), "");
  std::vector<uint32_t> entry_points = some_entry_points(module, 300);
  const Result first = build(file, entry_points);
  std::reverse(entry_points.begin(), entry_points.end());
  entry_points.push_back(entry_points.front());
  EXPECT_EQ(first.image, build(file, entry_points).image);
}

// Entry points that all have the same place in the index: looking for one stays short, some are left out.
TEST(ImageBuilder, EntryPointsThatCollide) {
  const Bytes file = test::SmallElf(Bytes(0x80000, 0xc3)).bytes();
  std::vector<uint32_t> entry_points;
  for (uint32_t offset = 0; entry_points.size() < 300 && offset < 0x80000; ++offset) {
    if ((proto::image_index_hash(offset + 1) & 1023) == 7) entry_points.push_back(offset + 0x1000);
  }
  ASSERT_EQ(entry_points.size(), 300u);
  const Result result = build(file, entry_points);
  ASSERT_EQ(result.problem, "");
  EXPECT_EQ(proto::verify_image(result.image.data(), result.image.size()), nullptr);
  for (const ImageVariant& v : result.header().variants) {
    EXPECT_EQ(v.index_mask, 1023u);
    EXPECT_EQ(v.entries, proto::kMaxImageProbes);
  }
}

// Files that somebody made to do harm: an error or an image, in bounded time, and no access outside of the file.
TEST(ImageBuilder, DamagedFiles) {
  const Bytes original = read_file("/bin/true");
  ASSERT_FALSE(original.empty());
  std::mt19937_64 random(5);
  const unsigned rounds = std::getenv("PHYBIN_TEST_FULL") != nullptr ? 5'000 : 300;
  for (unsigned round = 0; round < rounds; ++round) {
    Bytes file = original;
    if (round % 8 == 0) file.resize(random() % file.size());
    for (unsigned k = 0; k < 1 + round % 20 && !file.empty(); ++k) {
      // Mostly in the headers, else anywhere.
      const size_t at = random() % (k % 2 == 0 ? std::min<size_t>(file.size(), 1024) : file.size());
      file[at] = static_cast<uint8_t>(random() % 4 == 0 ? 0xff : random());
    }
    const std::unique_ptr<uint8_t[]> copy(new uint8_t[file.size() + 1]);
    std::copy(file.begin(), file.end(), copy.get());
    image::ImageInput input;
    input.file = copy.get();
    input.size = file.size();
    for (unsigned k = 0; k < 8; ++k)
      input.entry_points.push_back(static_cast<uint32_t>(random() % (original.size() + 16)));
    input.only_reachable = true;
    Bytes result;
    image::ImageReport report;
    if (image::build_image(input, result, report).empty()) {
      EXPECT_EQ(proto::verify_image(result.data(), result.size()), nullptr) << "round " << round;
    }
  }
}

TEST(Reachable, InstructionStarts) {
  Bytes code(0x40, 0xcc);
  const auto put = [&code](size_t at, std::initializer_list<uint8_t> bytes) {
    std::copy(bytes.begin(), bytes.end(), code.begin() + static_cast<std::ptrdiff_t>(at));
  };
  put(0x00, {0xe8, 0x0b, 0x00, 0x00, 0x00});              // call 0x10
  put(0x05, {0x48, 0x8d, 0x05, 0x14, 0x00, 0x00, 0x00});  // lea rax, [rip + 0x14]: 0x20
  put(0x0c, {0xff, 0xe0});                                // jmp rax
  put(0x10, {0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8});        // mov rax, ...
  put(0x1a, {0xc3});
  put(0x20, {0x90, 0xc3});
  put(0x22, {0x0f, 0x1f, 0x00, 0xc3});  // nothing leads here but computed jumps
  const test::SmallElf elf(code);
  const Bytes file = elf.bytes();
  image::Module module;
  ASSERT_EQ(image::read_module(file.data(), file.size(), module), "");
  std::vector<uint32_t> offsets;
  for (uint32_t i = 0; i < 0x26; ++i) offsets.push_back(i);
  const uint64_t dropped = image::keep_reachable(module, offsets);
  EXPECT_EQ(dropped + offsets.size(), 0x26u);
  const std::set<uint32_t> kept(offsets.begin(), offsets.end());
  for (const uint32_t start : {0x00u, 0x05u, 0x0cu, 0x10u, 0x1au, 0x20u, 0x21u, 0x22u, 0x25u})
    EXPECT_TRUE(kept.contains(start)) << std::hex << start;
  for (const uint32_t inside : {0x01u, 0x06u, 0x0du, 0x11u, 0x14u, 0x19u, 0x23u, 0x24u})
    EXPECT_FALSE(kept.contains(inside)) << std::hex << inside;
}

// All function symbols, and all starts that decoding front to back from each of them comes to.
TEST(Reachable, Libc) {
  const Bytes file = read_file(std::string(test::kLibraryFolder) + "libc.so.6");
  image::Module module;
  ASSERT_EQ(image::read_module(file.data(), file.size(), module), "");
  std::vector<uint32_t> offsets(module.text_bytes);
  for (uint32_t i = 0; i < offsets.size(); ++i) offsets[i] = i;
  const uint64_t dropped = image::keep_reachable(module, offsets);
  // An instruction has 4 bytes and a bit on average.
  EXPECT_GT(dropped, module.text_bytes * 7 / 10);
  EXPECT_GT(offsets.size(), module.text_bytes / 6);
}

}  // namespace
}  // namespace phybin
