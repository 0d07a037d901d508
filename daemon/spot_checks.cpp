// See spot_checks.h.
#include "daemon/spot_checks.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "daemon/compile_child.h"
#include "daemon/compiler.h"
#include "daemon/files.h"
#include "daemon/log.h"
#include "daemon/pages.h"

namespace phybin::daemon {
namespace {

namespace asio = boost::asio;

constexpr uint64_t kMaxImageFile = 1ull << 30;

// A sanitizer's build reserves terabytes of address space.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kLimitMemory = false;
#else
constexpr bool kLimitMemory = true;
#endif

bool hash_file(const std::string& path, Digest& digest) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file) return false;
  Sha256 hash;
  std::vector<char> buffer(256 << 10);
  ssize_t count;
  while ((count = read(file.get(), buffer.data(), buffer.size())) > 0) {
    hash.add(buffer.data(), static_cast<size_t>(count));
  }
  digest = hash.finish();
  return count == 0;
}

}  // namespace

struct SpotChecks::Running {
  explicit Running(asio::io_context& io) : deadline(io) {}

  SpotCheck check;
  pid_t child = 0;
  std::string path;  // of the image that is made
  asio::steady_timer deadline;
};

SpotChecks::SpotChecks(asio::io_context& io, asio::thread_pool& pool, Children& children, FileReader& reader,
                       Images& images, const Config& config, std::string compiler)
    : io_(io),
      pool_(pool),
      children_(children),
      reader_(reader),
      images_(images),
      config_(config),
      compiler_(std::move(compiler)) {}

SpotChecks::~SpotChecks() = default;

bool SpotChecks::check(SpotCheck check) {
  if (stopped_ || compiler_.empty() || (!check.module->source && check.module->row.name.empty())) return false;
  queue_.push_back(std::move(check));
  begin_next();
  return true;
}

void SpotChecks::begin_next() {
  if (running_ || queue_.empty() || stopped_) return;
  running_ = std::make_unique<Running>(io_);
  running_->check = std::move(queue_.front());
  queue_.pop_front();
  auto copied = [this](const ReadReply& reply, Descriptor copy) {
    if (!running_ || stopped_) return;
    if (reply.error != 0 || reply.digest != running_->check.key.module) return finish(SpotResult::kUnknown);
    compile(std::move(copy));
  };
  Module& module = *running_->check.module;
  if (module.source) {
    reader_.read(module.source, ReadKind::kCopy, config_.module_size, module.source_user, std::move(copied));
  } else {
    reader_.read_path(module.row.name, ReadKind::kCopy, config_.module_size, running_->check.user, std::move(copied));
  }
}

void SpotChecks::compile(Descriptor module_copy) {
  const std::vector<std::string> command = compile_command(compiler_, running_->check.key);
  const std::string text = entries_text(running_->check.entries);
  auto entries = make_memory_file("phybin-entries");
  const Descriptor output = images_.new_file(running_->path);
  const Descriptor nothing(open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (command.empty() || !entries || !output || !nothing ||
      write_all(entries->get(), text.data(), text.size()) != 0) {
    return finish(SpotResult::kUnknown);
  }
  const CompileLimits limits{kLimitMemory ? config_.compile_memory : 0, config_.compile_time, kMaxImageFile};
  running_->child = children_.start(kSelf, caged_command(limits, command), compile_environment(),
                                    {{module_copy.get(), kModuleFile},
                                     {entries->get(), kEntriesFile},
                                     {output.get(), STDOUT_FILENO},
                                     {nothing.get(), STDERR_FILENO}},
                                    [this](int status) { ended(status); });
  if (running_->child < 0) return finish(SpotResult::kUnknown);
  running_->deadline.expires_after(std::chrono::seconds(config_.compile_time));
  running_->deadline.async_wait([this](const auto& error) {
    if (!error && running_ && running_->child > 0) kill(-running_->child, SIGKILL);
  });
}

void SpotChecks::ended(int status) {
  if (!running_) return;
  running_->child = 0;
  running_->deadline.cancel();
  if (stopped_ || status != 0) return finish(SpotResult::kUnknown);
  asio::post(pool_, [this, path = running_->path, expected = running_->check.file_sha256] {
    Digest digest{};
    const bool read = hash_file(path, digest);
    const SpotResult result =
        !read ? SpotResult::kUnknown : (digest == expected ? SpotResult::kSame : SpotResult::kDifferent);
    asio::post(io_, [this, result] { finish(result); });
  });
}

void SpotChecks::finish(SpotResult result) {
  if (!running_) return;
  if (!running_->path.empty()) unlink(running_->path.c_str());
  const auto done = std::move(running_->check.done);
  running_.reset();
  if (stopped_) return;
  done(result);
  begin_next();
}

void SpotChecks::stop() {
  stopped_ = true;
  queue_.clear();
  if (running_ && running_->child > 0) kill(-running_->child, SIGKILL);
}

}  // namespace phybin::daemon
