// What a worker says and is told (proto/messages.h): one for each connected worker. Everything from the worker is
// copied once and checked before it is used.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "daemon/connection.h"
#include "daemon/modules.h"
#include "daemon/pages.h"
#include "daemon/policy.h"
#include "daemon/store.h"
#include "proto/messages.h"

namespace phybin::daemon {

class WorkerSession {
 public:
  WorkerSession(Daemon& daemon, Connection& connection);
  ~WorkerSession();

  void receive(std::string_view message, std::vector<Descriptor> files);
  // Takes what is in the ring, at most `limit` entry points. How many it were.
  size_t drain(size_t limit);
  // An image can be had: offers it if this worker lacks it.
  void image_available(const ImageKey& key);
  // The connection has ended: takes what is left in the ring.
  void ended();

  const std::string& program() const { return subject_.program; }
  // What the policy knows of it; null before the worker has said hello.
  const Policy::Member* member() const { return member_; }
  // The worker's counters and ring; null before it was welcomed. Read each field once, believe nothing.
  const proto::WorkerPage* page() const { return memory_.page(); }
  std::chrono::steady_clock::time_point started() const { return started_; }
  // Images that it was given, by their ids.
  const std::unordered_set<int64_t>& images() const { return images_; }
  bool has_image(int64_t id) const { return images_.count(id) != 0; }

 private:
  // A module by the number that the worker gave it.
  struct Numbered {
    std::shared_ptr<Module> module;  // null: being looked at, or refused
    bool refused = false;
    std::vector<uint32_t> waiting;  // entry points met meanwhile
  };
  struct FileHash {
    size_t operator()(const proto::FileKey& key) const { return key.inode * 0x9e3779b97f4a7c15 ^ key.device; }
  };
  // A file that the worker uses or may use.
  struct KnownFile {
    std::shared_ptr<Module> module;
    bool offered = false;  // an image
    bool missed = false;   // there was none when it was looked for
  };
  struct Offer {
    proto::ImageOffer message;
    Descriptor image;
  };

  void hello(const proto::Hello& message, std::vector<Descriptor> files);
  void program_shown(const ShownFile& shown);
  void know_used_files();
  void welcome();
  void module_met(const proto::ModuleMet& message, std::vector<Descriptor> files);
  void module_shown(uint32_t number, const ShownFile& shown);
  void bind(uint32_t number, const std::shared_ptr<Module>& module);
  void add_entries(Numbered& numbered, std::vector<uint32_t> offsets);
  ImageKey key_for(const Module& module) const;
  Descriptor find_image(const Module& module, const ImageRow*& row);
  // Images for known files that have not been offered yet.
  std::vector<Offer> new_offers();
  void send_images(std::vector<Offer> offers);

  Daemon& daemon_;
  Connection& connection_;
  bool greeted_ = false, welcomed_ = false;
  proto::Hello hello_{};
  PolicySubject subject_{};
  Policy::Member* member_ = nullptr;
  WorkerMemory memory_;
  uint64_t ring_position_ = 0;
  std::shared_ptr<Module> program_;
  std::vector<std::pair<proto::FileKey, Digest>> uses_;  // until the program is known
  std::unordered_map<uint32_t, Numbered> numbered_;
  std::unordered_map<proto::FileKey, KnownFile, FileHash> files_;
  std::unordered_set<int64_t> images_;
  bool program_is_far_ = false;  // its program's image lies on another memory node
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  boost::asio::steady_timer patience_;  // of the worker, for its welcome
};

}  // namespace phybin::daemon
