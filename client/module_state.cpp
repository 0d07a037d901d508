// See module_state.h.
#include "client/module_state.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "client/bounded.h"
#include "client/connection.h"
#include "client/digest.h"

namespace phybin::client {
namespace {

using namespace std::chrono_literals;

// A file whose server does not even answer for so long is not worth waiting for, nor are the others in its folder.
constexpr auto kPatience = 10s;
// When there are so many of those, no further file is looked at: images have other limits, and the next maintenance
// sees more.
constexpr size_t kMaxSilent = 12;

// Services see empty folders in place of homes, and what is not mounted looks empty too: an empty folder says nothing
// of what is missing in it.
bool shows_something(const std::string& folder) {
  DIR* stream = opendir(folder.c_str());
  if (stream == nullptr) return false;
  bool any = false;
  while (const dirent* entry = readdir(stream)) {
    const std::string name = entry->d_name;
    any |= name != "." && name != "..";
  }
  closedir(stream);
  return any;
}

// Calls alive() while it reads.
ModuleState look(const std::string& path, const std::string& digest, uint64_t since,
                 const std::function<void()>& alive) {
  // The path is a user's, and may lead to a device by now, which must not be opened: first it is only found.
  const Descriptor place(open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!place) {
    const bool missing = errno == ENOENT && shows_something(path.substr(0, path.rfind('/') + 1));
    return missing ? ModuleState::kGone : ModuleState::kUnknown;
  }
  struct stat status {};
  if (fstat(place.get(), &status) != 0) return ModuleState::kUnknown;
  if (!S_ISREG(status.st_mode)) return ModuleState::kChanged;
  // Every change of a file moves its ctime, which nobody can set.
  if (status.st_ctime > 0 && static_cast<uint64_t>(status.st_ctime) < since) return ModuleState::kSame;
  const Descriptor file(open(("/proc/self/fd/" + std::to_string(place.get())).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return ModuleState::kUnknown;
  Sha256 hash;
  std::vector<char> buffer(1 << 20);
  ssize_t got;
  while ((got = read(file.get(), buffer.data(), buffer.size())) > 0) {
    hash.add(buffer.data(), static_cast<size_t>(got));
    alive();
  }
  if (got < 0) return ModuleState::kUnknown;
  return hash.finish() == digest ? ModuleState::kSame : ModuleState::kChanged;
}

}  // namespace

ModuleState ModuleStates::state_of(const std::string& path, const std::string& digest, uint64_t since) {
  if (!path.starts_with("/")) return ModuleState::kUnknown;
  const auto [found, fresh] = known_.emplace(path + "\n" + digest, ModuleState::kUnknown);
  if (!fresh) return found->second;
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  if (silent_.size() >= kMaxSilent || silent_.contains(folder)) return ModuleState::kUnknown;
  const std::optional<std::string> answer = run_bounded(kPatience, [&](const Tell& tell) {
    return std::string(1, static_cast<char>(look(path, digest, since, [&] { tell({}); })));
  });
  if (answer && answer->size() == 1) {
    found->second = static_cast<ModuleState>((*answer)[0]);
  } else {
    silent_.insert(folder);
  }
  return found->second;
}

}  // namespace phybin::client
