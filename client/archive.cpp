// See archive.h.
#include "client/archive.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "client/digest.h"
#include "client/format.h"

namespace phybin::client {
namespace {

constexpr char kMagic[] = "PhyBinAr";
constexpr uint32_t kFormat = 1;
constexpr size_t kHeadBytes = 24, kFrontBytes = kHeadBytes + sizeof(KeyBytes) + sizeof(SignatureBytes);
constexpr uint64_t kMaxManifestBytes = 64 << 20;
constexpr size_t kBufferBytes = 1 << 20;

std::string make_head(uint64_t manifest_bytes) {
  std::string head(kHeadBytes, 0);
  memcpy(head.data(), kMagic, 8);
  memcpy(head.data() + 8, &kFormat, sizeof kFormat);
  memcpy(head.data() + 16, &manifest_bytes, sizeof manifest_bytes);
  return head;
}

bool read_at(int file, uint64_t offset, void* data, size_t bytes) {
  auto* to = static_cast<char*>(data);
  while (bytes != 0) {
    const ssize_t count = pread(file, to, bytes, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    to += count;
    offset += static_cast<uint64_t>(count);
    bytes -= static_cast<size_t>(count);
  }
  return true;
}

// Appends the parts that a list of the manifest names; false if it is not a list of parts.
bool add_parts(const Json& list, bool are_images, uint64_t& offset, uint64_t end, std::vector<ArchivePart>& parts) {
  if (!list.is_array()) return false;
  for (size_t index = 0; index != list.size(); ++index) {
    const Json& bytes = member(list[index], "bytes");
    if (!bytes.is_number_unsigned() || bytes.get<uint64_t>() > end - offset) return false;
    parts.push_back({are_images, index, offset, bytes.get<uint64_t>(), text(list[index], "sha256")});
    offset += parts.back().bytes;
  }
  return true;
}

Descriptor new_memory() { return Descriptor(memfd_create("phybin-part", MFD_CLOEXEC | MFD_ALLOW_SEALING)); }

bool write_all(int file, const char* data, size_t bytes) {
  while (bytes != 0) {
    const ssize_t count = write(file, data, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    data += count;
    bytes -= static_cast<size_t>(count);
  }
  return true;
}

Descriptor sealed(Descriptor file) {
  constexpr int kSeals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if (fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) return Descriptor();
  return file;
}

}  // namespace

std::string read_archive(int file, Archive& archive, const ByteProgress& progress) {
  struct stat status;
  if (fstat(file, &status) != 0) return strerror(errno);
  if (!S_ISREG(status.st_mode)) return "not a regular file";
  archive.file_bytes = static_cast<uint64_t>(status.st_size);
  std::string front(kFrontBytes, 0);
  if (archive.file_bytes < kFrontBytes || !read_at(file, 0, front.data(), front.size()) ||
      front.compare(0, 8, kMagic) != 0) {
    return "not an archive of phybinctl";
  }
  uint64_t manifest_bytes = 0;
  memcpy(&manifest_bytes, front.data() + 16, sizeof manifest_bytes);
  if (manifest_bytes > kMaxManifestBytes) return "damaged: the manifest is too long";
  if (front.compare(0, kHeadBytes, make_head(manifest_bytes)) != 0) return "an archive of another format";
  if (manifest_bytes > archive.file_bytes - kFrontBytes) return "damaged: it is cut off";
  archive.signed_text.resize(kHeadBytes + manifest_bytes);
  memcpy(archive.signed_text.data(), front.data(), kHeadBytes);
  if (!read_at(file, kFrontBytes, archive.signed_text.data() + kHeadBytes, manifest_bytes)) {
    return "damaged: it is cut off";
  }
  const auto* signature = reinterpret_cast<const uint8_t*>(front.data()) + kHeadBytes + sizeof(KeyBytes);
  archive.signature = to_hex(signature, sizeof(SignatureBytes));
  archive.has_signature = archive.signature.find_first_not_of('0') != std::string::npos;
  archive.manifest = Json::parse(archive.signed_text.begin() + kHeadBytes, archive.signed_text.end(), nullptr, false);
  uint64_t offset = kFrontBytes + manifest_bytes;
  if (!archive.manifest.is_object() ||
      !add_parts(member(archive.manifest, "profiles"), false, offset, archive.file_bytes, archive.parts) ||
      !add_parts(member(archive.manifest, "images"), true, offset, archive.file_bytes, archive.parts)) {
    return "damaged: the manifest does not describe the file";
  }
  if (offset != archive.file_bytes) return "damaged: there is more in it than the manifest says";
  std::vector<char> buffer(kBufferBytes);
  for (const ArchivePart& part : archive.parts) {
    Sha256 hash;
    for (uint64_t done = 0; done < part.bytes;) {
      const size_t some = std::min<uint64_t>(buffer.size(), part.bytes - done);
      if (!read_at(file, part.offset + done, buffer.data(), some)) return "damaged: it is cut off";
      hash.add(buffer.data(), some);
      done += some;
      progress(part.offset + done, archive.file_bytes);
    }
    if (hash.finish() != part.sha256) {
      return std::string("damaged: ") + (part.is_image ? "image " : "profile ") + std::to_string(part.index) +
             " has another digest than the manifest says";
    }
  }
  return {};
}

std::string archive_front(const Json& manifest, const KeyPair* key) {
  const std::string body = manifest.dump();
  const std::string head = make_head(body.size());
  std::string keys(sizeof(KeyBytes) + sizeof(SignatureBytes), 0);
  if (key != nullptr) {
    const SignatureBytes signature = sign(*key, head + body);
    std::copy(key->open.begin(), key->open.end(), keys.begin());
    std::copy(signature.begin(), signature.end(), keys.begin() + sizeof(KeyBytes));
  }
  return head + keys + body;
}

Descriptor sealed_copy(int file, uint64_t offset, uint64_t bytes) {
  Descriptor memory = new_memory();
  std::vector<char> buffer(kBufferBytes);
  while (memory && bytes != 0) {
    const size_t some = std::min<uint64_t>(buffer.size(), bytes);
    if (!read_at(file, offset, buffer.data(), some) || !write_all(memory.get(), buffer.data(), some)) {
      return Descriptor();
    }
    offset += some;
    bytes -= some;
  }
  return sealed(std::move(memory));
}

Descriptor sealed_text(const std::string& text) {
  Descriptor memory = new_memory();
  if (!memory || !write_all(memory.get(), text.data(), text.size())) return Descriptor();
  return sealed(std::move(memory));
}

}  // namespace phybin::client
