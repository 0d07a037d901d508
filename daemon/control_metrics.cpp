// The request `metrics`: what Prometheus collects. Sums over the machine without names of programs or users, so that
// everybody may see them, and so that their number does not grow with what runs.
//
// Counters never fall while the daemon lives: what workers counted is kept when they leave.
#include <sys/statvfs.h>

#include <map>

#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/openmetrics.h"
#include "daemon/server.h"
#include "daemon/worker_session.h"

namespace phybin::daemon {
namespace {

using Type = OpenMetrics::Type;

uint64_t load(const std::atomic<uint64_t>& counter) { return counter.load(std::memory_order_relaxed); }

// A worker may write anything into its page; no single one makes the sums wrap.
uint64_t load_sane(const std::atomic<uint64_t>& counter) { return std::min(load(counter), Policy::kMostOfWorker); }

struct Running {
  uint64_t threads = 0, images = 0, image_bytes = 0, code_bytes = 0;
  std::map<std::string, uint64_t> by_policy;
  Policy::Counted counted;  // with what those counted that have left
};

Running look_at_workers(const Daemon& daemon) {
  Running running;
  running.counted = daemon.policy.counted();
  for (const proto::CachePolicy policy :
       {proto::CachePolicy::kOff, proto::CachePolicy::kRead, proto::CachePolicy::kOn}) {
    running.by_policy[policy_name(policy)] = 0;
  }
  for (const auto& connection : daemon.server->connections()) {
    const WorkerSession* worker = connection->worker();
    if (worker == nullptr || worker->member() == nullptr || worker->page() == nullptr) continue;
    const proto::WorkerPage& page = *worker->page();
    ++running.by_policy[policy_name(daemon.policy.value(*worker->member()))];
    running.threads += load_sane(page.threads);
    running.images += load_sane(page.images);
    running.image_bytes += load_sane(page.image_bytes);
    running.code_bytes += load_sane(page.code_bytes);
    running.counted.add(page);
  }
  return running;
}

void add_workers(const Daemon& daemon, OpenMetrics& text) {
  const Running running = look_at_workers(daemon);
  text.family("phybin_workers", Type::kGauge, "", "Translated programs that are connected, by the policy they obey.");
  for (const auto& [policy, count] : running.by_policy) text.sample(count, {{"policy", policy}});
  text.family("phybin_workers_started", Type::kCounter, "", "Translated programs that have connected.");
  text.sample(daemon.counters.workers);
  text.family("phybin_worker_threads", Type::kGauge, "", "Threads of connected programs.");
  text.sample(running.threads);
  text.family("phybin_images_attached", Type::kGauge, "", "Images that connected programs have mapped.");
  text.sample(running.images);
  text.family("phybin_images_attached_bytes", Type::kGauge, "bytes",
              "Size of the images that connected programs have mapped, counted once for each program.");
  text.sample(running.image_bytes);
  text.family("phybin_private_code_bytes", Type::kGauge, "bytes",
              "Code that connected programs translated for themselves.");
  text.sample(running.code_bytes);
  text.family("phybin_translated_instructions", Type::kCounter, "",
              "Guest instructions that programs translated for themselves.");
  text.sample(running.counted.guest_instructions);
  text.family("phybin_translated_regions", Type::kCounter, "", "Regions that programs translated for themselves.");
  text.sample(running.counted.regions);
  text.family("phybin_image_links", Type::kCounter, "", "Slots of images that programs filled.");
  text.sample(running.counted.image_links);
}

void add_cache(const Daemon& daemon, OpenMetrics& text) {
  text.family("phybin_modules_served", Type::kCounter, "",
              "Modules that programs asked for, by whether there was an image.");
  text.sample(daemon.counters.hits, {{"result", "hit"}});
  text.sample(daemon.counters.misses, {{"result", "miss"}});
  text.family("phybin_cache_images", Type::kGauge, "", "Images in the cache.");
  text.sample(static_cast<uint64_t>(daemon.images.all().size()));
  text.family("phybin_cache_size_bytes", Type::kGauge, "bytes", "Size of all images in the cache.");
  text.sample(daemon.images.total_bytes());
  text.family("phybin_cache_limit_bytes", Type::kGauge, "bytes", "Size that images are evicted beyond.");
  text.sample(daemon.config.cache_size);
  struct statvfs space {};
  if (statvfs(daemon.cache_dir.c_str(), &space) == 0) {
    text.family("phybin_cache_free_bytes", Type::kGauge, "bytes", "Free space of the cache's file system.");
    text.sample(static_cast<uint64_t>(space.f_bavail) * space.f_frsize);
  }
  text.family("phybin_profile_entry_points", Type::kGauge, "", "Entry points that are remembered.");
  text.sample(daemon.modules.entries_known());
}

void add_jobs(const Daemon& daemon, OpenMetrics& text) {
  text.family("phybin_compile_jobs", Type::kGauge, "", "Images to be made, by state.");
  text.sample(static_cast<uint64_t>(daemon.jobs.queued()), {{"state", "queued"}});
  text.sample(static_cast<uint64_t>(daemon.jobs.running()), {{"state", "running"}});
  text.family("phybin_compile_jobs_finished", Type::kCounter, "", "Jobs that have ended, by result.");
  text.sample(daemon.jobs.counters().done, {{"result", "done"}});
  text.sample(daemon.jobs.counters().failed, {{"result", "failed"}});
}

}  // namespace

void control_metrics(Daemon& daemon, ControlRequest&, const Reply& reply) {
  OpenMetrics text;
  const std::string build = daemon.jobs.build() ? to_hex(*daemon.jobs.build()) : "";
  text.family("phybin_build", Type::kInfo, "", "Versions of daemon and translator.");
  text.sample(uint64_t{1}, {{"version", PHYBIN_VERSION}, {"translator_build", build}});
  const auto uptime = std::chrono::steady_clock::now() - daemon.started;
  text.family("phybin_uptime_seconds", Type::kGauge, "seconds", "Time since the daemon was started.");
  text.sample(std::chrono::duration<double>(uptime).count());
  add_workers(daemon, text);
  add_cache(daemon, text);
  add_jobs(daemon, text);
  reply.done({{"text", text.finish()}});
}

}  // namespace phybin::daemon
