// See closer.h.
#include "daemon/closer.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "daemon/log.h"

namespace phybin::daemon {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kHangs = std::chrono::seconds(3);
// Files that hang at the same time; beyond that, files to close wait for one of them.
constexpr size_t kMaxThreads = 32;

}  // namespace

struct Closer::Shared : std::enable_shared_from_this<Closer::Shared> {
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<Descriptor> queue;
  bool stop = false;
  size_t threads = 0, closing = 0;  // closing: threads inside close()
  Clock::time_point last_begun;

  void close_later(Descriptor file) {
    if (!file) return;
    std::lock_guard lock(mutex);
    queue.push_back(std::move(file));
    if (threads == 0) start_thread();
    wake.notify_one();
  }

  void start_thread() {
    ++threads;
    std::thread([shared = shared_from_this()] { shared->run(); }).detach();
  }

  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      wake.wait(lock, [this] { return stop || !queue.empty(); });
      if (queue.empty()) break;
      Descriptor file = std::move(queue.front());
      queue.pop_front();
      last_begun = Clock::now();
      ++closing;
      lock.unlock();
      file.reset();
      lock.lock();
      --closing;
    }
    --threads;
  }
};

Closer::Closer() : shared_(std::make_shared<Shared>()) {}

Closer::~Closer() {
  std::lock_guard lock(shared_->mutex);
  shared_->stop = true;
  shared_->wake.notify_all();
}

void Closer::close_later(Descriptor file) { shared_->close_later(std::move(file)); }

ClientFile Closer::own(Descriptor file) {
  return {new Descriptor(std::move(file)), [shared = shared_](Descriptor* owned) {
            shared->close_later(std::move(*owned));
            delete owned;
          }};
}

void Closer::close_all(std::vector<Descriptor> files) {
  for (Descriptor& file : files) close_later(std::move(file));
}

void Closer::tick() {
  std::lock_guard lock(shared_->mutex);
  Shared& shared = *shared_;
  if (shared.queue.empty() || shared.closing < shared.threads) return;
  if (Clock::now() - shared.last_begun < kHangs || shared.threads >= kMaxThreads) return;
  log(LogLevel::kWarning, "closing a client's file hangs; going on without it");
  shared.start_thread();
}

}  // namespace phybin::daemon
