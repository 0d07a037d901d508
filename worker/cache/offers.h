// Images that the daemon has offered: for which file, and the descriptor of the image. There are few, in the order in
// which they came. The lock of the cache (cache_lock.h) is held by all callers.
#pragma once

#include "proto/messages.h"
#include "worker/process/modules.h"

namespace phybin::cache {

// What an image must have been made for.
struct Identity {
  uint32_t host_features;  // as in ImageHeader
  uint32_t code_options;
};
void expect_identity(const Identity& identity);

// Takes the descriptor over. An offer that does not fit among those that are kept open is dropped.
void add_offer(const proto::ImageOffer& offer, int fd);
bool is_offered(const proto::FileKey& file);
// The image offered for the file, its header read and checked; false if there is none that can be used.
bool find_offer(const proto::FileKey& file, process::OfferedImage& out);

// Whether an image with this header may be mapped: identity, and that everything in it lies where the format says.
// `module_bytes` and `file_bytes` are the sizes of the module and of the image's file.
bool is_usable(const proto::ImageHeader& header, const Identity& identity, uint64_t module_bytes,
               uint64_t file_bytes);

}  // namespace phybin::cache
