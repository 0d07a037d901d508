// See images.h.
#include "daemon/images.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>

#include "daemon/fault_point.h"
#include "daemon/files.h"
#include "daemon/image_check.h"
#include "daemon/log.h"
#include "daemon/pages.h"

namespace phybin::daemon {
namespace {

namespace asio = boost::asio;

constexpr char kEveryoneName[] = "all";

// fsverity_enable_arg (linux/fsverity.h, Linux 5.4).
struct VerityArguments {
  uint32_t version, hash_algorithm, block_size, salt_size;
  uint64_t salt;
  uint32_t signature_size, reserved;
  uint64_t signature, more[11];
};
constexpr unsigned long kEnableVerity = _IOW('f', 133, VerityArguments);

// From then on the kernel notices when the disk changes a page, also one that is mapped. Where there is no fs-verity
// nothing happens.
void enable_verity(int file) {
  VerityArguments arguments{};
  arguments.version = 1;
  arguments.hash_algorithm = 1;  // SHA-256
  arguments.block_size = 4096;
  ioctl(file, kEnableVerity, &arguments);
}

Digest identity_of(const ImageKey& key) {
  Sha256 hash;
  hash.add(key.module.data(), key.module.size());
  hash.add(key.build.data(), key.build.size());
  hash.add(&key.features, sizeof key.features);
  hash.add(&key.options, sizeof key.options);
  return hash.finish();
}

// What a file's name says: NAME.SCOPE.GENERATION.img.
struct FileName {
  std::string identity;
  Scope scope = kEveryone;
  int64_t generation = 0;
};

std::optional<int64_t> parse(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::optional<FileName> parse_name(std::string_view path) {
  path.remove_prefix(path.rfind('/') + 1);
  std::string_view parts[4];
  for (size_t i = 0; i != 4; ++i) {
    const size_t dot = path.find('.');
    if ((dot == path.npos) != (i == 3)) return std::nullopt;
    parts[i] = path.substr(0, dot);
    path.remove_prefix(i == 3 ? path.size() : dot + 1);
  }
  FileName name{std::string(parts[0]), kEveryone, 0};
  const auto scope = parts[1] == kEveryoneName ? std::optional<int64_t>(kEveryone) : parse(parts[1]);
  const auto generation = parse(parts[2]);
  if (!scope || !generation || parts[3] != "img") return std::nullopt;
  name.scope = *scope;
  name.generation = *generation;
  return name;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  DIR* open_folder = opendir(folder.c_str());
  if (open_folder == nullptr) return names;
  while (const dirent* entry = readdir(open_folder)) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  closedir(open_folder);
  return names;
}

// Both are done by the thread. Syncs and renames; an empty string, or what is wrong.
std::string put_in_place(const std::string& from, const std::string& to) {
  const Descriptor file(open(from.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file || fchmod(file.get(), 0400) != 0 || fsync(file.get()) != 0)
    return std::string("sync: ") + strerror(errno);
  enable_verity(file.get());
  fault_point("image-synced");
  const std::string folder = to.substr(0, to.rfind('/'));
  if (mkdir(folder.c_str(), 0700) == 0) {
    sync_directory(folder.substr(0, folder.rfind('/')));
  } else if (errno != EEXIST) {
    return folder + ": " + strerror(errno);
  }
  if (rename(from.c_str(), to.c_str()) != 0) return std::string("rename: ") + strerror(errno);
  fault_point("image-renamed");
  if (const int error = sync_directory(folder); error != 0) return folder + ": " + strerror(error);
  fault_point("directory-synced");
  return {};
}

}  // namespace

Images::Images(asio::io_context& io, asio::thread_pool& pool, Store& store, const Config& config)
    : io_(io), pool_(pool), store_(store), config_(config) {}

std::string Images::path_of(const ImageRow& row) const {
  const std::string name = to_hex(identity_of(row.key));
  return cache_dir_ + "/images/" + name.substr(0, 2) + "/" + name + "." +
         (row.key.scope == kEveryone ? kEveryoneName : std::to_string(row.key.scope)) + "." +
         std::to_string(row.generation) + ".img";
}

std::string Images::open(const std::string& cache_dir) {
  cache_dir_ = cache_dir;
  for (const char* folder : {"/images", "/new"}) {
    if (std::string problem = make_directories(cache_dir + folder, 0700); !problem.empty()) return problem;
  }
  // Images that were being written when the daemon ended.
  for (const std::string& name : names_in(cache_dir + "/new")) unlink((cache_dir + "/new/" + name).c_str());
  struct statvfs system;
  no_exec_ = statvfs(cache_dir.c_str(), &system) == 0 && (system.f_flag & ST_NOEXEC) != 0;
  if (no_exec_) {
    log(LogLevel::kWarning, cache_dir + " is mounted noexec: images are copied into memory for workers");
  }
  for (ImageRow& row : store_.images()) {
    struct stat status;
    if (stat(path_of(row).c_str(), &status) != 0 || static_cast<uint64_t>(status.st_size) != row.file_bytes) {
      log(LogLevel::kInfo, "an image is in the index, but not on the disk: dropped");
      store_.remove_image(row.id);
      continue;
    }
    total_bytes_ += row.file_bytes;
    const ImageKey key = row.key;
    images_[key].row = std::move(row);
  }
  scan();
  store_.commit();
  evict();
  std::vector<std::pair<int64_t, ImageKey>> by_use;
  for (const auto& [key, image] : images_) {
    if (!image.verified) by_use.emplace_back(image.row.last_used, key);
  }
  std::sort(by_use.begin(), by_use.end());
  for (const auto& [last_used, key] : by_use) to_verify_.push_back(key);
  verify_next();
  return {};
}

// Files without a row: left by a crash between rename and row, or by an index that had to be begun anew.
void Images::scan() {
  std::unordered_set<std::string> known;
  for (const auto& [key, image] : images_) known.insert(path_of(image.row));
  const std::string root = cache_dir_ + "/images/";
  for (const std::string& folder : names_in(root)) {
    for (const std::string& name : names_in(root + folder)) {
      const std::string path = root + folder + "/" + name;
      if (known.count(path) != 0) continue;
      if (store_.fresh()) {
        adopt(path);
      } else if (unlink(path.c_str()) == 0) {
        log(LogLevel::kInfo, "an image that was not entered into the index is removed");
      }
    }
  }
}

// Enters a file by what its header and its name say.
void Images::adopt(const std::string& path) {
  const auto name = parse_name(path);
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  CheckedImage checked;
  if (name && file) checked = check_image(file.get());
  if (name) checked.key.scope = name->scope;
  const bool good = name && file && checked.problem.empty() && to_hex(identity_of(checked.key)) == name->identity;
  const auto older = good ? images_.find(checked.key) : images_.end();
  if (!good || (older != images_.end() && older->second.row.generation > name->generation)) {
    unlink(path.c_str());
    return;
  }
  if (older != images_.end()) forget(older, true);
  Image image;
  const int64_t now = time(nullptr);
  image.row = {0,   checked.key, name->generation,        checked.file_bytes, 0, checked.entries, now,
               now, 0,           ImageOrigin::kFoundAgain};
  image.row.id = store_.add_image(image.row);
  image.verified = checked.stat;
  total_bytes_ += checked.file_bytes;
  images_[checked.key] = std::move(image);
  log(LogLevel::kInfo, "an image is found again");
}

void Images::refill_index() {
  for (auto& [key, image] : images_) image.row.id = store_.add_image(image.row);
}

const Image* Images::find(const ImageKey& key) const {
  const auto found = images_.find(key);
  return found == images_.end() ? nullptr : &found->second;
}

void Images::forget(std::map<ImageKey, Image>::iterator image, bool remove_file) {
  const ImageRow& row = image->second.row;
  if (remove_file) unlink(path_of(row).c_str());
  fault_point("evict-removed");
  store_.remove_image(row.id);
  touched_.erase(row.id);
  total_bytes_ -= row.file_bytes;
  images_.erase(image);
}

void Images::set_origin(const ImageKey& key, ImageOrigin origin) {
  const auto found = images_.find(key);
  if (found == images_.end()) return;
  found->second.row.origin = origin;
  store_.set_image_origin(found->second.row);
}

void Images::remove(const ImageKey& key) {
  if (const auto found = images_.find(key); found != images_.end()) forget(found, true);
}

void Images::evict() {
  std::vector<std::pair<int64_t, ImageKey>> by_use;
  std::map<Scope, uint64_t> of_user;
  for (const auto& [key, image] : images_) {
    by_use.emplace_back(image.row.last_used, key);
    if (key.scope != kEveryone) of_user[key.scope] += image.row.file_bytes;
  }
  std::sort(by_use.begin(), by_use.end());
  for (const auto& [last_used, key] : by_use) {
    const bool too_much = total_bytes_ > config_.cache_size;
    const bool too_much_of_user = key.scope != kEveryone && of_user[key.scope] > config_.user_cache_size;
    if (!too_much && !too_much_of_user) continue;
    const auto image = images_.find(key);
    log(LogLevel::kInfo, "evicting an image of " + std::to_string(image->second.row.file_bytes) + " bytes");
    if (key.scope != kEveryone) of_user[key.scope] -= image->second.row.file_bytes;
    forget(image, true);
  }
}

Descriptor Images::to_send(Image& image, Descriptor file) {
  if (!no_exec_) return file;
  if (!image.copy) {
    auto memory = make_memory_file("phybin-image");
    off_t offset = 0;
    while (memory && static_cast<uint64_t>(offset) < image.row.file_bytes) {
      if (sendfile(memory->get(), file.get(), &offset, image.row.file_bytes) <= 0) memory.reset();
    }
    if (!memory || fcntl(memory->get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0) {
      return {};
    }
    image.copy = std::move(*memory);
  }
  return Descriptor(fcntl(image.copy.get(), F_DUPFD_CLOEXEC, 0));
}

Descriptor Images::hand_out(const ImageKey& key) {
  const auto found = images_.find(key);
  if (found == images_.end()) return {};
  Image& image = found->second;
  Descriptor file(::open(path_of(image.row).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  proto::FileKey stat;
  if (!file || !stat_file(file.get(), stat)) {
    log(LogLevel::kWarning, path_of(image.row) + ": " + strerror(errno) + "; the image is dropped");
    forget(found, true);
    return {};
  }
  if (!image.verified || !(*image.verified == stat)) {
    image.copy.reset();
    if (!image.verifying) verify(key, [](const std::string&) {});
    return {};
  }
  image.row.last_used = time(nullptr);
  ++image.row.uses;
  touched_.insert(image.row.id);
  return to_send(image, std::move(file));
}

void Images::tick() {
  if (touched_.empty()) return;
  for (const auto& [key, image] : images_) {
    if (touched_.count(image.row.id) != 0) store_.touch_image(image.row);
  }
  touched_.clear();
}

void Images::verify_next() {
  while (!to_verify_.empty()) {
    const ImageKey key = to_verify_.back();
    to_verify_.pop_back();
    const Image* image = find(key);
    if (image == nullptr || image->verified || image->verifying) continue;
    verify(key, [this](const std::string&) { verify_next(); });
    return;
  }
}

void Images::verify(const ImageKey& key, std::function<void(const std::string&)> done) {
  const auto found = images_.find(key);
  if (found == images_.end()) return done("there is no such image");
  found->second.verifying = true;
  ++under_way_;
  const int64_t generation = found->second.row.generation;
  asio::post(pool_, [this, key, generation, path = path_of(found->second.row), done = std::move(done)]() mutable {
    CheckedImage checked;
    {
      const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
      if (file) {
        checked = check_image(file.get());
      } else {
        checked.problem = strerror(errno);
      }
    }
    checked.key.scope = key.scope;
    if (checked.problem.empty() && checked.key != key) checked.problem = "it is another image";
    asio::post(io_, [this, key, generation, checked = std::move(checked), done = std::move(done)] {
      --under_way_;
      verified(key, generation, checked.problem, checked.stat);
      done(checked.problem);
    });
  });
}

void Images::verified(const ImageKey& key, int64_t generation, const std::string& problem,
                      const proto::FileKey& stat) {
  const auto found = images_.find(key);
  if (found == images_.end() || found->second.row.generation != generation) return;
  found->second.verifying = false;
  if (problem.empty()) {
    found->second.verified = stat;
    if (available_) available_(key);
    return;
  }
  log(LogLevel::kWarning, path_of(found->second.row) + " is damaged and removed: " + problem);
  forget(found, true);
}

Descriptor Images::new_file(std::string& path) {
  path = cache_dir_ + "/new/" + std::to_string(++next_file_) + ".img";
  return Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
}

uint64_t Images::room() const {
  struct statvfs system {};
  return statvfs(cache_dir_.c_str(), &system) == 0 ? uint64_t{system.f_bavail} * system.f_frsize : 0;
}

void Images::publish(const ImageKey& key, const std::string& path, uint64_t profile,
                     std::function<void(const std::string&)> done, ImageOrigin origin) {
  ImageRow row;
  row.key = key;
  row.origin = origin;
  row.profile = profile;
  row.created = row.last_used = time(nullptr);
  const auto older = images_.find(key);
  if (older != images_.end()) row.generation = older->second.row.generation + 1;
  ++under_way_;
  asio::post(pool_, [this, row, path, to = path_of(row), done = std::move(done)]() mutable {
    fault_point("image-written");
    CheckedImage checked;
    {
      const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
      if (file) {
        checked = check_image(file.get());
      } else {
        checked.problem = strerror(errno);
      }
    }
    checked.key.scope = row.key.scope;
    if (checked.problem.empty() && checked.key != row.key) checked.problem = "it is not the image that was asked for";
    if (checked.problem.empty()) checked.problem = put_in_place(path, to);
    if (checked.problem.empty()) {
      // Renaming and fs-verity have changed its times.
      const Descriptor file(::open(to.c_str(), O_RDONLY | O_CLOEXEC));
      if (!file || !stat_file(file.get(), checked.stat)) checked.problem = strerror(errno);
    }
    if (!checked.problem.empty()) unlink(path.c_str());
    asio::post(io_, [this, row, to, checked = std::move(checked), done = std::move(done)]() mutable {
      --under_way_;
      if (!checked.problem.empty()) return done(checked.problem);
      row.file_bytes = checked.file_bytes;
      row.entries = checked.entries;
      const auto before = images_.find(row.key);
      const std::string old_path = before == images_.end() ? "" : path_of(before->second.row);
      if (before != images_.end()) {
        row.uses = before->second.row.uses;
        touched_.erase(before->second.row.id);
        total_bytes_ -= before->second.row.file_bytes;
        images_.erase(before);
      }
      row.id = store_.add_image(row);
      fault_point("row-written");
      if (!old_path.empty() && old_path != to) unlink(old_path.c_str());
      fault_point("old-removed");
      Image& image = images_[row.key];
      image.row = row;
      image.verified = checked.stat;
      total_bytes_ += row.file_bytes;
      evict();
      if (available_) available_(row.key);
      done({});
    });
  });
}

}  // namespace phybin::daemon
