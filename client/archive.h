// Archives of images and profiles: one file that goes from machine to machine. docs/archive-format.md describes it.
//
//   head (24 bytes), public key (32), signature (64), manifest (JSON), parts one behind the other
//
// The signature is that of head and manifest, which holds the digests of the parts. There are no paths in it: nothing
// is ever unpacked to a place that an archive names.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "client/connection.h"
#include "client/key.h"

namespace phybin::client {

// The parts of an archive in their order in the file: profiles first, then images.
struct ArchivePart {
  bool is_image = false;
  size_t index = 0;     // in the manifest's list
  uint64_t offset = 0;  // in the file
  uint64_t bytes = 0;
  std::string sha256;  // hexadecimal
};

struct Archive {
  std::string signed_text;  // head and manifest
  bool has_signature = false;
  std::string signature;  // hexadecimal
  Json manifest = Json::object();
  std::vector<ArchivePart> parts;
  uint64_t file_bytes = 0;
};

using ByteProgress = std::function<void(uint64_t done, uint64_t total)>;

// Reads head and manifest, and compares all parts with their digests. An empty string, or what is wrong.
std::string read_archive(int file, Archive& archive, const ByteProgress& progress);

// Head, key, signature and manifest of a new archive; without a key they are zero.
std::string archive_front(const Json& manifest, const KeyPair* key);

// A copy of a part of the file, in sealed memory. None: errno.
Descriptor sealed_copy(int file, uint64_t offset, uint64_t bytes);
Descriptor sealed_text(const std::string& text);

}  // namespace phybin::client
