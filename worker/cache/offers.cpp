// See offers.h.
#include "worker/cache/offers.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <vector>

#include "proto/image_verify.h"
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

}  // namespace

bool is_usable(const proto::ImageHeader& header, const Identity& identity, uint64_t module_bytes,
               uint64_t file_bytes) {
  return proto::check_image_header(header, file_bytes) == nullptr &&
         memcmp(header.translator_build, kTranslatorBuild, sizeof kTranslatorBuild) == 0 &&
         header.host_features == identity.host_features && header.code_options == identity.code_options &&
         header.module_bytes == module_bytes;
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
