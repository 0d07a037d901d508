// Making images: which ones are wanted, when, and the processes that make them.
//
// One job for one key, however many workers ask. A module without an image gets one when no entry point was met in it
// for a moment; one with an image gets another when enough new ones came, or some and then none for a while. A module
// of which no image can be made is tried again later and later; but one that only had too small a disk, as soon as it
// has room.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "daemon/children.h"
#include "daemon/images.h"
#include "daemon/modules.h"

namespace phybin::daemon {

class Jobs {
 public:
  struct Counters {
    uint64_t done = 0, failed = 0;
  };

  Jobs(boost::asio::io_context& io, Children& children, FileReader& reader, Images& images, Store& store,
       const Config& config, std::string compiler);
  ~Jobs();

  // Asks the compiler what it is; no job starts before it has answered. Called again when it may be another one.
  void ask_compiler();
  // The translator build that images are made with, when it is known.
  const std::optional<Digest>& build() const { return build_; }

  // Called when the compiler has ended, with the seconds that it took; `user` had asked for the image.
  void on_compiled(std::function<void(const Module& module, uid_t user, double seconds)> call) {
    compiled_ = std::move(call);
  }

  // Something was learnt about the module that a worker with this key has mapped: considers making an image. `user`
  // asks for it.
  void consider(const ImageKey& key, const std::shared_ptr<Module>& module, uid_t user);
  // What waits for its time is done now.
  void hurry();
  void tick();
  void stop();

  size_t queued() const { return wanted_.size(); }
  size_t running() const { return running_.size(); }
  const Counters& counters() const { return counters_; }
  // What waits for room on the disk may wait for ever.
  bool idle() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Wanted {
    std::shared_ptr<Module> module;
    uid_t user;
    Clock::time_point first, due;
    uint64_t room = 0;  // bytes on the disk without which it has failed
  };
  struct Running;

  void start_due();
  void begin(const ImageKey& key, const Wanted& wanted);
  void compile(Running& job, Descriptor module_copy);
  void ended(const ImageKey& key, int status);
  void fail(const ImageKey& key, const std::string& reason);
  void finish(const ImageKey& key, bool again = true);

  boost::asio::io_context& io_;
  Children& children_;
  FileReader& reader_;
  Images& images_;
  Store& store_;
  const Config& config_;
  std::string compiler_;
  std::optional<Digest> build_;
  proto::FileKey compiler_file_{};
  bool asking_ = false, stopped_ = false;
  std::map<ImageKey, Wanted> wanted_;
  // Features and options that images were asked for with, by user.
  std::map<uid_t, std::set<std::pair<uint32_t, uint32_t>>> kinds_;
  std::map<ImageKey, std::unique_ptr<Running>> running_;
  Counters counters_;
  std::function<void(const Module&, uid_t, double)> compiled_;
};

}  // namespace phybin::daemon
