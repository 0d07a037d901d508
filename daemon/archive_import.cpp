// See archive_import.h.
#include "daemon/archive_import.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>

#include "daemon/daemon.h"
#include "daemon/files.h"
#include "daemon/image_check.h"
#include "daemon/log.h"
#include "proto/places.h"

namespace phybin::daemon {
namespace {

using namespace std::chrono_literals;
namespace asio = boost::asio;

constexpr auto kPatience = 60s;               // between two messages of an import
constexpr size_t kMaxOfUser = 2;              // imports at a time
constexpr size_t kMaxUserManifest = 1 << 20;  // of a user who is not privileged
// Of the images that come in and whose modules are at hand, so many are translated again and compared.
constexpr size_t kSpotChecks = 3;

// What the client has made: readable without waiting, and nobody can change it any more.
bool is_sealed(const Descriptor& file, uint64_t bytes) {
  constexpr int kSeals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;
  struct stat status;
  const int seals = fcntl(file.get(), F_GET_SEALS);
  return seals >= 0 && (seals & kSeals) == kSeals && fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) &&
         static_cast<uint64_t>(status.st_size) == bytes;
}

bool read_whole(int file, char* data, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t count = pread(file, data + done, bytes - done, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<size_t>(count);
  }
  return true;
}

// Copies and hashes. An empty string, or what is wrong.
std::string take_image(int from, int to, const ArchiveImage& image) {
  Sha256 hash;
  std::vector<char> buffer(256 << 10);
  for (uint64_t done = 0; done < image.bytes;) {
    const size_t some = std::min<uint64_t>(buffer.size(), image.bytes - done);
    const ssize_t count = pread(from, buffer.data(), some, static_cast<off_t>(done));
    if (count <= 0) return "an image cannot be read";
    hash.add(buffer.data(), static_cast<size_t>(count));
    if (const int error = write_all(to, buffer.data(), static_cast<size_t>(count)); error != 0)
      return strerror(error);
    done += static_cast<uint64_t>(count);
  }
  if (hash.finish() != image.sha256) return "an image has another digest than the manifest says";
  CheckedImage checked = check_image(to);
  checked.key.scope = image.key.scope;
  if (!checked.problem.empty()) return "an image is damaged: " + checked.problem;
  if (checked.key != image.key) return "an image is another one than the manifest says";
  return {};
}

// An empty string, or what is wrong.
std::string take_profile(int from, const ArchiveProfile& profile, std::vector<uint32_t>& offsets) {
  offsets.resize(profile.bytes / sizeof(uint32_t));
  if (!read_whole(from, reinterpret_cast<char*>(offsets.data()), profile.bytes)) return "a profile cannot be read";
  Sha256 hash;
  hash.add(offsets.data(), profile.bytes);
  if (hash.finish() != profile.sha256) return "a profile has another digest than the manifest says";
  if (std::adjacent_find(offsets.begin(), offsets.end(), std::greater_equal<>()) != offsets.end()) {
    return "a profile is not in order";
  }
  return {};
}

std::string new_token() {
  Digest random;
  if (getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) return {};
  return to_hex(random);
}

std::string name_of(const PublicKey& key) {
  Digest digest;
  std::copy(key.begin(), key.end(), digest.begin());
  return to_hex(digest).substr(0, 16);
}

}  // namespace

struct ArchiveImports::Import {
  std::string token;
  uid_t user = 0;
  ArchiveManifest manifest;
  std::string signer;
  std::vector<bool> wanted_images, wanted_profiles;  // and have not come yet
  std::vector<std::string> paths;                    // of the images that have come; "" for others
  std::vector<std::vector<uint32_t>> profiles;
  size_t missing = 0, busy = 0;
  uint64_t added_entries = 0;
  std::vector<ImageKey> published;
  size_t images = 0, profile_count = 0, checks = 0;
  Clock::time_point last = Clock::now();

  ~Import() {
    for (const std::string& path : paths) {
      if (!path.empty()) unlink(path.c_str());
    }
  }
};

ArchiveImports::~ArchiveImports() = default;

void ArchiveImports::begin(ControlRequest& request, const Reply& reply) {
  if (request.files.size() != 1) throw ControlError{"the manifest is missing"};
  const Descriptor file = std::move(request.files[0]);
  request.files.clear();
  const int64_t size = integer_member(request.body, "manifest_bytes", -1);
  const bool images = flag_member(request.body, "images", false);
  const bool may_images = request.peer.uid == 0 || (!daemon_.options.system && request.peer.uid == geteuid());
  if (images && !may_images)
    throw ControlError{"images can be imported by root only; --profiles-only leaves them out"};
  const auto of_user = [&](const auto& each) { return each.second->user == request.peer.uid; };
  if (static_cast<size_t>(std::count_if(imports_.begin(), imports_.end(), of_user)) >= kMaxOfUser) {
    throw ControlError{"other imports of this user are under way"};
  }
  const size_t limit = may_images ? kMaxManifestBytes : kMaxUserManifest;
  if (size <= 0 || static_cast<uint64_t>(size) > limit + kArchiveHeadBytes)
    throw ControlError{"the manifest is too long"};
  if (!is_sealed(file, static_cast<uint64_t>(size))) throw ControlError{"the manifest is not in sealed memory"};
  std::string text(static_cast<size_t>(size), 0);
  if (!read_whole(file.get(), text.data(), text.size())) throw ControlError{"the manifest cannot be read"};

  auto import = std::make_shared<Import>();
  if (const std::string problem = parse_manifest(text, import->manifest); !problem.empty())
    throw ControlError{problem};
  import->user = request.peer.uid;
  if (images) {
    const std::string hex = string_member(request.body, "signature", "");
    const auto front = from_hex(hex.substr(0, 64));
    const auto back = hex.size() == 128 ? from_hex(hex.substr(64)) : std::nullopt;
    if (!front || !back) throw ControlError{"the archive is not signed"};
    Signature signature;
    std::copy(back->begin(), back->end(), std::copy(front->begin(), front->end(), signature.begin()));
    std::vector<std::string> problems;
    const std::vector<PublicKey> keys = installed_keys(daemon_.options.keys, problems);
    for (const std::string& problem : problems) log(LogLevel::kWarning, problem);
    const auto signer =
        std::find_if(keys.begin(), keys.end(), [&](const PublicKey& key) { return signed_by(key, text, signature); });
    if (signer == keys.end()) throw ControlError{"the archive is not signed by a key in " + daemon_.options.keys};
    import->signer = name_of(*signer);
  }
  const ArchiveManifest& manifest = import->manifest;
  Json wanted_images = Json::array(), wanted_profiles = Json::array();
  import->wanted_images.resize(manifest.images.size());
  import->paths.resize(manifest.images.size());
  uint64_t foreign = 0, present = 0;
  for (size_t i = 0; images && i != manifest.images.size(); ++i) {
    const ImageKey& key = manifest.images[i].key;
    if (daemon_.jobs.build() && key.build != *daemon_.jobs.build()) {
      ++foreign;
    } else if (daemon_.images.find(key) != nullptr) {
      ++present;
    } else {
      import->wanted_images[i] = true;
      wanted_images.push_back(i);
    }
  }
  import->wanted_profiles.assign(manifest.profiles.size(), true);
  import->profiles.resize(manifest.profiles.size());
  for (size_t i = 0; i != manifest.profiles.size(); ++i) wanted_profiles.push_back(i);
  import->missing = wanted_images.size() + wanted_profiles.size();
  import->token = new_token();
  if (import->token.empty()) throw ControlError{"no random numbers"};
  imports_[import->token] = import;
  for (size_t at = 0; at < wanted_images.size(); at += 4096) {
    Json some = Json::array();
    for (size_t i = at; i < std::min(at + 4096, wanted_images.size()); ++i) some.push_back(wanted_images[i]);
    reply.part({{"wanted_images", std::move(some)}});
  }
  if (wanted_images.empty()) reply.part({{"wanted_images", Json::array()}});
  reply.list("wanted_profiles", std::move(wanted_profiles),
             {{"token", import->token}, {"foreign", foreign}, {"present", present}});
}

std::shared_ptr<ArchiveImports::Import> ArchiveImports::find(const ControlRequest& request) {
  const auto found = imports_.find(string_member(request.body, "token", ""));
  if (found == imports_.end() || found->second->user != request.peer.uid) {
    throw ControlError{"there is no such import, or it was given up"};
  }
  found->second->last = Clock::now();
  return found->second;
}

void ArchiveImports::part(ControlRequest& request, const Reply& reply) {
  const std::shared_ptr<Import> import = find(request);
  if (request.files.size() != 1) throw ControlError{"the part is missing"};
  auto file = std::make_shared<Descriptor>(std::move(request.files[0]));
  request.files.clear();
  const bool is_image = request.body.contains("image");
  const int64_t number = integer_member(request.body, is_image ? "image" : "profile", -1);
  std::vector<bool>& wanted = is_image ? import->wanted_images : import->wanted_profiles;
  const auto index = static_cast<size_t>(number);
  if (number < 0 || index >= wanted.size() || !wanted[index]) throw ControlError{"this part is not wanted"};
  const uint64_t bytes = is_image ? import->manifest.images[index].bytes : import->manifest.profiles[index].bytes;
  if (!is_sealed(*file, bytes)) throw ControlError{"a part has another size than the manifest says"};
  auto output = std::make_shared<Descriptor>();
  if (is_image) {
    *output = daemon_.images.new_file(import->paths[index]);
    if (!*output) throw ControlError{strerror(errno)};
  }
  wanted[index] = false;
  ++import->busy;
  asio::post(daemon_.pool, [this, import, index, is_image, file, output, reply] {
    const std::string problem =
        is_image ? take_image(file->get(), output->get(), import->manifest.images[index])
                 : take_profile(file->get(), import->manifest.profiles[index], import->profiles[index]);
    asio::post(daemon_.io, [this, import, problem, reply] {
      --import->busy;
      import->last = Clock::now();
      if (!problem.empty()) {
        imports_.erase(import->token);
        return reply.error(problem);
      }
      --import->missing;
      reply.done();
    });
  });
}

void ArchiveImports::commit(ControlRequest& request, const Reply& reply) {
  const std::shared_ptr<Import> import = find(request);
  if (import->missing != 0) throw ControlError{"parts of the archive are missing"};
  imports_.erase(import->token);
  for (size_t i = 0; i != import->profiles.size(); ++i) {
    const auto module = daemon_.modules.record(import->manifest.profiles[i].module);
    import->added_entries += daemon_.modules.add_entries(*module, import->user, import->profiles[i]);
    ++import->profile_count;
  }
  publish(import, reply);
}

// The images one after the other; then the answer.
void ArchiveImports::publish(const std::shared_ptr<Import>& import, const Reply& reply) {
  const auto next =
      std::find_if(import->paths.begin(), import->paths.end(), [](const std::string& path) { return !path.empty(); });
  if (next == import->paths.end()) return finish(import, reply);
  const auto index = static_cast<size_t>(next - import->paths.begin());
  const ArchiveImage& image = import->manifest.images[index];
  const std::string path = std::exchange(*next, "");
  const uint64_t profile = image.profile < 0 ? 0 : import->profiles[static_cast<size_t>(image.profile)].size();
  const auto published = [this, import, index, reply](const std::string& problem) {
    const ArchiveImage& each = import->manifest.images[index];
    if (problem.empty()) {
      ++import->images;
      import->published.push_back(each.key);
      check(import, each);
    } else {
      log(LogLevel::kWarning, "an image of " + each.module + " is not imported: " + problem);
    }
    publish(import, reply);
  };
  daemon_.images.publish(image.key, path, profile, published, ImageOrigin::kImported);
}

// Translates an image again. If the result is another one, nothing that came with it can be trusted.
void ArchiveImports::check(const std::shared_ptr<Import>& import, const ArchiveImage& image) {
  if (image.profile < 0 || import->checks >= kSpotChecks) return;
  SpotCheck check{image.key,
                  image.sha256,
                  daemon_.modules.record(image.key.module),
                  import->profiles[static_cast<size_t>(image.profile)],
                  import->user,
                  {}};
  check.done = [this, import, key = image.key, name = image.module](SpotResult result) {
    switch (result) {
      case SpotResult::kSame:
        daemon_.images.set_origin(key, ImageOrigin::kImportedAndChecked);
        break;
      case SpotResult::kUnknown:
        log(LogLevel::kWarning, "the imported image of " + name + " could not be made again to compare it");
        break;
      case SpotResult::kDifferent:
        log(LogLevel::kError, "the imported image of " + name + " is not what the translator makes: all " +
                                  std::to_string(import->published.size()) +
                                  " images of that archive, signed by key " + import->signer + ", are removed");
        for (const ImageKey& published : import->published) daemon_.images.remove(published);
        break;
    }
  };
  if (daemon_.spot_checks.check(std::move(check))) ++import->checks;
}

void ArchiveImports::finish(const std::shared_ptr<Import>& import, const Reply& reply) {
  daemon_.store.commit();
  if (import->images != 0) {
    log(LogLevel::kInfo, std::to_string(import->images) + " images signed by key " + import->signer +
                             " are imported, " + std::to_string(import->checks) + " of them are translated again");
  }
  reply.done({{"images", import->images},
              {"profiles", import->profile_count},
              {"new_entry_points", import->added_entries},
              {"spot_checks", import->checks}});
}

void ArchiveImports::tick() {
  std::erase_if(imports_, [](const auto& each) {
    return each.second->busy == 0 && Clock::now() - each.second->last > kPatience;
  });
}

}  // namespace phybin::daemon
