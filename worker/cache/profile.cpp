// See profile.h.
#include "worker/cache/profile.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>

#include "worker/runtime/worker_memory.h"

#ifndef F_GET_SEALS
#define F_GET_SEALS 1034
#define F_SEAL_SHRINK 2
#endif

namespace phybin::cache {
namespace {

using proto::CachePolicy;

constexpr std::atomic<uint32_t> kNoDaemon{static_cast<uint32_t>(CachePolicy::kOff)};
// The word of the policy page that holds for this process, and what it was when somebody last looked.
std::atomic<const std::atomic<uint32_t>*> word = &kNoDaemon;
std::atomic<uint32_t> seen = static_cast<uint32_t>(CachePolicy::kOff);
CachePolicy own_wish = CachePolicy::kOff;
proto::WorkerPage* page = nullptr;
uint64_t written = 0;

// Its size is known and stays so.
bool cannot_shrink(int fd, uint64_t bytes) {
  struct stat status;
  if (fstat(fd, &status) != 0 || static_cast<uint64_t>(status.st_size) < bytes) return false;
  const int seals = fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
}

CachePolicy policy() {
  const uint32_t value = seen.load(std::memory_order_relaxed);
  if (value > static_cast<uint32_t>(CachePolicy::kOn)) return CachePolicy::kOff;
  return std::min(static_cast<CachePolicy>(value), own_wish);
}

}  // namespace

bool map_pages(int policy_page, uint32_t policy_index, int worker_page) {
  if (policy_index >= proto::PolicyPage::kWords || !cannot_shrink(policy_page, sizeof(proto::PolicyPage)) ||
      !cannot_shrink(worker_page, sizeof(proto::WorkerPage)))
    return false;
  void* policies = runtime::map_worker_memory(sizeof(proto::PolicyPage), PROT_READ, MAP_SHARED, policy_page, 0);
  if (policies == nullptr) return false;
  void* own =
      runtime::map_worker_memory(sizeof(proto::WorkerPage), PROT_READ | PROT_WRITE, MAP_SHARED, worker_page, 0);
  if (own == nullptr) {
    runtime::unmap_worker_memory(policies, sizeof(proto::PolicyPage));
    return false;
  }
  page = static_cast<proto::WorkerPage*>(own);
  word = &static_cast<const proto::PolicyPage*>(policies)->words[policy_index];
  seen = word.load()->load();
  return true;
}

void drop_worker_page() {
  if (page == nullptr) return;
  runtime::unmap_worker_memory(page, sizeof(proto::WorkerPage));
  page = nullptr;
}

void set_wish(CachePolicy wish) { own_wish = wish == CachePolicy::kAuto ? CachePolicy::kOn : wish; }

bool may_use_images() { return policy() != CachePolicy::kOff; }
bool may_contribute() { return page != nullptr && policy() == CachePolicy::kOn; }

bool policy_has_changed() {
  const uint32_t now = word.load(std::memory_order_relaxed)->load(std::memory_order_relaxed);
  if (now == seen.load(std::memory_order_relaxed)) return false;
  return seen.exchange(now) != now;
}

void write_counters(const runtime::Counters& counters) {
  if (page == nullptr) return;
  const auto put = [](std::atomic<uint64_t>& to, uint64_t value) { to.store(value, std::memory_order_relaxed); };
  put(page->guest_instructions, counters.guest_instructions);
  put(page->regions, counters.regions);
  put(page->code_bytes, counters.code_memory);
  put(page->images, counters.images);
  put(page->image_bytes, counters.image_bytes);
  put(page->image_links, counters.image_links);
  put(page->threads, counters.threads);
}

void write_entry(uint32_t module, uint32_t offset) {
  if (page == nullptr) return;
  page->ring[written % proto::WorkerPage::kRingEntries] = {module, offset};
  page->ring_count.store(++written, std::memory_order_release);
}

}  // namespace phybin::cache
