// See digest.h.
#include "daemon/digest.h"

#include <nettle/sha2.h>

#include <new>

namespace phybin::daemon {
namespace {

sha256_ctx* context(unsigned char* state) { return std::launder(reinterpret_cast<sha256_ctx*>(state)); }

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string to_hex(const Digest& digest) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (uint8_t byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::optional<Digest> from_hex(std::string_view text) {
  Digest digest;
  if (text.size() != 2 * digest.size()) return std::nullopt;
  for (size_t i = 0; i != digest.size(); ++i) {
    const int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    digest[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return digest;
}

Sha256::Sha256() {
  static_assert(sizeof(sha256_ctx) <= sizeof state_ && alignof(sha256_ctx) <= 8);
  sha256_init(new (state_) sha256_ctx);
}

void Sha256::add(const void* data, size_t bytes) {
  sha256_update(context(state_), bytes, static_cast<const uint8_t*>(data));
}

Digest Sha256::finish() {
  Digest digest;
  sha256_digest(context(state_), digest.size(), digest.data());
  return digest;
}

}  // namespace phybin::daemon
