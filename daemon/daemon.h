// The daemon's parts, together: what handlers and sessions are given. One event thread runs everything here; what may
// take long (hashing, verifying, making images) is done by helper processes and a pool of threads, which post their
// results back.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/archive_import.h"
#include "daemon/children.h"
#include "daemon/closer.h"
#include "daemon/config.h"
#include "daemon/file_reader.h"
#include "daemon/images.h"
#include "daemon/jobs.h"
#include "daemon/modules.h"
#include "daemon/options.h"
#include "daemon/pages.h"
#include "daemon/policy.h"
#include "daemon/replicas.h"
#include "daemon/spot_checks.h"
#include "daemon/store.h"

namespace phybin::daemon {

class Server;

// Since the daemon was started.
struct Counters {
  uint64_t hits = 0;    // modules for which a worker was given an image
  uint64_t misses = 0;  // modules for which there was none
  uint64_t workers = 0;
};

struct Daemon {
  Daemon(Options options_given, Config config_given);  // throws std::system_error
  ~Daemon();

  boost::asio::io_context io{1};
  Options options;
  Config config;
  std::string cache_dir;
  boost::asio::thread_pool pool{1};
  Closer closer;
  Children children;
  FileReader reader;
  Store store;
  Images images;
  Modules modules;
  Jobs jobs;
  PolicyMemory policy_memory;
  Policy policy;
  Replicas replicas;
  SpotChecks spot_checks;
  ArchiveImports imports{*this};
  Counters counters;
  std::unique_ptr<Server> server;
  std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();

  // Opens cache and socket. An empty string, or what is wrong.
  std::string open();
  void reload(Config fresh);
  // Finishes what must not be lost and lets io.run() return.
  void stop();

  // Nothing is under way: no file being read, no entry point waiting, no job.
  bool idle() const;
  // Calls once, when idle() holds and has held for a moment. `hurry`: jobs do not wait for their time meanwhile.
  void when_idle(bool hurry, std::function<void()> call);
  // Once a second.
  void tick();

 private:
  struct Waiting {
    bool hurry;
    unsigned idle_looks;
    std::function<void()> call;
  };

  void drain_workers();
  void update_replicas();
  void look_for_idle();

  Descriptor lock_;
  std::vector<Waiting> waiting_;
  uint64_t ticks_ = 0;
  std::chrono::steady_clock::time_point next_forgetting_;
  boost::asio::steady_timer look_timer_{io};
};

}  // namespace phybin::daemon
