// See archive_manifest.h.
#include "daemon/archive_manifest.h"

#include <fcntl.h>
#include <nettle/eddsa.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "daemon/descriptor.h"
#include "daemon/log.h"

namespace phybin::daemon {
namespace {

using Json = nlohmann::json;

constexpr char kMagic[] = "PhyBinAr";
constexpr uint32_t kFormat = 1;
// An image format's limits (two variants of 64 MiB of code, and tables), and what a user's profile may be.
constexpr uint64_t kMaxImageBytes = 1ull << 30, kMaxProfileBytes = 256 << 20;
constexpr size_t kMaxParts = 1 << 20;

struct ManifestError {
  std::string text;
};

const Json& part(const Json& object, const char* name) {
  if (!object.is_object()) throw ManifestError{"a part is not an object"};
  const auto found = object.find(name);
  if (found == object.end()) throw ManifestError{std::string("'") + name + "' is missing"};
  return *found;
}

uint64_t number(const Json& object, const char* name, uint64_t limit) {
  const Json& value = part(object, name);
  if (!value.is_number_unsigned() || value.get<uint64_t>() > limit) {
    throw ManifestError{std::string("'") + name + "' is not a number that is allowed"};
  }
  return value.get<uint64_t>();
}

Digest digest(const Json& object, const char* name) {
  const Json& value = part(object, name);
  const auto parsed = value.is_string() ? from_hex(value.get_ref<const std::string&>()) : std::nullopt;
  if (!parsed) throw ManifestError{std::string("'") + name + "' is not a digest"};
  return *parsed;
}

// A name is for people only; one that could be taken for a path somewhere else has no business here.
std::string module_name(const Json& object) {
  const Json& value = part(object, "module");
  std::string name = value.is_string() ? value.get<std::string>() : "";
  if (name.empty() || name.size() > 255 || name.find('/') != name.npos || name == "." || name == ".." ||
      printable(name) != name) {
    throw ManifestError{"'module' is not the name of a file"};
  }
  return name;
}

const Json& list(const Json& manifest, const char* name) {
  const Json& parts = part(manifest, name);
  if (!parts.is_array() || parts.size() > kMaxParts) throw ManifestError{std::string("'") + name + "' is not a list"};
  return parts;
}

void parse(const Json& json, ArchiveManifest& manifest) {
  if (number(json, "format", UINT32_MAX) != kFormat) throw ManifestError{"it has another format"};
  for (const Json& each : list(json, "profiles")) {
    ArchiveProfile profile;
    module_name(each);
    profile.module = digest(each, "module_sha256");
    profile.bytes = number(each, "bytes", kMaxProfileBytes);
    profile.sha256 = digest(each, "sha256");
    if (profile.bytes % sizeof(uint32_t) != 0) throw ManifestError{"a profile has a broken size"};
    manifest.profiles.push_back(profile);
  }
  for (const Json& each : list(json, "images")) {
    ArchiveImage image;
    image.module = module_name(each);
    image.key.module = digest(each, "module_sha256");
    image.key.build = digest(each, "translator_build");
    image.key.features = static_cast<uint32_t>(number(each, "host_features", UINT32_MAX));
    image.key.options = static_cast<uint32_t>(number(each, "code_options", UINT32_MAX));
    image.bytes = number(each, "bytes", kMaxImageBytes);
    image.sha256 = digest(each, "sha256");
    if (const Json& profile = part(each, "profile"); !profile.is_null()) {
      image.profile = static_cast<int64_t>(number(each, "profile", kMaxParts));
      if (static_cast<size_t>(image.profile) >= manifest.profiles.size() ||
          manifest.profiles[static_cast<size_t>(image.profile)].module != image.key.module) {
        throw ManifestError{"an image names a profile that is not its own"};
      }
    }
    manifest.images.push_back(std::move(image));
  }
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// "phybin-ed25519 HEX [COMMENT]"
bool parse_key(std::string_view text, PublicKey& key) {
  constexpr std::string_view kWord = "phybin-ed25519 ";
  if (text.substr(0, kWord.size()) != kWord || text.size() < kWord.size() + 64) return false;
  text.remove_prefix(kWord.size());
  if (text.size() > 64 && text[64] != ' ' && text[64] != '\n') return false;
  for (size_t i = 0; i != key.size(); ++i) {
    const int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    key[i] = static_cast<uint8_t>(high * 16 + low);
  }
  return true;
}

}  // namespace

std::string parse_manifest(std::string_view text, ArchiveManifest& manifest) {
  uint32_t format = 0, reserved = 0;
  uint64_t bytes = 0;
  if (text.size() < kArchiveHeadBytes || text.size() > kMaxManifestBytes + kArchiveHeadBytes ||
      memcmp(text.data(), kMagic, 8) != 0) {
    return "not an archive";
  }
  memcpy(&format, text.data() + 8, sizeof format);
  memcpy(&reserved, text.data() + 12, sizeof reserved);
  memcpy(&bytes, text.data() + 16, sizeof bytes);
  if (format != kFormat || reserved != 0) return "an archive of another format";
  text.remove_prefix(kArchiveHeadBytes);
  if (bytes != text.size()) return "the manifest has another size";
  try {
    parse(Json::parse(text), manifest);
    return {};
  } catch (const ManifestError& error) {
    return "the manifest is damaged: " + error.text;
  } catch (const Json::exception&) {
    return "the manifest is damaged";
  }
}

std::vector<PublicKey> installed_keys(const std::string& folder, std::vector<std::string>& problems) {
  std::vector<PublicKey> keys;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string path = entry.path();
    if (!path.ends_with(".pub")) continue;
    const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    struct stat status;
    char text[512];
    if (!file || fstat(file.get(), &status) != 0) {
      problems.push_back(path + ": " + strerror(errno));
      continue;
    }
    if (!S_ISREG(status.st_mode) || (status.st_uid != 0 && status.st_uid != geteuid()) ||
        (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
      problems.push_back(path + ": others than root can change it; not used");
      continue;
    }
    const ssize_t count = read(file.get(), text, sizeof text);
    PublicKey key;
    if (count > 0 && parse_key({text, static_cast<size_t>(count)}, key)) {
      keys.push_back(key);
    } else {
      problems.push_back(path + ": not a public key of `phybinctl key generate`");
    }
  }
  return keys;
}

bool signed_by(const PublicKey& key, std::string_view text, const Signature& signature) {
  return ed25519_sha512_verify(key.data(), text.size(), reinterpret_cast<const uint8_t*>(text.data()),
                               signature.data()) == 1;
}

}  // namespace phybin::daemon
