// The keys that archives are signed with (Ed25519). Text files of one line, so that they can be looked at, copied and
// put under configuration management:
//   secret:  phybin-ed25519-secret HEX
//   public:  phybin-ed25519 HEX [COMMENT]
// with 32 bytes each. The daemon reads public ones from /etc/phybin/keys/*.pub.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace phybin::client {

using KeyBytes = std::array<uint8_t, 32>;
using SignatureBytes = std::array<uint8_t, 64>;

struct KeyPair {
  KeyBytes secret, open;
};

// Reads a secret key. False, and `error`, if there is none or others may read it.
bool read_secret_key(const std::string& file, KeyPair& key, std::string& error);

SignatureBytes sign(const KeyPair& key, std::string_view text);

}  // namespace phybin::client
