// SHA-256, by which modules, images and translator builds are known.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "proto/image_format.h"

namespace phybin::daemon {

using Digest = std::array<uint8_t, 32>;

inline Digest to_digest(const proto::Digest& raw) {
  Digest digest;
  memcpy(digest.data(), raw, digest.size());
  return digest;
}

std::string to_hex(const Digest& digest);
std::optional<Digest> from_hex(std::string_view text);  // 64 digits, nothing else

class Sha256 {
 public:
  Sha256();
  void add(const void* data, size_t bytes);
  Digest finish();

 private:
  alignas(8) unsigned char state_[128];
};

// Digests are random enough to be their own hash.
struct DigestHash {
  size_t operator()(const Digest& digest) const {
    size_t value;
    memcpy(&value, digest.data(), sizeof value);
    return value;
  }
};

}  // namespace phybin::daemon
