// See offers.h.
#include "worker/cache/offers.h"

#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <memory>
#include <vector>

#include "worker/process/descriptors.h"
#include "worker/translator/identity.h"

namespace phybin::cache {
namespace {

struct Offer {
  proto::FileKey module;
  process::OwnDescriptor descriptor;
  std::unique_ptr<proto::ImageHeader> header;  // once read
  bool refused = false;
};

Identity expected;
std::vector<Offer> offers;

Offer* offer_for(const proto::FileKey& file) {
  for (Offer& offer : offers) {
    if (offer.module == file) return &offer;
  }
  return nullptr;
}

bool lies_within(uint64_t start, uint64_t bytes, uint64_t end) { return start <= end && bytes <= end - start; }

constexpr uint64_t kAddressLimit = uint64_t{1} << 47;

bool is_good_variant(const proto::ImageHeader& header, const proto::ImageVariant& variant) {
  if (variant.index_mask >= header.file_bytes || !std::has_single_bit(variant.index_mask + 1)) return false;
  if (variant.slot_pairs > header.file_bytes || variant.places > header.file_bytes) return false;
  if (variant.code_bytes > proto::kMaxVariantCodeBytes || variant.entries * 2 > variant.index_mask + 1) return false;
  // Everything but the slots stands in what is never written.
  const auto is_constant = [&](uint64_t start, uint64_t bytes) {
    return lies_within(start, bytes, header.file_bytes) && start >= sizeof header &&
           (start >= header.slots_end || start + bytes <= header.slots_offset);
  };
  return variant.index_offset % 8 == 0 &&
         is_constant(variant.index_offset, (variant.index_mask + 1) * sizeof(proto::ImageIndexBucket)) &&
         variant.code_offset % 4096 == 0 && is_constant(variant.code_offset, variant.code_bytes) &&
         variant.places_offset % 4 == 0 &&
         is_constant(variant.places_offset, variant.places * sizeof(proto::ImagePlace)) &&
         variant.slots_offset % proto::kImageAlignment == 0 && variant.slots_offset >= header.slots_offset &&
         lies_within(variant.slots_offset, variant.slot_pairs * sizeof(proto::ImageSlotPair), header.slots_end);
}

}  // namespace

bool is_usable(const proto::ImageHeader& header, const Identity& identity, uint64_t module_bytes,
               uint64_t file_bytes) {
  if (memcmp(header.magic, proto::kImageMagic, sizeof header.magic) != 0 || header.format != proto::kImageFormat ||
      header.header_bytes != sizeof header)
    return false;
  if (memcmp(header.translator_build, kTranslatorBuild, sizeof kTranslatorBuild) != 0 ||
      header.host_features != identity.host_features || header.code_options != identity.code_options ||
      header.module_bytes != module_bytes)
    return false;
  const auto is_aligned = [](uint64_t value) { return value % proto::kImageAlignment == 0; };
  if (!is_aligned(header.file_bytes) || header.file_bytes == 0 || header.file_bytes > file_bytes ||
      header.file_bytes >= kAddressLimit || !is_aligned(header.image_address) ||
      header.image_address >= kAddressLimit)
    return false;
  if (!is_aligned(header.slots_offset) || !is_aligned(header.slots_end) || header.slots_offset > header.slots_end ||
      header.slots_end > header.file_bytes || header.slots_offset == 0)
    return false;
  // Keys of the index have 32 bits.
  if (header.text_bytes == 0 || header.text_bytes >= UINT32_MAX || header.text_address >= kAddressLimit ||
      header.text_file_offset % 4096 != 0 || header.text_address % 4096 != 0 ||
      !lies_within(header.text_file_offset, header.text_bytes, module_bytes))
    return false;
  for (const proto::ImageVariant& variant : header.variants) {
    if (!is_good_variant(header, variant)) return false;
  }
  return true;
}

void expect_identity(const Identity& identity) { expected = identity; }

void add_offer(const proto::ImageOffer& offered, int fd) {
  Offer* offer = offer_for(offered.module);
  if (offer == nullptr) {
    if (offers.size() >= process::max_image_descriptors()) {
      close(fd);
      return;
    }
    const auto index = static_cast<unsigned>(offers.size());
    offer = &offers.emplace_back(Offer{offered.module, process::image_descriptor(index), nullptr});
  }
  offer->header = nullptr;
  offer->refused = false;
  process::keep_descriptor(offer->descriptor, fd);
}

bool is_offered(const proto::FileKey& file) { return offer_for(file) != nullptr; }

bool find_offer(const proto::FileKey& file, process::OfferedImage& out) {
  Offer* offer = offer_for(file);
  if (offer == nullptr || offer->refused) return false;
  const int fd = process::own_descriptor(offer->descriptor);
  if (offer->header == nullptr) {
    auto header = std::make_unique<proto::ImageHeader>();
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
        pread(fd, header.get(), sizeof *header, 0) != static_cast<ssize_t>(sizeof *header) ||
        !is_usable(*header, expected, file.size, static_cast<uint64_t>(status.st_size))) {
      offer->refused = true;
      process::close_descriptor(offer->descriptor);
      return false;
    }
    offer->header = std::move(header);
  }
  out = {fd, offer->header.get()};
  return true;
}

}  // namespace phybin::cache
