// The requests `status` (how the daemon is doing) and `settle` (answered when nothing is under way: what tests and
// scripts wait for).
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/server.h"
#include "daemon/worker_session.h"

namespace phybin::daemon {
namespace {

// What the file system has left for the daemon; null: it does not tell.
Json free_bytes(const std::string& folder) {
  struct statvfs space {};
  if (statvfs(folder.c_str(), &space) != 0) return nullptr;
  return static_cast<uint64_t>(space.f_bavail) * space.f_frsize;
}

}  // namespace

void control_status(Daemon& daemon, ControlRequest&, const Reply& reply) {
  size_t workers = 0;
  for (const auto& connection : daemon.server->connections()) workers += connection->worker() != nullptr ? 1 : 0;
  const auto uptime = std::chrono::steady_clock::now() - daemon.started;
  reply.done({
      {"version", PHYBIN_VERSION},
      {"pid", getpid()},
      {"uptime_seconds", std::chrono::duration_cast<std::chrono::seconds>(uptime).count()},
      {"system", daemon.options.system},
      {"socket", daemon.options.socket},
      {"compiler", daemon.options.compiler},
      {"cache",
       {{"directory", daemon.cache_dir},
        {"bytes", daemon.images.total_bytes()},
        {"limit_bytes", daemon.config.cache_size},
        {"writable", faccessat(AT_FDCWD, daemon.cache_dir.c_str(), W_OK, AT_EACCESS) == 0},
        {"free_bytes", free_bytes(daemon.cache_dir)},
        {"images", daemon.images.all().size()}}},
      {"translator_build", daemon.jobs.build() ? Json(to_hex(*daemon.jobs.build())) : Json(nullptr)},
      {"workers", {{"connected", workers}, {"total", daemon.counters.workers}}},
      {"hits", daemon.counters.hits},
      {"misses", daemon.counters.misses},
      {"policy", policy_name(daemon.policy.settings().resolve("", UINT32_MAX))},
      {"jobs",
       {{"queued", daemon.jobs.queued()},
        {"running", daemon.jobs.running()},
        {"done", daemon.jobs.counters().done},
        {"failed", daemon.jobs.counters().failed}}},
      {"profile", {{"entry_points", daemon.modules.entries_known()}}},
      {"idle", daemon.idle()},
  });
}

void control_settle(Daemon& daemon, ControlRequest& request, const Reply& reply) {
  // Others may wait as well, but not make the daemon work at once.
  daemon.when_idle(request.peer.privileged, [reply] { reply.done({{"idle", true}}); });
}

}  // namespace phybin::daemon
