// See policy_model.h.
#include "daemon/policy_model.h"

#include <algorithm>
#include <cstdio>

namespace phybin::daemon {
namespace {

using proto::CachePolicy;

// Images that took longer to make than they have saved are not made anew for so little.
constexpr double kCompileAllowance = 60;

std::string costs(const char* what, double shared, double alone) {
  char buffer[160];
  snprintf(buffer, sizeof buffer, "%s: remote fetches %.3g s, translating %.3g s an instance", what, shared, alone);
  return buffer;
}

}  // namespace

double remote_loss(const CostModel& model, unsigned instances, bool remote) {
  if (!remote || instances < 2) return 0;
  const double others = std::min(instances, model.contended_by) - 1;
  return model.remote_loss * others / (model.contended_by - 1);
}

SharingVerdict decide_sharing(const CostModel& model, const SharingLoad& load) {
  SharingVerdict verdict;
  verdict.shared_cost = remote_loss(model, load.instances, load.remote) * load.remaining;
  verdict.private_cost = static_cast<double>(load.instructions) * model.translation;
  if (!load.remote) {
    verdict.reason = "images lie on the programs' own memory node";
  } else if (load.instructions == 0) {
    verdict.reason = "nothing is known yet of what translating costs";
  } else if (verdict.shared_cost <= verdict.private_cost) {
    verdict.reason = costs("sharing is cheaper", verdict.shared_cost, verdict.private_cost);
  } else if (load.memory_available != 0 && static_cast<double>(load.private_bytes) * load.instances >
                                               static_cast<double>(load.memory_available) * model.private_share) {
    verdict.reason = "memory is short for private translations";
  } else {
    verdict.value = CachePolicy::kOff;
    verdict.reason = costs("sharing is dearer", verdict.shared_cost, verdict.private_cost);
  }
  if (verdict.value == CachePolicy::kOn && load.compile_seconds > load.saved_seconds + kCompileAllowance) {
    verdict.value = CachePolicy::kRead;
    verdict.reason = "making its images takes more than they save";
  }
  return verdict;
}

bool worth_copying(const CostModel& model, const CopyLoad& load) {
  if (load.bytes > load.room || load.here == 0) return false;
  const double saved = remote_loss(model, load.instances, true) * load.seconds * load.here;
  return saved > static_cast<double>(load.bytes) / model.copy_rate;
}

}  // namespace phybin::daemon
