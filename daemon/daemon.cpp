// See daemon.h.
#include "daemon/daemon.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <map>
#include <unordered_map>

#include "daemon/files.h"
#include "daemon/log.h"
#include "daemon/server.h"
#include "daemon/worker_session.h"
#include "proto/places.h"

namespace phybin::daemon {
namespace {

using namespace std::chrono_literals;

// What nobody has used since then is forgotten, once a day.
constexpr int64_t kRememberSeconds = 180 * 24 * 3600;
constexpr auto kLookAgain = 50ms;
// Copies of images are thought about every so many ticks.
constexpr uint64_t kReplicaTicks = 4;
constexpr unsigned kIdleLooks = 3;
// Entry points that are taken from one user's workers at a time.
constexpr size_t kMaxEntriesOfUser = 512 << 10;

// A user's own cache is all his.
Config adapted(Config config, const Options& options) {
  if (!options.system) config.user_cache_size = config.cache_size;
  return config;
}

std::string cache_place(const Options& options, const Config& config) {
  if (!options.cache.empty()) return options.cache;
  return config.cache_dir.empty() ? proto::kSystemCache : config.cache_dir;
}

}  // namespace

Daemon::Daemon(Options options_given, Config config_given)
    : options(std::move(options_given)),
      config(adapted(std::move(config_given), options)),
      cache_dir(cache_place(options, config)),
      children(io),
      reader(io, children),
      images(io, pool, store, config),
      modules(reader, closer, store, config, !options.system),
      jobs(io, children, reader, images, store, config, options.compiler),
      policy(policy_memory.page(), read_topology(options.topology.empty() ? kSystemNodes : options.topology),
             options.topology.empty() ? sample_process : sample_time),
      replicas(io, policy.topology(), config),
      spot_checks(io, pool, children, reader, images, config, options.compiler),
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
  if (std::string problem = store.open(cache_dir); !problem.empty()) return problem;
  images.on_available([this](const ImageKey& key) {
    for (const auto& connection : server->connections()) {
      if (connection->worker() != nullptr && !connection->ended()) connection->worker()->image_available(key);
    }
  });
  if (std::string problem = images.open(cache_dir); !problem.empty()) return problem;
  if (std::string problem = replicas.open(cache_dir); !problem.empty()) {
    log(LogLevel::kWarning, problem + "; images have no copies on memory nodes");
  }
  if (options.compiler.empty()) {
    log(LogLevel::kError, "no phybin beside phybind or in $PATH, and no --compiler: no images are made");
  }
  jobs.on_compiled([this](const Module& module, uid_t user, double seconds) {
    policy.note_compile(module.row.name.substr(module.row.name.rfind('/') + 1), user, seconds);
  });
  jobs.ask_compiler();
  reader.prepare();
  return server->open();
}

void Daemon::reload(Config fresh) {
  config = adapted(std::move(fresh), options);
  set_log_level(config.log_level);
  images.evict();
  jobs.ask_compiler();
  log(LogLevel::kInfo, "configuration read");
}

void Daemon::stop() {
  server->stop_accepting();
  server->end_all();  // which takes what is in their rings
  jobs.stop();
  spot_checks.stop();
  children.kill_all();
  modules.save_all();
  images.tick();
  store.close();
  io.stop();
}

bool Daemon::idle() const {
  return reader.idle() && images.idle() && jobs.idle() && replicas.idle() && spot_checks.idle();
}

void Daemon::when_idle(bool hurry, std::function<void()> call) {
  waiting_.push_back({hurry, 0, std::move(call)});
  if (waiting_.size() == 1) look_for_idle();
}

// A moment has to pass between two looks, so that messages that were sent before the question have arrived.
void Daemon::look_for_idle() {
  drain_workers();
  const bool hurry = std::any_of(waiting_.begin(), waiting_.end(), [](const Waiting& each) { return each.hurry; });
  if (hurry) jobs.hurry();
  std::vector<Waiting> still;
  for (Waiting& waiting : std::exchange(waiting_, {})) {
    waiting.idle_looks = idle() ? waiting.idle_looks + 1 : 0;
    if (waiting.idle_looks >= kIdleLooks) {
      waiting.call();
    } else {
      still.push_back(std::move(waiting));
    }
  }
  waiting_.insert(waiting_.begin(), std::make_move_iterator(still.begin()), std::make_move_iterator(still.end()));
  if (waiting_.empty()) return;
  look_timer_.expires_after(kLookAgain);
  look_timer_.async_wait([this](const auto& error) {
    if (!error) look_for_idle();
  });
}

// Takes the entry points that workers have met, from each user so many that others need not wait.
void Daemon::drain_workers() {
  std::unordered_map<uid_t, size_t> taken;
  for (const auto& connection : server->connections()) {
    WorkerSession* worker = connection->worker();
    if (worker == nullptr || connection->ended()) continue;
    size_t& of_user = taken[connection->peer().uid];
    if (of_user < kMaxEntriesOfUser) of_user += worker->drain(kMaxEntriesOfUser - of_user);
  }
}

// Counts who runs from which image, and where.
void Daemon::update_replicas() {
  std::map<int64_t, Replicas::Use> uses;
  for (const auto& connection : server->connections()) {
    const WorkerSession* worker = connection->worker();
    if (worker == nullptr || connection->ended() || worker->member() == nullptr) continue;
    const Policy::Member& member = *worker->member();
    if (policy.value(member) == proto::CachePolicy::kOff && !member.group->automatic) continue;
    const double seconds = member.cpu_seconds + policy.history().remaining(
                                                    {member.subject.program, member.subject.uid}, member.cpu_seconds);
    for (const int64_t image : worker->images()) {
      Replicas::Use& use = uses[image];
      use.instances.resize(policy.topology().nodes());
      ++use.instances[member.node];
      use.seconds += seconds;
    }
  }
  replicas.update(uses, images, policy.model());
}

void Daemon::tick() {
  closer.tick();
  policy.tick();
  drain_workers();
  modules.tick();
  images.tick();
  jobs.tick();
  imports.tick();
  if (++ticks_ % kReplicaTicks == 0 && policy.topology().nodes() > 1) update_replicas();
  if (const auto now = std::chrono::steady_clock::now(); now >= next_forgetting_) {
    next_forgetting_ = now + 24h;
    store.forget_before(time(nullptr) - kRememberSeconds);
  }
  store.commit();
  if (store.damaged()) {
    log(LogLevel::kError, "the index is damaged; beginning a new one");
    if (std::string problem = store.start_anew(); !problem.empty()) log(LogLevel::kError, problem);
    images.refill_index();
    modules.refill_index();
  }
}

}  // namespace phybin::daemon
