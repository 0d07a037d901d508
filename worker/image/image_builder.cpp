// See image_builder.h. The file's order: header; for each variant index and code; slots of both; places of both.
#include "worker/image/image_builder.h"

#include <algorithm>
#include <cstring>

#include "proto/image_format.h"
#include "proto/image_verify.h"
#include "proto/sha256.h"
#include "worker/image/module.h"
#include "worker/image/reachable.h"
#include "worker/image/variant.h"
#include "worker/translator/identity.h"

namespace phybin::image {
namespace {

using proto::ImageHeader;
using proto::ImageIndexBucket;
using proto::ImagePlace;
using proto::ImageSlotPair;
using proto::ImageVariant;
using proto::kImageAlignment;
using proto::kVariants;

constexpr uint64_t kPage = 4096;
constexpr uint64_t kCacheLine = 64;

constexpr uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) & ~(unit - 1); }

// Open addressing in a table at least twice as large as what it holds. A key that would stand too far from its place
// is left out; entry points can be chosen such that many do.
std::vector<ImageIndexBucket> make_index(const std::vector<VariantEntry>& entries, uint64_t& used) {
  uint64_t size = 2;
  while (size < entries.size() * 2) size *= 2;
  std::vector<ImageIndexBucket> index(size);
  used = 0;
  for (const VariantEntry& entry : entries) {
    uint64_t at = proto::image_index_hash(entry.key) & (size - 1);
    unsigned probes = 1;
    for (; index[at].key != 0 && probes < proto::kMaxImageProbes; ++probes) at = (at + 1) & (size - 1);
    if (index[at].key != 0) continue;
    index[at] = {entry.key, entry.code};
    ++used;
  }
  return index;
}

template <typename T>
void put(std::vector<uint8_t>& image, uint64_t offset, const std::vector<T>& values) {
  if (!values.empty()) memcpy(image.data() + offset, values.data(), values.size() * sizeof(T));
}

// ADRP reaches 4 GiB, which neither modules nor images come near to (module.cpp).
uint32_t with_pages(uint32_t adrp, uint64_t from, uint64_t to) {
  const auto pages = static_cast<uint32_t>((to >> 12) - (from >> 12));
  return adrp | (pages & 3) << 29 | (pages >> 2 & 0x7ffff) << 5;
}

void fix_up(Variant& variant, const ImageVariant& place, uint64_t image_address) {
  for (const CodeFixup& fixup : variant.fixups) {
    uint32_t& word = variant.words[fixup.code / 4];
    const uint64_t here = image_address + place.code_offset + fixup.code;
    const uint64_t pair = image_address + place.slots_offset + fixup.value * sizeof(ImageSlotPair);
    const auto in_page = static_cast<uint32_t>(pair % kPage);
    switch (fixup.kind) {
      case CodeFixup::Kind::kAddressPage:
        word = with_pages(word, here, fixup.value);
        break;
      case CodeFixup::Kind::kSlotPage:
        word = with_pages(word, here, pair);
        break;
      case CodeFixup::Kind::kSlotAdd:
        word |= in_page << 10;
        break;
      case CodeFixup::Kind::kSlotLoad:
        word |= in_page / 8 << 10;
        break;
    }
  }
}

// Sorts the input's entry points into what they are, and to where they are in the text.
std::string make_profile(const ImageInput& input, const Module& module, Profile& profile, ImageReport& report) {
  std::vector<uint32_t> given = input.entry_points;
  std::sort(given.begin(), given.end());
  given.erase(std::unique(given.begin(), given.end()), given.end());
  report.given = given.size();
  for (const uint32_t value : given) {
    const uint64_t offset = value & ~proto::kUnalignedAccess;
    if (offset < module.text_file_offset || offset - module.text_file_offset >= module.text_bytes) {
      ++report.outside;
      continue;
    }
    std::vector<uint32_t>& kind = offset == value ? profile.entry_points : profile.unaligned;
    kind.push_back(static_cast<uint32_t>(offset - module.text_file_offset));
  }
  report.unaligned = profile.unaligned.size();
  if (input.only_reachable) report.not_reachable = keep_reachable(module, profile.entry_points);
  return profile.entry_points.empty() ? "no entry point that could be translated" : "";
}

}  // namespace

std::string build_image(const ImageInput& input, std::vector<uint8_t>& image, ImageReport& report) {
  report = {};
  Module module;
  std::string problem = read_module(input.file, input.size, module);
  if (!problem.empty()) return problem;
  Profile profile;
  problem = make_profile(input, module, profile, report);
  if (!problem.empty()) return problem;

  Variant variants[kVariants];
  std::vector<ImageIndexBucket> indexes[kVariants];
  ImageHeader header = {};
  uint64_t at = sizeof header;
  const auto take = [&at](uint64_t bytes, uint64_t alignment) {
    const uint64_t start = round_up(at, alignment);
    at = start + bytes;
    return start;
  };
  for (unsigned i = 0; i < kVariants; ++i) {
    Variant& variant = variants[i];
    CodeOptions options = input.options;
    options.memory_model = i == proto::kTsoVariant ? MemoryModel::kTso : MemoryModel::kWeak;
    build_variant(module, profile, input.host, options, variant);
    ImageVariant& place = header.variants[i];
    indexes[i] = make_index(variant.entries, place.entries);
    place.index_mask = indexes[i].size() - 1;
    place.index_offset = take(indexes[i].size() * sizeof(ImageIndexBucket), kCacheLine);
    place.code_bytes = variant.words.size() * 4;
    place.code_offset = take(place.code_bytes, kPage);
    report.variants[i] = {
        variant.dropped,       place.entries,          place.code_bytes,     variant.guest_instructions,
        variant.places.size(), variant.targets.size(), variant.linked_exits, variant.open_exits};
  }
  header.slots_offset = round_up(at, kImageAlignment);
  for (unsigned i = 0; i < kVariants; ++i) {
    ImageVariant& place = header.variants[i];
    place.slot_pairs = variants[i].targets.size();
    place.slots_offset = take(place.slot_pairs * sizeof(ImageSlotPair), kImageAlignment);
  }
  // Some are always there: who maps them need not ask.
  at = std::max(at, header.slots_offset + 1);
  header.slots_end = take(0, kImageAlignment);
  for (unsigned i = 0; i < kVariants; ++i) {
    ImageVariant& place = header.variants[i];
    place.places = variants[i].places.size();
    place.places_offset = take(place.places * sizeof(ImagePlace), kCacheLine);
  }
  header.file_bytes = take(0, kImageAlignment);

  memcpy(header.magic, proto::kImageMagic, sizeof header.magic);
  header.format = proto::kImageFormat;
  header.header_bytes = sizeof header;
  proto::Sha256 module_hash;
  module_hash.add(input.file, input.size);
  module_hash.finish(header.module_digest);
  memcpy(header.translator_build, kTranslatorBuild, sizeof header.translator_build);
  header.host_features = host_feature_bits(input.host);
  header.code_options = code_option_bits(input.options);
  header.module_bytes = input.size;
  header.text_file_offset = module.text_file_offset;
  header.text_address = module.text_address;
  header.text_bytes = module.text_bytes;
  header.image_address = module.image_address;

  image.assign(header.file_bytes, 0);
  for (unsigned i = 0; i < kVariants; ++i) {
    const ImageVariant& place = header.variants[i];
    Variant& variant = variants[i];
    fix_up(variant, place, header.image_address);
    put(image, place.index_offset, indexes[i]);
    put(image, place.code_offset, variant.words);
    std::vector<ImageSlotPair> pairs;
    for (const int64_t target : variant.targets) pairs.push_back({0, 0, target});
    put(image, place.slots_offset, pairs);
    put(image, place.places_offset, variant.places);
    variant = {};
  }
  memcpy(image.data(), &header, sizeof header);
  proto::image_content_digest(image.data(), image.size(), header.content_digest);
  memcpy(image.data(), &header, sizeof header);
  return {};
}

}  // namespace phybin::image
