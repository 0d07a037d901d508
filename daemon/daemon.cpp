// See daemon.h.
#include "daemon/daemon.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <cstring>

#include "daemon/files.h"
#include "daemon/log.h"
#include "daemon/server.h"
#include "proto/places.h"

namespace phybin::daemon {
namespace {

std::string cache_place(const Options& options, const Config& config) {
  if (!options.cache.empty()) return options.cache;
  return config.cache_dir.empty() ? proto::kSystemCache : config.cache_dir;
}

}  // namespace

Daemon::Daemon(Options options_given, Config config_given)
    : options(std::move(options_given)),
      config(std::move(config_given)),
      cache_dir(cache_place(options, config)),
      policy(policy_memory.page(), read_topology(options.topology.empty() ? kSystemNodes : options.topology)),
      server(std::make_unique<Server>(*this)) {}

Daemon::~Daemon() = default;

std::string Daemon::open() {
  if (std::string problem = make_directories(cache_dir, 0700); !problem.empty()) return problem;
  lock_.reset(::open((cache_dir + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock_) return cache_dir + "/lock: " + strerror(errno);
  if (flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    return cache_dir +
           (errno == EWOULDBLOCK ? ": another daemon keeps this cache" : std::string(": ") + strerror(errno));
  }
  if (const std::string problem = policy.open(cache_dir + "/policy.sqlite"); !problem.empty()) {
    log(LogLevel::kWarning, problem);
  }
  return server->open();
}

void Daemon::reload(Config fresh) {
  config = std::move(fresh);
  set_log_level(config.log_level);
  log(LogLevel::kInfo, "configuration read");
}

void Daemon::stop() {
  server->stop_accepting();
  server->end_all();
  io.stop();
}

bool Daemon::idle() const { return true; }

void Daemon::when_idle(std::function<void()> call) {
  if (idle()) {
    call();
  } else {
    waiting_.push_back(std::move(call));
  }
}

void Daemon::tick() {
  closer.tick();
  policy.tick();
  if (!waiting_.empty() && idle()) {
    for (auto& call : std::exchange(waiting_, {})) call();
  }
}

}  // namespace phybin::daemon
