// See image_verify.h.
#include "proto/image_verify.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>

#include "proto/sha256.h"

namespace phybin::proto {
namespace {

constexpr uint64_t kAddressEnd = uint64_t{1} << 47;
constexpr uint64_t kMaxFileBytes = uint64_t{1} << 32;  // far more than two variants can fill
constexpr uint64_t kPage = 4096;

// [start, start + count * size) of the file; false if it does not lie in [from, file).
struct Range {
  uint64_t start, end;
};
bool section(uint64_t start, uint64_t count, uint64_t size, uint64_t from, uint64_t file, Range& range) {
  if (start < from || start > file || count > (file - start) / size) return false;
  range = {start, start + count * size};
  return true;
}

template <typename T>
T element(const uint8_t* file, uint64_t offset, uint64_t index) {
  T value;
  memcpy(&value, file + offset + index * sizeof value, sizeof value);
  return value;
}

const char* check_index(const uint8_t* file, const ImageHeader& header, const ImageVariant& v) {
  uint64_t used = 0;
  for (uint64_t i = 0; i <= v.index_mask; ++i) {
    const auto bucket = element<ImageIndexBucket>(file, v.index_offset, i);
    if (bucket.key == 0) {
      if (bucket.code != 0) return "an empty bucket of the index holds code";
      continue;
    }
    if (bucket.key > header.text_bytes) return "the index names an address outside of the module's text";
    const uint32_t code = bucket.code & ~1u;
    if (code % 4 != 0 || code >= v.code_bytes) return "the index leads outside of the code";
    uint64_t at = image_index_hash(bucket.key) & v.index_mask;
    for (unsigned probes = 1;; ++probes, at = (at + 1) & v.index_mask) {
      const uint32_t key = element<ImageIndexBucket>(file, v.index_offset, at).key;
      if (key == bucket.key) break;
      if (key == 0) return "an entry of the index cannot be found";
      if (probes == kMaxImageProbes) return "an entry of the index is too far from its place";
    }
    if (at != i) return "the index names an address twice";
    ++used;
  }
  return used == v.entries ? nullptr : "the index has another number of entries than the header says";
}

const char* check_slots(const uint8_t* file, const ImageVariant& v) {
  for (uint64_t i = 0; i < v.slot_pairs; ++i) {
    const auto pair = element<ImageSlotPair>(file, v.slots_offset, i);
    if (pair.plain != 0 || pair.flags != 0) return "a slot is not empty";
    if (pair.target < -static_cast<int64_t>(kAddressEnd) || pair.target > static_cast<int64_t>(kAddressEnd))
      return "a slot leads outside of the address space";
  }
  return nullptr;
}

const char* check_places(const uint8_t* file, const ImageVariant& v) {
  uint64_t next = 0;  // least offset that the next place may have
  for (uint64_t i = 0; i < v.places; ++i) {
    const auto place = element<ImagePlace>(file, v.places_offset, i);
    if (place.code < next || place.code % 4 != 0) return "places are out of order";
    if (place.code >= v.code_bytes) return "a place outside of the code";
    if (place.flag_form > kLastFlagForm || (place.pf & ~kPlaceGoesBack) > 31 || place.af_a > 31 || place.af_b > 31)
      return "a place that says nothing sensible";
    next = uint64_t{place.code} + 4;
  }
  return nullptr;
}

}  // namespace

const char* check_image_header(const ImageHeader& h, uint64_t file_bytes) {
  if (memcmp(h.magic, kImageMagic, sizeof h.magic) != 0) return "not an image";
  if (h.format != kImageFormat) return "an image of another format";
  if (h.header_bytes != sizeof h) return "a header of another size";
  if (h.file_bytes != file_bytes || file_bytes > kMaxFileBytes)
    return "the file has another size than its header says";
  if (file_bytes % kImageAlignment != 0 || file_bytes < sizeof h) return "a file of impossible size";
  if (h.text_file_offset % kPage != 0 || h.text_address % kPage != 0) return "the module's text is not aligned";
  if (h.text_bytes == 0 || h.text_bytes > kMaxImageTextBytes) return "the module's text has an impossible size";
  if (h.text_file_offset > h.module_bytes || h.text_bytes > h.module_bytes - h.text_file_offset)
    return "the module's text lies outside of its file";
  if (h.text_address >= kAddressEnd) return "the module's text lies outside of the address space";
  if (h.image_address % kImageAlignment != 0 || h.image_address >= kAddressEnd) return "an impossible place";
  if (h.image_address != 0 && h.image_address < h.text_address + h.text_bytes) return "the image overlaps its module";

  Range ranges[2 + 3 * kVariants];
  unsigned count = 0;
  if (h.slots_offset % kImageAlignment != 0 || h.slots_end % kImageAlignment != 0 || h.slots_offset < sizeof h ||
      h.slots_offset > h.slots_end || h.slots_end > file_bytes)
    return "slots at an impossible place";
  ranges[count++] = {0, sizeof h};
  ranges[count++] = {h.slots_offset, h.slots_end};
  uint64_t slots_from = h.slots_offset;
  for (const ImageVariant& v : h.variants) {
    if (v.index_offset % 8 != 0 || v.code_offset % kPage != 0 || v.slots_offset % kImageAlignment != 0 ||
        v.places_offset % 4 != 0)
      return "a section is not aligned";
    if (v.index_mask >= file_bytes || (v.index_mask & (v.index_mask + 1)) != 0) return "an index of impossible size";
    if (v.entries > (v.index_mask + 1) / 2) return "an index that is too full";
    if (v.code_bytes % 4 != 0 || v.code_bytes > kMaxVariantCodeBytes) return "code of impossible size";
    Range slots;
    if (!section(v.index_offset, v.index_mask + 1, sizeof(ImageIndexBucket), sizeof h, file_bytes, ranges[count]) ||
        !section(v.code_offset, v.code_bytes, 1, sizeof h, file_bytes, ranges[count + 1]) ||
        !section(v.places_offset, v.places, sizeof(ImagePlace), sizeof h, file_bytes, ranges[count + 2]) ||
        !section(v.slots_offset, v.slot_pairs, sizeof(ImageSlotPair), slots_from, h.slots_end, slots))
      return "a section lies outside of the file";
    count += 3;
    slots_from = slots.end;
  }
  std::sort(ranges, ranges + count,
            [](const Range& x, const Range& y) { return x.start != y.start ? x.start < y.start : x.end < y.end; });
  for (unsigned i = 1; i < count; ++i) {
    if (ranges[i].start < ranges[i - 1].end) return "sections overlap";
  }
  return nullptr;
}

void image_content_digest(const uint8_t* file, size_t size, Digest& digest) {
  constexpr size_t kField = offsetof(ImageHeader, content_digest);
  const Digest zero = {};
  Sha256 hash;
  hash.add(file, kField);
  hash.add(zero, sizeof zero);
  hash.add(file + kField + sizeof zero, size - kField - sizeof zero);
  hash.finish(digest);
}

const char* verify_image(const uint8_t* file, size_t size) {
  if (size < sizeof(ImageHeader)) return "shorter than a header";
  const auto header = element<ImageHeader>(file, 0, 0);
  if (const char* problem = check_image_header(header, size)) return problem;
  Digest digest;
  image_content_digest(file, size, digest);
  if (memcmp(digest, header.content_digest, sizeof digest) != 0) return "the content is not what was written";
  for (const ImageVariant& v : header.variants) {
    for (const char* problem : {check_index(file, header, v), check_slots(file, v), check_places(file, v)}) {
      if (problem != nullptr) return problem;
    }
  }
  return nullptr;
}

}  // namespace phybin::proto
