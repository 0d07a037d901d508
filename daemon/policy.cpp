// See policy.h. A worker's own wish holds; one that leaves it to the daemon uses images and contributes.
#include "daemon/policy.h"

namespace phybin::daemon {
namespace {

using proto::CachePolicy;

CachePolicy decided(CachePolicy wanted) { return wanted == CachePolicy::kAuto ? CachePolicy::kOn : wanted; }

}  // namespace

Policy::Policy(proto::PolicyPage& page) : page_(page) {
  for (CachePolicy wanted : {CachePolicy::kOff, CachePolicy::kRead, CachePolicy::kOn, CachePolicy::kAuto}) {
    page_.words[static_cast<uint32_t>(wanted)] = static_cast<uint32_t>(decided(wanted));
  }
}

uint32_t Policy::join(const PolicySubject& subject) { return static_cast<uint32_t>(subject.wanted); }

void Policy::leave(const PolicySubject&, uint32_t) {}

CachePolicy Policy::value(uint32_t word) const { return static_cast<CachePolicy>(page_.words[word].load()); }

void Policy::tick() {}

}  // namespace phybin::daemon
