// The image files, CACHE/images/xx/NAME.SCOPE.GENERATION.img, and what is known of each.
//
// A file is published by being written and synced under CACHE/new, renamed, and then entered into the index; so after
// a crash there is a whole image with its row, or something that the next start removes. Files are never changed;
// removing one does not disturb workers that have it mapped. An image is handed out only when it has been verified
// whole since the daemon was started, and again when its stat data is not what it was then.
//
// Files are verified and synced by a thread; everything else is for the event thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "daemon/config.h"
#include "daemon/descriptor.h"
#include "daemon/store.h"

namespace phybin::daemon {

struct Image {
  ImageRow row;
  std::optional<proto::FileKey> verified;  // stat data of the file when it was found good
  bool verifying = false;
  Descriptor copy;  // sealed, where files cannot be mapped for execution
};

class Images {
 public:
  Images(boost::asio::io_context& io, boost::asio::thread_pool& pool, Store& store, const Config& config);

  // Brings files and index into agreement and begins to verify. An empty string, or what is wrong.
  std::string open(const std::string& cache_dir);
  // Called whenever an image can be handed out that could not be before.
  void on_available(std::function<void(const ImageKey&)> call) { available_ = std::move(call); }

  // The image for that key, or null. Valid until the event thread goes on.
  const Image* find(const ImageKey& key) const;
  // A descriptor to give to a worker; none if the image has to be verified first, which begins then. Counts as a use.
  Descriptor hand_out(const ImageKey& key);

  // Where a new image is to be written: an empty file, opened for writing. None: errno.
  Descriptor new_file(std::string& path);
  // Verifies the file, publishes it under the key in place of an older image, and calls back with what was wrong.
  void publish(const ImageKey& key, const std::string& path, uint64_t profile,
               std::function<void(const std::string& problem)> done, ImageOrigin origin = ImageOrigin::kMadeHere);
  void set_origin(const ImageKey& key, ImageOrigin origin);
  void remove(const ImageKey& key);
  // Bytes that can still be written where images lie.
  uint64_t room() const;
  // Verifies again, now.
  void verify(const ImageKey& key, std::function<void(const std::string& problem)> done);

  // Evicts what is beyond the limits, those unused for longest first.
  void evict();
  // Once a second: uses go to the index.
  void tick();
  // The index was begun anew: enters all images again.
  void refill_index();

  const std::map<ImageKey, Image>& all() const { return images_; }
  std::string path_of(const ImageRow& row) const;
  uint64_t total_bytes() const { return total_bytes_; }
  bool idle() const { return under_way_ == 0; }

 private:
  void scan();
  void adopt(const std::string& path);
  void forget(std::map<ImageKey, Image>::iterator image, bool remove_file);
  void verified(const ImageKey& key, int64_t generation, const std::string& problem, const proto::FileKey& stat);
  void verify_next();
  Descriptor to_send(Image& image, Descriptor file);

  boost::asio::io_context& io_;
  boost::asio::thread_pool& pool_;
  Store& store_;
  const Config& config_;
  std::string cache_dir_;
  std::map<ImageKey, Image> images_;
  std::vector<ImageKey> to_verify_;  // after the start, the last used at the end
  std::unordered_set<int64_t> touched_;
  std::function<void(const ImageKey&)> available_;
  uint64_t total_bytes_ = 0;
  uint64_t next_file_ = 0;
  unsigned under_way_ = 0;
  bool no_exec_ = false;
};

}  // namespace phybin::daemon
