// SHA-256, and bytes as text.
#pragma once

#include <nettle/sha2.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace phybin::client {

std::string to_hex(const uint8_t* bytes, size_t count);

class Sha256 {
 public:
  Sha256() { sha256_init(&state_); }
  void add(const void* data, size_t bytes) { sha256_update(&state_, bytes, static_cast<const uint8_t*>(data)); }
  // In hexadecimal; the next add() begins anew.
  std::string finish() {
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_digest(&state_, sizeof digest, digest);
    return to_hex(digest, sizeof digest);
  }

 private:
  sha256_ctx state_;
};

}  // namespace phybin::client
