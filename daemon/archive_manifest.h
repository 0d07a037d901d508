// What an archive of images and profiles says about itself (docs/archive-format.md), checked: the daemon believes
// only a manifest that is signed by a key the administrator has installed, and then only what digests confirm.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/store.h"

namespace phybin::daemon {

struct ArchiveImage {
  ImageKey key;  // for everyone
  std::string module;
  uint64_t bytes = 0;
  Digest sha256{};
  int64_t profile = -1;  // index of the profile that it was made from; -1: not in the archive
};

struct ArchiveProfile {
  Digest module{};
  uint64_t bytes = 0;  // of 32-bit file offsets, ascending
  Digest sha256{};
};

struct ArchiveManifest {
  std::vector<ArchiveImage> images;
  std::vector<ArchiveProfile> profiles;
};

inline constexpr size_t kMaxManifestBytes = 64 << 20;
inline constexpr size_t kArchiveHeadBytes = 24;  // in front of the manifest in what is signed

// `text`: the head and the manifest. An empty string, or what is wrong.
std::string parse_manifest(std::string_view text, ArchiveManifest& manifest);

using PublicKey = std::array<uint8_t, 32>;
using Signature = std::array<uint8_t, 64>;

// Public keys in *.pub of the folder, of files that belong to root or this user and that nobody else can write.
// `problems`: what was passed over, and why.
std::vector<PublicKey> installed_keys(const std::string& folder, std::vector<std::string>& problems);
bool signed_by(const PublicKey& key, std::string_view text, const Signature& signature);

}  // namespace phybin::daemon
