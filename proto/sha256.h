// SHA-256, which files and images are known by.
#pragma once

#include <nettle/sha2.h>

#include <cstddef>
#include <cstdint>

#include "proto/image_format.h"

namespace phybin::proto {

class Sha256 {
 public:
  Sha256() { sha256_init(&state_); }
  void add(const void* bytes, size_t size) { sha256_update(&state_, size, static_cast<const uint8_t*>(bytes)); }
  // Once, at the end.
  void finish(Digest& digest) { sha256_digest(&state_, sizeof digest, digest); }

 private:
  sha256_ctx state_;
};

}  // namespace phybin::proto
