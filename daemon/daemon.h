// The daemon's parts, together: what handlers and sessions are given. One event thread runs everything here; what may
// take long (hashing, verifying, making images) is done by helper processes and a pool of threads, which post their
// results back.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/closer.h"
#include "daemon/config.h"
#include "daemon/options.h"
#include "daemon/pages.h"
#include "daemon/policy.h"

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
  Closer closer;
  PolicyMemory policy_memory;
  Policy policy;
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
  // Calls once when idle() holds, soon.
  void when_idle(std::function<void()> call);
  // Once a second.
  void tick();

 private:
  Descriptor lock_;
  std::vector<std::function<void()>> waiting_;
};

}  // namespace phybin::daemon
