// See replicas.h.
#include "daemon/replicas.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <numeric>

#include "daemon/files.h"
#include "daemon/image_check.h"
#include "daemon/log.h"

namespace phybin::daemon {
namespace {

namespace asio = boost::asio;

// Binds the calling thread to the CPUs. A node of a simulated machine has CPUs that are not there: then it runs where
// it can, and the copy differs from the others only by its name.
void bind_to(const std::vector<unsigned>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (unsigned cpu : cpus) {
    if (cpu < CPU_SETSIZE) CPU_SET(cpu, &set);
  }
  sched_setaffinity(0, sizeof set, &set);
}

// Copies by reading and writing: a clone, or what copy_file_range() makes, could share the original's pages.
std::string copy_file(const std::string& from, const std::string& to) {
  const Descriptor source(open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!source) return strerror(errno);
  const Descriptor target(open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400));
  if (!target) return strerror(errno);
  std::vector<char> buffer(256 << 10);
  for (;;) {
    const ssize_t count = read(source.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return strerror(errno);
    if (count == 0) return {};
    if (const int error = write_all(target.get(), buffer.data(), static_cast<size_t>(count)); error != 0) {
      return strerror(error);
    }
  }
}

}  // namespace

Replicas::Replicas(asio::io_context& io, const Topology& topology, const Config& config)
    : io_(io), topology_(topology), config_(config) {}

Replicas::~Replicas() { pool_.join(); }

std::string Replicas::open(const std::string& cache_dir) {
  const std::string folder = cache_dir + "/copies";
  if (std::string problem = make_directories(folder, 0700); !problem.empty()) return problem;
  DIR* entries = opendir(folder.c_str());
  if (entries == nullptr) return folder + ": " + strerror(errno);
  while (const dirent* entry = readdir(entries)) {
    if (entry->d_name[0] != '.') unlinkat(dirfd(entries), entry->d_name, 0);
  }
  closedir(entries);
  if (topology_.nodes() > 1) folder_ = folder;
  return {};
}

std::string Replicas::path_of(const Key& key) const {
  return folder_ + "/" + std::to_string(key.image) + "." + std::to_string(key.generation) + ".node" +
         std::to_string(topology_.ids[key.node]) + ".img";
}

void Replicas::remove(std::map<Key, Copy>::iterator copy) {
  unlink(path_of(copy->first).c_str());
  total_bytes_ -= copy->second.bytes;
  copies_.erase(copy);
}

void Replicas::update(const std::map<int64_t, Use>& uses, const Images& images, const CostModel& model) {
  if (folder_.empty()) return;
  std::map<int64_t, const Image*> by_id;
  for (const auto& [key, image] : images.all()) by_id[image.row.id] = &image;
  for (auto copy = copies_.begin(); copy != copies_.end();) {
    const auto each = copy++;
    const auto image = by_id.find(each->first.image);
    const bool current = image != by_id.end() && image->second->row.generation == each->first.generation;
    if (!current && (each->second.ready || each->second.failed)) remove(each);
  }
  const uint64_t limit = config_.cache_size / kShareOfCache;
  for (const auto& [id, use] : uses) {
    const auto image = by_id.find(id);
    if (image == by_id.end() || !image->second->verified) continue;
    const ImageRow& row = image->second->row;
    const unsigned all = std::accumulate(use.instances.begin(), use.instances.end(), 0u);
    for (unsigned node = 0; node != use.instances.size(); ++node) {
      const Key key{id, row.generation, node};
      if (copies_.find(key) != copies_.end()) continue;
      const CopyLoad load{row.file_bytes, all, use.instances[node], use.seconds / all,
                          limit > total_bytes_ ? limit - total_bytes_ : 0};
      if (worth_copying(model, load)) make(key, images.path_of(row), row.file_bytes);
    }
  }
}

void Replicas::make(const Key& key, const std::string& original, uint64_t bytes) {
  copies_[key].bytes = bytes;
  total_bytes_ += bytes;
  ++under_way_;
  asio::post(pool_, [this, key, original, path = path_of(key), cpus = topology_.cpus[key.node]] {
    bind_to(cpus);
    std::string problem = copy_file(original, path);
    proto::FileKey stat{};
    if (problem.empty()) {
      const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
      if (file) {
        const CheckedImage checked = check_image(file.get());
        problem = checked.problem;
        stat = checked.stat;
      } else {
        problem = strerror(errno);
      }
    }
    asio::post(io_, [this, key, problem, stat] {
      --under_way_;
      const auto copy = copies_.find(key);
      if (copy == copies_.end()) return;
      if (problem.empty()) {
        copy->second.ready = true;
        copy->second.stat = stat;
        log(LogLevel::kDebug,
            "image " + std::to_string(key.image) + " has a copy on node " + std::to_string(topology_.ids[key.node]));
      } else {
        log(LogLevel::kWarning, path_of(key) + ": " + problem);
        unlink(path_of(key).c_str());
        total_bytes_ -= copy->second.bytes;
        copy->second.bytes = 0;
        copy->second.failed = true;
      }
    });
  });
}

Descriptor Replicas::hand_out(const ImageRow& row, unsigned node) {
  const auto copy = copies_.find({row.id, row.generation, node});
  if (copy == copies_.end() || !copy->second.ready) return {};
  Descriptor file(::open(path_of(copy->first).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  proto::FileKey stat;
  if (file && stat_file(file.get(), stat) && stat == copy->second.stat) return file;
  log(LogLevel::kWarning, path_of(copy->first) + " is not what it was: removed");
  remove(copy);
  return {};
}

unsigned Replicas::copies_of(int64_t image) const {
  unsigned count = 0;
  for (const auto& [key, copy] : copies_) count += key.image == image && copy.ready ? 1 : 0;
  return count;
}

}  // namespace phybin::daemon
