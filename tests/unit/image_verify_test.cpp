// The checks of image files refuse whatever is damaged, and never look outside of what they are given (the sanitizers
// are the judges), whoever made it.
#include "proto/image_verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>

#include "tests/support/small_elf.h"
#include "worker/image/image_builder.h"

namespace phybin {
namespace {

using proto::ImageHeader;
using proto::ImageIndexBucket;
using proto::ImagePlace;
using proto::ImageSlotPair;
using proto::ImageVariant;

using Bytes = std::vector<uint8_t>;

// An image with links, open exits and places in both variants.
const Bytes& good_image() {
  static const Bytes image = [] {
    const test::SmallElf elf({
        0x48, 0x8b, 0x05, 0x10, 0x00, 0x00, 0x00,                                      // 0: mov rax, [rip + 16]
        0xe8, 0x14, 0x00, 0x00, 0x00,                                                  // 7: call 0x20
        0x85, 0xc0,                                                                    // c: test eax, eax
        0x0f, 0x84, 0xec, 0x0f, 0x00, 0x00,                                            // e: jz 0x1000, outside
        0xeb, 0x0a,                                                                    // 14: jmp 0x20
        0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x48, 0x89, 0x07,  // 20: mov [rdi], rax
        0xc3,                                                                          // 23: ret
    });
    const Bytes file = elf.bytes();
    image::ImageInput input;
    input.file = file.data();
    input.size = file.size();
    input.entry_points = {0x1000, 0x1020};
    image::ImageReport report;
    Bytes result;
    EXPECT_EQ(image::build_image(input, result, report), "");
    return result;
  }();
  return image;
}

ImageHeader header_of(const Bytes& image) {
  ImageHeader header;
  memcpy(&header, image.data(), sizeof header);
  return header;
}

// From a copy of exactly its size, so that the sanitizers see each byte too many.
const char* verify(const Bytes& image) {
  const std::unique_ptr<uint8_t[]> copy(new uint8_t[image.size()]);
  std::copy(image.begin(), image.end(), copy.get());
  return proto::verify_image(copy.get(), image.size());
}

// What somebody does who knows how the digest is made.
void sign(Bytes& image) {
  ImageHeader header = header_of(image);
  proto::image_content_digest(image.data(), image.size(), header.content_digest);
  memcpy(image.data(), &header, sizeof header);
}

const char* verify_changed(const std::function<void(ImageHeader&, Bytes&)>& change) {
  Bytes image = good_image();
  ImageHeader header = header_of(image);
  change(header, image);
  memcpy(image.data(), &header, std::min(sizeof header, image.size()));
  if (image.size() >= sizeof header) sign(image);
  return verify(image);
}

template <typename T>
void change_element(Bytes& image, uint64_t offset, const std::function<void(T&)>& change) {
  T value;
  memcpy(&value, image.data() + offset, sizeof value);
  change(value);
  memcpy(image.data() + offset, &value, sizeof value);
}

TEST(ImageVerify, GoodImage) {
  const Bytes& image = good_image();
  EXPECT_EQ(verify(image), nullptr);
  const ImageHeader header = header_of(image);
  EXPECT_EQ(proto::check_image_header(header, image.size()), nullptr);
  for (const ImageVariant& v : header.variants) {
    EXPECT_GE(v.entries, 3u);
    EXPECT_GE(v.places, 4u);
    EXPECT_GE(v.slot_pairs, 1u);
  }
}

TEST(ImageVerify, EachByteMatters) {
  const Bytes& image = good_image();
  const std::unique_ptr<uint8_t[]> copy(new uint8_t[image.size()]);
  memcpy(copy.get(), image.data(), image.size());
  const bool full = std::getenv("PHYBIN_TEST_FULL") != nullptr;
  size_t zeros = 0;
  for (size_t i = 0; i < image.size(); ++i) {
    // Most of a small image is padding.
    zeros = image[i] == 0 ? zeros + 1 : 0;
    if (!full && zeros > 32 && i % 509 != 0) continue;
    copy[i] ^= static_cast<uint8_t>(1u << (i % 8));
    ASSERT_NE(proto::verify_image(copy.get(), image.size()), nullptr) << "byte " << i;
    copy[i] = image[i];
  }
}

TEST(ImageVerify, EachLengthButItsOwn) {
  const Bytes& image = good_image();
  for (size_t size = 0; size < image.size(); size = size < 1024 ? size + 1 : size + 4093) {
    ASSERT_NE(verify(Bytes(image.begin(), image.begin() + static_cast<std::ptrdiff_t>(size))), nullptr) << size;
  }
  Bytes longer = image;
  longer.resize(image.size() + proto::kImageAlignment);
  EXPECT_NE(verify(longer), nullptr);
}

TEST(ImageVerify, HostileHeader) {
  EXPECT_EQ(verify_changed([](ImageHeader&, Bytes&) {}), nullptr);
  const std::function<void(ImageHeader&)> changes[] = {
      [](ImageHeader& h) { h.magic[0] = 'p'; },
      [](ImageHeader& h) { ++h.format; },
      [](ImageHeader& h) { --h.header_bytes; },
      [](ImageHeader& h) { h.file_bytes -= proto::kImageAlignment; },
      [](ImageHeader& h) { h.text_address += 1; },
      [](ImageHeader& h) { h.text_address = uint64_t{1} << 47; },
      [](ImageHeader& h) { h.text_bytes = 0; },
      [](ImageHeader& h) { h.text_bytes = h.module_bytes; },
      [](ImageHeader& h) { h.text_file_offset = ~uint64_t{0xfff}; },
      [](ImageHeader& h) { h.image_address += 4096; },
      [](ImageHeader& h) { h.text_address = h.image_address; },
      [](ImageHeader& h) { h.slots_end += proto::kImageAlignment << 8; },
      [](ImageHeader& h) { h.slots_offset = 0; },
      [](ImageHeader& h) { h.slots_end = h.slots_offset - proto::kImageAlignment; },
  };
  for (size_t i = 0; i < std::size(changes); ++i)
    EXPECT_NE(verify_changed([&](ImageHeader& h, Bytes&) { changes[i](h); }), nullptr) << "change " << i;
  const std::function<void(ImageVariant&, ImageVariant&)> sections[] = {
      [](ImageVariant& v, ImageVariant&) { v.index_mask = 2; },
      [](ImageVariant& v, ImageVariant&) { v.index_mask = ~uint64_t{0}; },
      [](ImageVariant& v, ImageVariant&) { v.index_mask = (uint64_t{1} << 61) - 1; },
      [](ImageVariant& v, ImageVariant&) { v.index_offset += 4; },
      [](ImageVariant& v, ImageVariant&) { v.index_offset = 0; },
      [](ImageVariant& v, ImageVariant&) { v.index_offset = ~uint64_t{7}; },
      [](ImageVariant& v, ImageVariant&) { ++v.entries; },
      [](ImageVariant& v, ImageVariant&) { --v.entries; },
      [](ImageVariant& v, ImageVariant&) { v.code_offset += 4; },
      [](ImageVariant& v, ImageVariant&) { v.code_bytes += 2; },
      [](ImageVariant& v, ImageVariant&) { v.code_bytes = proto::kMaxVariantCodeBytes + 4; },
      [](ImageVariant& v, ImageVariant&) { v.code_bytes = 4; },
      [](ImageVariant& v, ImageVariant&) { v.slots_offset = 0; },
      [](ImageVariant& v, ImageVariant&) { v.slot_pairs = ~uint64_t{0} / 24 + 2; },
      [](ImageVariant& v, ImageVariant&) { v.places_offset += 2; },
      [](ImageVariant& v, ImageVariant&) { v.places_offset = v.slots_offset; },
      [](ImageVariant& v, ImageVariant&) { v.places = ~uint64_t{0} / 12 + 2; },
      [](ImageVariant& v, ImageVariant& other) { v.code_offset = other.code_offset; },
      [](ImageVariant& v, ImageVariant& other) { v.index_offset = other.index_offset; },
      [](ImageVariant& v, ImageVariant& other) { v.places_offset = other.places_offset; },
      [](ImageVariant& v, ImageVariant& other) { v.slots_offset = other.slots_offset; },
  };
  for (size_t i = 0; i < std::size(sections); ++i) {
    for (unsigned variant = 0; variant < proto::kVariants; ++variant) {
      EXPECT_NE(
          verify_changed([&](ImageHeader& h, Bytes&) { sections[i](h.variants[variant], h.variants[1 - variant]); }),
          nullptr)
          << "section " << i;
    }
  }
}

TEST(ImageVerify, HostileContent) {
  for (unsigned variant = 0; variant < proto::kVariants; ++variant) {
    const ImageVariant v = header_of(good_image()).variants[variant];
    uint64_t used = v.index_offset, empty = v.index_offset;
    const auto bucket_key = [&](uint64_t offset) {
      ImageIndexBucket bucket;
      memcpy(&bucket, good_image().data() + offset, sizeof bucket);
      return bucket.key;
    };
    while (bucket_key(used) == 0) used += sizeof(ImageIndexBucket);
    while (bucket_key(empty) != 0) empty += sizeof(ImageIndexBucket);
    const auto bucket = [&](uint64_t offset, const std::function<void(ImageIndexBucket&)>& change) {
      return verify_changed(
          [&](ImageHeader&, Bytes& image) { change_element<ImageIndexBucket>(image, offset, change); });
    };
    EXPECT_NE(bucket(used, [](ImageIndexBucket& b) { b.code |= 2; }), nullptr);
    EXPECT_NE(bucket(used, [&](ImageIndexBucket& b) { b.code = static_cast<uint32_t>(v.code_bytes); }), nullptr);
    EXPECT_NE(bucket(used, [](ImageIndexBucket& b) { b.key = UINT32_MAX; }), nullptr);
    EXPECT_NE(bucket(used, [](ImageIndexBucket& b) { b.key = 0; }), nullptr);
    EXPECT_NE(bucket(empty, [](ImageIndexBucket& b) { b.code = 4; }), nullptr);
    EXPECT_NE(bucket(empty, [&](ImageIndexBucket& b) { b.key = bucket_key(used); }), nullptr);

    const auto slot = [&](const std::function<void(ImageSlotPair&)>& change) {
      return verify_changed(
          [&](ImageHeader&, Bytes& image) { change_element<ImageSlotPair>(image, v.slots_offset, change); });
    };
    EXPECT_NE(slot([](ImageSlotPair& s) { s.plain = 0x1000; }), nullptr);
    EXPECT_NE(slot([](ImageSlotPair& s) { s.flags = 1; }), nullptr);
    EXPECT_NE(slot([](ImageSlotPair& s) { s.target = INT64_MIN; }), nullptr);

    const auto place = [&](uint64_t index, const std::function<void(ImagePlace&)>& change) {
      return verify_changed([&](ImageHeader&, Bytes& image) {
        change_element<ImagePlace>(image, v.places_offset + index * sizeof(ImagePlace), change);
      });
    };
    EXPECT_NE(place(0, [](ImagePlace& p) { p.code = UINT32_MAX & ~3u; }), nullptr);
    EXPECT_NE(place(0, [](ImagePlace& p) { p.code += 1; }), nullptr);
    EXPECT_NE(place(1, [](ImagePlace& p) { p.code = 0; }), nullptr);
    EXPECT_NE(place(v.places - 1, [&](ImagePlace& p) { p.code = static_cast<uint32_t>(v.code_bytes); }), nullptr);
    EXPECT_NE(place(0, [](ImagePlace& p) { p.flag_form = proto::kLastFlagForm + 1; }), nullptr);
    EXPECT_NE(place(0, [](ImagePlace& p) { p.af_b = 32; }), nullptr);
    EXPECT_NE(place(0, [](ImagePlace& p) { p.pf = 32; }), nullptr);
    EXPECT_NE(place(0, [](ImagePlace& p) { p.pf = proto::kPlaceGoesBack | 32; }), nullptr);
  }
}

// Anything in the header's place: refused, or consistent enough to be looked at.
TEST(ImageVerify, RandomHeaders) {
  std::mt19937_64 random(11);
  const uint64_t interesting[] = {0, 1, 4, 4095, 4096, 65536, uint64_t{1} << 31, uint64_t{1} << 47, ~uint64_t{0}};
  for (unsigned round = 0; round < 20'000; ++round) {
    ImageHeader header = header_of(good_image());
    auto* words = reinterpret_cast<uint64_t*>(&header);
    for (unsigned k = 0; k < 1 + round % 3; ++k) {
      uint64_t& word = words[random() % (offsetof(ImageHeader, content_digest) / 8)];
      switch (random() % 4) {
        case 0:
          word = interesting[random() % std::size(interesting)];
          break;
        case 1:
          word ^= uint64_t{1} << random() % 64;
          break;
        case 2:
          word += random() % 3 * 4096 - 4096;
          break;
        default:
          word = words[random() % (sizeof header / 8)];
      }
    }
    if (proto::check_image_header(header, good_image().size()) != nullptr) continue;
    Bytes image = good_image();
    memcpy(image.data(), &header, sizeof header);
    sign(image);
    verify(image);
  }
}

}  // namespace
}  // namespace phybin
