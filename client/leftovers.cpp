// See leftovers.h.
#include "client/leftovers.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <set>

#include "client/connection.h"
#include "client/host_tree.h"
#include "client/live_files.h"

namespace phybin::client {
namespace {

constexpr std::string_view kPrefix = "phybin-jit-";
// Deeper ones are nobody's left-overs but made to exhaust descriptors.
constexpr unsigned kMaxDepth = 32;
// More than this is not looked at, and stays.
constexpr size_t kMaxFiles = 1 << 20;

Descriptor open_folder(int parent, const char* name) {
  return Descriptor(openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
}

// False: it cannot be read, errno says why.
bool list_names(int folder, std::vector<std::string>& names) {
  // An opening of its own: one that is shared would share the position in the list too.
  const int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* stream = own >= 0 ? fdopendir(own) : nullptr;
  if (stream == nullptr) {
    if (own >= 0) close(own);
    return false;
  }
  errno = 0;
  while (const dirent* entry = readdir(stream)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    if (names.size() > kMaxFiles) break;
  }
  const int error = errno;
  closedir(stream);
  errno = error;
  return error == 0;
}

// Which mount an opened folder belongs to; -1: not known. A bind mount has the device of what it shows, so devices
// alone do not tell.
int64_t mount_of(int folder) {
  const HostTree machine{std::string()};
  for (const std::string& line :
       split_lines(machine.read("/proc/self/fdinfo/" + std::to_string(folder)).value_or(""))) {
    if (!line.starts_with("mnt_id:")) continue;
    if (const auto id = parse_number(trim(std::string_view(line).substr(7)))) return static_cast<int64_t>(*id);
  }
  return -1;
}

// One folder of them, opened.
class Candidate {
 public:
  Candidate(Descriptor folder, const struct stat& status, const LeftoverAlive& alive)
      : folder_(std::move(folder)), owner_(status.st_uid), alive_(alive) {
    mount_ = mount_of(folder_.get());
    note(status);
  }

  // Looks at everything in it. False: it has to stay, `reason` says why.
  bool examine() { return examine(folder_.get(), 0); }
  // Removes everything in it. False: something could not be, `reason` says what.
  bool empty() { return empty(folder_.get(), 0); }
  // Nobody who takes a lock on the folder itself is at work in it, and nobody begins to.
  bool lock() const { return flock(folder_.get(), LOCK_EX | LOCK_NB) == 0; }

  uid_t owner() const { return owner_; }
  time_t changed() const { return changed_; }
  const std::set<FileId>& files() const { return files_; }

  std::string reason;
  uint64_t bytes = 0, removed = 0;

 private:
  bool stay(std::string why) {
    reason = std::move(why);
    return false;
  }

  void note(const struct stat& status) {
    files_.emplace(status.st_dev, status.st_ino);
    changed_ = std::max({changed_, status.st_mtime, status.st_ctime});
    if (!S_ISDIR(status.st_mode)) bytes += static_cast<uint64_t>(status.st_blocks) * 512;
  }

  bool own_folder(const Descriptor& child) {
    struct stat status {};
    return child && fstat(child.get(), &status) == 0 && status.st_uid == owner_ && mount_of(child.get()) == mount_;
  }

  bool examine(int folder, unsigned depth);
  bool empty(int folder, unsigned depth);

  Descriptor folder_;
  uid_t owner_;
  const LeftoverAlive& alive_;
  int64_t mount_ = -1;
  time_t changed_ = 0;
  std::set<FileId> files_;
};

bool Candidate::examine(int folder, unsigned depth) {
  std::vector<std::string> names;
  if (depth > kMaxDepth) return stay("folders are nested deeper than " + std::to_string(kMaxDepth));
  if (!list_names(folder, names)) return stay(strerror(errno));
  for (const std::string& name : names) {
    alive_();
    struct stat status {};
    if (fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return stay(name + ": " + strerror(errno));
    if (status.st_uid != owner_) return stay(name + " in it belongs to another user");
    note(status);
    if (files_.size() > kMaxFiles) return stay("it has more than " + std::to_string(kMaxFiles) + " files");
    if (!S_ISDIR(status.st_mode)) continue;
    const Descriptor child = open_folder(folder, name.c_str());
    if (!child) return stay(name + ": " + strerror(errno));
    if (!own_folder(child)) return stay(name + " in it is another file system or belongs to another user");
    if (!examine(child.get(), depth + 1)) return false;
  }
  return true;
}

bool Candidate::empty(int folder, unsigned depth) {
  std::vector<std::string> names;
  if (depth > kMaxDepth) return stay("folders are nested deeper than " + std::to_string(kMaxDepth));
  if (!list_names(folder, names)) return stay(strerror(errno));
  for (const std::string& name : names) {
    alive_();
    // What was examined may have been replaced meanwhile, so everything is looked at again.
    struct stat status {};
    if (fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) continue;
      return stay(name + ": " + strerror(errno));
    }
    if (status.st_uid != owner_) return stay(name + " in it belongs to another user");
    int flags = 0;
    if (S_ISDIR(status.st_mode)) {
      const Descriptor child = open_folder(folder, name.c_str());
      if (!child) return stay(name + ": " + strerror(errno));
      if (!own_folder(child)) return stay(name + " in it is another file system or belongs to another user");
      if (!empty(child.get(), depth + 1)) return false;
      flags = AT_REMOVEDIR;
    }
    if (unlinkat(folder, name.c_str(), flags) != 0 && errno != ENOENT) return stay(name + ": " + strerror(errno));
    ++removed;
  }
  return true;
}

// Why it stays; empty: it may be removed.
std::string reason_to_stay(const Candidate& candidate, const LeftoverRules& rules, const LiveFiles& live,
                           const std::string& path) {
  const time_t now = time(nullptr);
  if (candidate.changed() > now - static_cast<time_t>(rules.least_age)) return "something in it changed lately";
  if (const std::string user = live.user_of(candidate.files(), path); !user.empty()) return user + " uses it";
  // Root sees into every process, unless a container keeps it from that. Users' processes that hide from themselves
  // are agents for passwords and keys.
  if (const pid_t hidden = geteuid() == 0 ? live.hidden_of(candidate.owner()) : 0; hidden != 0) {
    return "process " + std::to_string(hidden) + " of its owner may use it and cannot be looked into";
  }
  if (!candidate.lock()) return "it is locked";
  return {};
}

void clean_one(int parent, const std::string& parent_path, const LeftoverRules& rules, const LiveFiles& live,
               const LeftoverAlive& alive, Leftover& result) {
  Descriptor folder = open_folder(parent, result.name.c_str());
  struct stat status {};
  if (!folder || fstat(folder.get(), &status) != 0) {
    result.reason = errno == ELOOP || errno == ENOTDIR ? "not a folder" : strerror(errno);
    return;
  }
  if (geteuid() != 0 && status.st_uid != geteuid()) {
    result.reason = "belongs to another user";
    return;
  }
  if (mount_of(folder.get()) != mount_of(parent)) {
    result.reason = "another file system";
    return;
  }
  Candidate candidate(std::move(folder), status, alive);
  if (!candidate.examine()) {
    result.reason = candidate.reason;
    return;
  }
  result.files = candidate.files().size() - 1;
  result.bytes = candidate.bytes;
  result.reason = reason_to_stay(candidate, rules, live, parent_path + "/" + result.name);
  if (!result.reason.empty()) return;
  if (rules.dry_run) {
    result.removed = true;
    return;
  }
  if (!candidate.empty()) {
    result.reason = candidate.reason;
  } else if (unlinkat(parent, result.name.c_str(), AT_REMOVEDIR) != 0) {
    result.reason = strerror(errno);
  }
  result.removed = result.reason.empty();
  result.failed = !result.removed;
}

}  // namespace

std::vector<Leftover> clean_leftovers(const LeftoverRules& rules, const LeftoverProgress& progress,
                                      const LeftoverAlive& alive, std::string& problem) {
  std::vector<Leftover> results;
  // The folder itself is the administrator's, and may be a link.
  const std::unique_ptr<char, decltype(&free)> real(realpath(rules.folder.c_str(), nullptr), &free);
  const Descriptor parent(real ? open(real.get(), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1);
  std::vector<std::string> names;
  if (!parent || !list_names(parent.get(), names)) {
    problem = rules.folder + ": " + strerror(errno);
    return results;
  }
  std::erase_if(names, [](const std::string& name) { return !name.starts_with(kPrefix); });
  if (names.empty()) return results;
  std::sort(names.begin(), names.end());
  // Folders that are made after this look are too young to be removed.
  const LiveFiles live(alive);
  for (const std::string& name : names) {
    progress(results.size(), names.size(), name);
    Leftover& result = results.emplace_back();
    result.name = name;
    clean_one(parent.get(), real.get(), rules, live, alive, result);
  }
  return results;
}

}  // namespace phybin::client
