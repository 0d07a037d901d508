// See jobs.h.
#include "daemon/jobs.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include "daemon/compile_child.h"
#include "daemon/compiler.h"
#include "daemon/files.h"
#include "daemon/image_check.h"
#include "daemon/log.h"
#include "daemon/pages.h"

namespace phybin::daemon {
namespace {

using namespace std::chrono_literals;

// A start-up meets new entry points all the time: the image is made when that calms down, at the latest after a
// while.
constexpr auto kCalm = 2s, kLatest = 20s;
// Entry points that make a new image worth its while: as many as these, or this share of those it has. Fewer wait.
constexpr uint64_t kWorthwhile = 32, kWorthwhileShare = 50;
constexpr auto kQuiet = 60s, kQuietLatest = 600s;

// Combinations of features and options that a user's images are made for, since the daemon was started: a machine has
// one set of features, emulators and migrated containers some more.
constexpr size_t kMaxKinds = 8;
// What can wait, of one user.
constexpr size_t kMaxWanted = 4096;
// After a failure, and twice as long after the next one.
constexpr int64_t kRetrySeconds = 60, kMaxRetrySeconds = 7 * 24 * 3600;

// What there must be on a disk that was full: some, and more than what did not fit.
constexpr uint64_t kLeastRoom = 1 << 20;

// Of an image. The format allows 64 MiB of code in each of its two variants, and tables.
constexpr uint64_t kMaxImageFile = 1ull << 30;
// What a job may complain.
constexpr off_t kMessageBytes = 4096;
constexpr auto kBuildTime = 10s;

// A sanitizer's build reserves terabytes of address space.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kLimitMemory = false;
#else
constexpr bool kLimitMemory = true;
#endif

// Memory that takes so many bytes and no more.
Descriptor message_file() {
  auto file = make_memory_file("phybin-messages");
  if (!file || ftruncate(file->get(), kMessageBytes) != 0) return {};
  if (fcntl(file->get(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0) return {};
  return std::move(*file);
}

std::string read_message(int file) {
  char text[kMessageBytes];
  const ssize_t count = pread(file, text, sizeof text, 0);
  return count > 0 ? std::string(text, strnlen(text, static_cast<size_t>(count))) : "";
}

std::string describe(int status, const std::string& message) {
  std::string text = WIFSIGNALED(status) ? std::string("killed by ") + strsignal(WTERMSIG(status))
                                         : "exit status " + std::to_string(WEXITSTATUS(status));
  const std::string line = printable(message.substr(0, message.find('\n')));
  return line.empty() ? text : line + " (" + text + ")";
}

int64_t now() { return time(nullptr); }

}  // namespace

struct Jobs::Running {
  explicit Running(boost::asio::io_context& io) : deadline(io) {}

  ImageKey key;
  std::shared_ptr<Module> module;
  uid_t user = 0;
  pid_t child = 0;
  Clock::time_point started;  // the child
  std::string path;           // of the image to be
  uint64_t profile = 0;
  Descriptor messages;
  boost::asio::steady_timer deadline;
  bool late = false;
};

Jobs::Jobs(boost::asio::io_context& io, Children& children, FileReader& reader, Images& images, Store& store,
           const Config& config, std::string compiler)
    : io_(io),
      children_(children),
      reader_(reader),
      images_(images),
      store_(store),
      config_(config),
      compiler_(std::move(compiler)) {}

Jobs::~Jobs() = default;

void Jobs::ask_compiler() {
  if (compiler_.empty()) return;
  const Descriptor program(open(compiler_.c_str(), O_RDONLY | O_CLOEXEC));
  proto::FileKey file{};
  if (!program || !stat_file(program.get(), file)) {
    if (build_ || compiler_file_ == proto::FileKey{}) {
      log(LogLevel::kError, compiler_ + ": " + strerror(errno) + "; no images are made");
    }
    build_.reset();
    compiler_file_.inode = UINT64_MAX;  // said once
    return;
  }
  if (asking_ || file == compiler_file_) return;
  compiler_file_ = file;
  auto answer = std::make_shared<Descriptor>(message_file());
  if (!*answer) return;
  auto deadline = std::make_shared<boost::asio::steady_timer>(io_);
  const pid_t child =
      children_.start(compiler_.c_str(), build_command(compiler_), compile_environment(),
                      {{answer->get(), STDOUT_FILENO}}, [this, answer, deadline](int status) {
                        asking_ = false;
                        deadline->cancel();
                        std::string text = read_message(answer->get());
                        if (!text.empty() && text.back() == '\n') text.pop_back();
                        build_ = status == 0 ? from_hex(text) : std::nullopt;
                        if (build_) {
                          log(LogLevel::kInfo, compiler_ + " is translator build " + text.substr(0, 16));
                        } else {
                          log(LogLevel::kError, compiler_ + " does not say which translator it is (" +
                                                    describe(status, text) + "); no images are made");
                          wanted_.clear();
                        }
                      });
  if (child < 0) {
    log(LogLevel::kError, compiler_ + ": " + strerror(-child) + "; no images are made");
    return;
  }
  asking_ = true;
  deadline->expires_after(kBuildTime);
  deadline->async_wait([this, child](const auto& error) {
    if (!error && asking_) kill(-child, SIGKILL);
  });
}

void Jobs::consider(const ImageKey& key, const std::shared_ptr<Module>& module, uid_t user) {
  // What comes before the compiler has said what it is waits for that.
  if (stopped_ || (build_ ? key.build != *build_ : !asking_) || running_.count(key) != 0) return;
  const uint64_t known = module->entries_for(key.scope).size();
  if (known == 0) return;
  const Image* image = images_.find(key);
  const uint64_t had = image == nullptr ? 0 : image->row.profile;
  if (known <= had) return;
  const auto time = Clock::now();
  const auto found = wanted_.find(key);
  if (found == wanted_.end()) {
    if (const auto failure = store_.failure(key); failure && failure->retry_at > now()) return;
    const auto of_user = [&](const auto& each) { return each.second.user == user; };
    auto& kinds = kinds_[user];
    if (kinds.size() >= kMaxKinds && kinds.count({key.features, key.options}) == 0) return;
    kinds.insert({key.features, key.options});
    if (static_cast<size_t>(std::count_if(wanted_.begin(), wanted_.end(), of_user)) >= kMaxWanted) return;
  }
  Wanted& wanted = found != wanted_.end() ? found->second : wanted_[key];
  if (found == wanted_.end()) wanted = {module, user, time, {}, 0};
  const uint64_t fresh = known - had;
  const bool worthwhile = image == nullptr || fresh >= kWorthwhile || fresh * kWorthwhileShare > had;
  wanted.due = worthwhile ? std::min(time + kCalm, wanted.first + kLatest)
                          : std::min(time + kQuiet, wanted.first + kQuietLatest);
}

bool Jobs::idle() const {
  const auto waits_for_room = [](const auto& each) { return each.second.room != 0; };
  return running_.empty() && !asking_ && std::all_of(wanted_.begin(), wanted_.end(), waits_for_room);
}

void Jobs::hurry() {
  for (auto& [key, wanted] : wanted_) wanted.due = Clock::now();
  start_due();
}

void Jobs::tick() {
  ask_compiler();
  start_due();
}

// Starts what is due, as far as jobs are allowed; first the users who have the fewest running.
void Jobs::start_due() {
  while (build_ && !stopped_ && running_.size() < config_.compile_jobs) {
    auto best = wanted_.end();
    size_t best_count = 0;
    std::optional<uint64_t> room;
    for (auto each = wanted_.begin(); each != wanted_.end(); ++each) {
      if (each->second.due > Clock::now()) continue;
      if (each->second.room != 0) {
        if (!room) room = images_.room();
        if (*room < each->second.room) continue;
      }
      const auto of_user = [&](const auto& job) { return job.second->user == each->second.user; };
      const auto count = static_cast<size_t>(std::count_if(running_.begin(), running_.end(), of_user));
      if (best != wanted_.end() && count > best_count) continue;
      if (best != wanted_.end() && count == best_count && each->second.due >= best->second.due) continue;
      best = each;
      best_count = count;
    }
    if (best == wanted_.end()) return;
    const ImageKey key = best->first;
    const Wanted wanted = std::move(best->second);
    wanted_.erase(best);
    begin(key, wanted);
  }
}

// A copy of the module comes first: what users have shown may change under the compiler.
void Jobs::begin(const ImageKey& key, const Wanted& wanted) {
  if (!build_ || key.build != *build_) return;
  auto job = std::make_unique<Running>(io_);
  job->key = key;
  job->module = wanted.module;
  job->user = wanted.user;
  running_[key] = std::move(job);
  auto copied = [this, key](const ReadReply& reply, Descriptor copy) {
    const auto found = running_.find(key);
    if (found == running_.end() || stopped_) return;
    if (reply.error == 0 && reply.digest == key.module) return compile(*found->second, std::move(copy));
    // The file is not what it was. Who runs it will show it again.
    Module& stale = *found->second->module;
    log(LogLevel::kInfo, stale.row.name + " is gone or has changed before its image was made");
    stale.source.reset();
    finish(key, false);
  };
  Module& module = *wanted.module;
  if (module.source) {
    reader_.read(module.source, ReadKind::kCopy, config_.module_size, module.source_user, std::move(copied));
  } else {
    // Nobody has shown it since the daemon was started, because an image of it was offered.
    reader_.read_path(module.row.name, ReadKind::kCopy, config_.module_size, wanted.user, std::move(copied));
  }
}

void Jobs::compile(Running& job, Descriptor module_copy) {
  const ImageKey key = job.key;
  const std::vector<uint32_t>& offsets = job.module->entries_for(key.scope);
  job.profile = offsets.size();
  const std::string text = entries_text(offsets);
  const std::vector<std::string> command = compile_command(compiler_, key);
  if (command.empty()) return fail(key, "unknown features or options");
  auto entries = make_memory_file("phybin-entries");
  job.messages = message_file();
  const Descriptor output = images_.new_file(job.path);
  if (!entries || !job.messages || !output || write_all(entries->get(), text.data(), text.size()) != 0) {
    return fail(key, strerror(errno));
  }
  const CompileLimits limits{kLimitMemory ? config_.compile_memory : 0, config_.compile_time, kMaxImageFile};
  log(LogLevel::kDebug,
      "making an image of " + job.module->row.name + " from " + std::to_string(job.profile) + " entry points");
  job.child = children_.start(kSelf, caged_command(limits, command), compile_environment(),
                              {{module_copy.get(), kModuleFile},
                               {entries->get(), kEntriesFile},
                               {output.get(), STDOUT_FILENO},
                               {job.messages.get(), STDERR_FILENO}},
                              [this, key](int status) { ended(key, status); });
  if (job.child < 0) return fail(key, strerror(-job.child));
  job.started = Clock::now();
  job.deadline.expires_after(std::chrono::seconds(config_.compile_time));
  job.deadline.async_wait([this, key](const auto& error) {
    const auto found = error ? running_.end() : running_.find(key);
    if (found == running_.end() || found->second->child <= 0) return;
    found->second->late = true;
    kill(-found->second->child, SIGKILL);
  });
}

void Jobs::ended(const ImageKey& key, int status) {
  const auto found = running_.find(key);
  if (found == running_.end()) return;
  Running& job = *found->second;
  job.child = 0;
  job.deadline.cancel();
  if (stopped_) return finish(key);
  if (compiled_) compiled_(*job.module, job.user, std::chrono::duration<double>(Clock::now() - job.started).count());
  const std::string message = read_message(job.messages.get());
  if (job.late) return fail(key, "it took longer than compile_time");
  if (status != 0) return fail(key, describe(status, message));
  images_.publish(key, job.path, job.profile, [this, key, message](const std::string& problem) {
    if (running_.count(key) == 0) return;
    if (!problem.empty()) return fail(key, "the image is refused: " + problem);
    ++counters_.done;
    store_.clear_failure(key);
    log(LogLevel::kInfo, "an image of " + running_[key]->module->row.name + " is made");
    log(LogLevel::kDebug, printable(message));
    finish(key);
  });
}

void Jobs::fail(const ImageKey& key, const std::string& reason) {
  ++counters_.failed;
  const auto found = running_.find(key);
  struct stat written {};
  if (found != running_.end()) {
    log(LogLevel::kWarning, "no image of " + found->second->module->row.name + ": " + reason,
        {{"PHYBIN_MODULE", found->second->module->row.name}, {"PHYBIN_MODULE_SHA256", to_hex(key.module)}});
    if (lstat(found->second->path.c_str(), &written) == 0) unlink(found->second->path.c_str());
  }
  // A full disk is no fault of the module. (Where there is room all the same, it was something else: a quota.)
  const uint64_t needed = std::max(kLeastRoom, 2 * static_cast<uint64_t>(written.st_size));
  if (reason.find(strerror(ENOSPC)) != reason.npos && images_.room() < needed) {
    finish(key);
    if (const auto again = wanted_.find(key); again != wanted_.end()) again->second.room = needed;
    return;
  }
  Failure failure = store_.failure(key).value_or(Failure{});
  const int64_t wait = std::min(kRetrySeconds << std::min<int64_t>(failure.count, 20), kMaxRetrySeconds);
  ++failure.count;
  failure.retry_at = now() + wait;
  failure.reason = reason;
  store_.save_failure(key, failure);
  finish(key);
}

void Jobs::finish(const ImageKey& key, bool again) {
  const auto found = running_.find(key);
  if (found == running_.end()) return;
  const auto module = found->second->module;
  const uid_t user = found->second->user;
  running_.erase(found);
  if (stopped_) return;
  // What was met while it was being made.
  if (again) consider(key, module, user);
  start_due();
}

void Jobs::stop() {
  stopped_ = true;
  wanted_.clear();
  for (const auto& [key, job] : running_) {
    if (job->child > 0) kill(-job->child, SIGKILL);
    unlink(job->path.c_str());
  }
}

}  // namespace phybin::daemon
