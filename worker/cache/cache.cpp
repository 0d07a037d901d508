// See cache.h. One lock is held while anything here is read or changed. It is taken below the locks of the address
// space and of the runtime, and nothing is called upwards while it is held.
#include "worker/cache/cache.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

#include "worker/cache/offers.h"
#include "worker/cache/profile.h"
#include "worker/cache/session.h"
#include "worker/process/modules.h"
#include "worker/process/program.h"
#include "worker/syscalls/syscalls.h"
#include "worker/translator/identity.h"

namespace phybin::cache {
namespace {

using proto::CachePolicy;

// A file that was mapped executable. Its number for the daemon is its place in the list, for the process one more.
struct KnownFile {
  proto::FileKey file;
  bool announced;
};
constexpr size_t kMostFiles = 4096;

std::mutex cache_lock;
std::vector<KnownFile> files;

struct Setup {
  Address address;
  Identity identity;
  CachePolicy wish = CachePolicy::kOff;
  unsigned timeout = 0;
} setup;

CachePolicy wish_of(config::SharedCache option) {
  switch (option) {
    case config::SharedCache::kAuto:
      return CachePolicy::kAuto;
    case config::SharedCache::kOn:
      return CachePolicy::kOn;
    case config::SharedCache::kRead:
      return CachePolicy::kRead;
    case config::SharedCache::kOff:
      break;
  }
  return CachePolicy::kOff;
}

// ---- For process/ (process::ImageSource) --------------------------------------------------------------------------

// Reads what the daemon has sent if no image of this file is known yet.
void look_for_offer(const proto::FileKey& file) {
  if (!is_offered(file) && read_offers()) process::note_new_offers();
}

bool find_image(const proto::FileKey& file, process::OfferedImage& out) {
  std::lock_guard guard(cache_lock);
  if (!may_use_images()) return false;
  look_for_offer(file);
  return find_offer(file, out);
}

uint32_t module_mapped(const proto::FileKey& file, int fd) {
  std::lock_guard guard(cache_lock);
  const auto known = std::find_if(files.begin(), files.end(), [&](const KnownFile& f) { return f.file == file; });
  const auto number = static_cast<uint32_t>(known - files.begin());
  if (known != files.end()) return number + 1;
  if (files.size() == kMostFiles) return 0;
  look_for_offer(file);
  // What is offered needs no announcement as long as nothing is missing in it.
  files.push_back({file, !is_offered(file) && announce_module(number, file, fd)});
  return number + 1;
}

void image_attached() {
  const runtime::Counters counters = runtime::counters();
  std::lock_guard guard(cache_lock);
  write_counters(counters);
}

// ---- For the runtime (runtime::Config) ----------------------------------------------------------------------------

void translated(uint32_t module, uint64_t offset, const runtime::Counters& counters) {
  std::lock_guard guard(cache_lock);
  write_counters(counters);
  if (!may_contribute() || offset > UINT32_MAX || module > files.size()) return;
  KnownFile& known = files[module - 1];
  if (!known.announced) known.announced = is_offered(known.file) && announce_module(module - 1, known.file, -1);
  if (known.announced) write_entry(module - 1, static_cast<uint32_t>(offset));
}

void check_policy() {
  if (policy_has_changed()) process::follow_image_policy();
}

void handle_syscall(GuestState& state) {
  check_policy();
  syscalls::handle(state);
}

// The parent's conversation is not the child's.
void forked() {
  disconnect();
  drop_worker_page();
}

void program_opened(int fd, const struct stat& status, const char* name) {
  proto::Hello hello{};
  hello.header = {proto::MessageKind::kHello, 0, proto::kProtocolVersion, sizeof hello};
  memcpy(hello.translator_build, kTranslatorBuild, sizeof hello.translator_build);
  hello.host_features = setup.identity.host_features;
  hello.code_options = setup.identity.code_options;
  hello.wanted = setup.wish;
  unsigned cpu = 0;
  if (syscall(SYS_getcpu, &cpu, nullptr, nullptr) == 0) hello.cpu = cpu;
  hello.program = process::file_key(status);
  strncpy(hello.name, name, sizeof hello.name - 1);

  std::lock_guard guard(cache_lock);
  if (!connect(setup.address, hello, fd, setup.timeout)) return;
  files.push_back({hello.program, true});
  process::set_image_source({nullptr, may_use_images, find_image, module_mapped, image_attached});
}

}  // namespace

void prepare(const config::Options& options, bool secure, const char* runtime_folder, runtime::Config& config) {
  setup.wish = wish_of(options.shared_translation_cache);
  // An image was made without the one who wants to see each translation.
  if (setup.wish == CachePolicy::kOff || config.trace_region != nullptr) return;
  setup.address = {options.daemon_socket, runtime_folder, secure};
  setup.identity = {host_feature_bits(config.host), code_option_bits(config.code)};
  setup.timeout = options.daemon_timeout;
  set_wish(setup.wish);
  expect_identity(setup.identity);
  config.handle_syscall = handle_syscall;
  config.before_translation = check_policy;
  config.translated = translated;
  config.forked = forked;
  config.image_unmapped = process::image_unmapped;
  process::set_image_source({.program_opened = program_opened});
}

}  // namespace phybin::cache
