// The request `top`: the workers that the client may see, with the counters that they share with the daemon.
#include <algorithm>

#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/server.h"
#include "daemon/worker_session.h"

namespace phybin::daemon {
namespace {

uint64_t load(const std::atomic<uint64_t>& counter) { return counter.load(std::memory_order_relaxed); }

struct Totals {
  uint64_t workers = 0, threads = 0, code_bytes = 0, image_bytes = 0;
};

Json describe(const Policy& policy, const WorkerSession& worker, const Peer& peer, Totals& totals) {
  const proto::WorkerPage& page = *worker.page();
  const Policy::Member& member = *worker.member();
  // Each is read once: the worker goes on counting.
  const uint64_t threads = load(page.threads), code_bytes = load(page.code_bytes),
                 image_bytes = load(page.image_bytes);
  ++totals.workers;
  totals.threads += threads;
  totals.code_bytes += code_bytes;
  totals.image_bytes += image_bytes;
  const std::optional<double> hit_rate = policy.hit_rate(member);
  const auto age = std::chrono::steady_clock::now() - worker.started();
  return {{"pid", peer.pid},
          {"uid", peer.uid},
          {"program", worker.program()},
          {"wanted", policy_name(member.subject.wanted)},
          {"policy", policy_name(policy.value(member))},
          {"automatic", member.group->automatic},
          {"node", policy.topology().ids[member.node]},
          {"remote", member.remote},
          {"age_seconds", std::chrono::duration_cast<std::chrono::seconds>(age).count()},
          {"cpu_seconds", member.cpu_seconds},
          {"threads", threads},
          {"images", load(page.images)},
          {"image_bytes", image_bytes},
          {"image_links", load(page.image_links)},
          {"code_bytes", code_bytes},
          {"regions", load(page.regions)},
          {"guest_instructions", load(page.guest_instructions)},
          {"hit_rate", hit_rate ? Json(*hit_rate) : Json(nullptr)}};
}

}  // namespace

void control_top(Daemon& daemon, ControlRequest& request, const Reply& reply) {
  Json workers = Json::array();
  Totals totals;
  for (const auto& connection : daemon.server->connections()) {
    const WorkerSession* worker = connection->worker();
    const Peer& peer = connection->peer();
    if (worker == nullptr || worker->member() == nullptr || worker->page() == nullptr) continue;
    if (!request.peer.privileged && peer.uid != request.peer.uid) continue;
    workers.push_back(describe(daemon.policy, *worker, peer, totals));
  }
  std::sort(workers.begin(), workers.end(), [](const Json& a, const Json& b) { return a["pid"] < b["pid"]; });
  reply.list("workers", std::move(workers),
             {{"totals",
               {{"workers", totals.workers},
                {"threads", totals.threads},
                {"code_bytes", totals.code_bytes},
                {"image_bytes", totals.image_bytes}}}});
}

}  // namespace phybin::daemon
