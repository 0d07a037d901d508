// See worker_session.h.
#include "daemon/worker_session.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "daemon/daemon.h"
#include "daemon/log.h"
#include "daemon/ring.h"

namespace phybin::daemon {
namespace {

using namespace std::chrono_literals;
using proto::MessageKind;

constexpr uint32_t kMaxModules = 4096;
// Entry points that wait until their module is known, of one module.
constexpr size_t kMaxWaiting = 64 << 10;
// The worker waits 20 ms for its welcome. If its program takes longer to read, the images follow later.
constexpr auto kPatience = 10ms;
// The index is told once a day that a file is still used.
constexpr int64_t kSeenAgain = 24 * 3600;
constexpr uint32_t kKnownOptions = proto::kOptionFastMath | proto::kOptionNoSseCheck;
// Offers of one message: the descriptors that it may carry, in the first one together with the pages.
constexpr size_t kFirstOffers = proto::kMaxDescriptors - proto::kWelcomePages;
constexpr size_t kMoreOffers = proto::kMaxDescriptors;

// Copies a message of fixed size. False: it is not one.
template <typename Message>
bool read_message(std::string_view bytes, Message& message) {
  if (bytes.size() != sizeof message) return false;
  memcpy(&message, bytes.data(), sizeof message);
  return message.header.bytes == sizeof message;
}

}  // namespace

WorkerSession::WorkerSession(Daemon& daemon, Connection& connection)
    : daemon_(daemon), connection_(connection), patience_(daemon.io) {}

WorkerSession::~WorkerSession() = default;

void WorkerSession::receive(std::string_view bytes, std::vector<Descriptor> files) {
  proto::MessageHeader header{};
  proto::Hello hello_message;
  proto::ModuleMet module_message;
  if (bytes.size() >= sizeof header) memcpy(&header, bytes.data(), sizeof header);
  if (bytes.size() < sizeof header) {
    connection_.end("a message is too short");
  } else if (header.version != proto::kProtocolVersion) {
    connection_.end("it speaks version " + std::to_string(header.version) + " of the protocol");
  } else if (header.kind == MessageKind::kHello && !greeted_ && read_message(bytes, hello_message)) {
    return hello(hello_message, std::move(files));
  } else if (header.kind == MessageKind::kModule && greeted_ && read_message(bytes, module_message)) {
    return module_met(module_message, std::move(files));
  } else {
    connection_.end("a message that makes no sense");
  }
  daemon_.closer.close_all(std::move(files));
}

void WorkerSession::hello(const proto::Hello& message, std::vector<Descriptor> files) {
  Descriptor program;
  if (files.size() == 1) program = std::move(files[0]);
  daemon_.closer.close_all(std::move(files));
  if (message.wanted > proto::CachePolicy::kAuto || (message.code_options & ~kKnownOptions) != 0) {
    daemon_.closer.close_later(std::move(program));
    return connection_.end("an unknown policy or option");
  }
  hello_ = message;
  greeted_ = true;
  subject_ = {printable(std::string_view(message.name, strnlen(message.name, sizeof message.name))),
              connection_.peer().uid, message.cpu, message.wanted};
  ++daemon_.counters.workers;
  numbered_[0].refused = !program;
  if (!program) return welcome();
  patience_.expires_after(kPatience);
  patience_.async_wait([weak = connection_.weak_from_this()](const auto& error) {
    const auto alive = weak.lock();
    if (error || !alive || alive->ended()) return;
    WorkerSession* session = alive->worker();
    if (!session->welcomed_) session->welcome();
  });
  // The session stays until the file is known, also when the worker ends first: what it met is worth having.
  daemon_.modules.show(
      std::move(program), subject_.uid,
      [self = connection_.shared_from_this()](const ShownFile& shown) { self->worker()->program_shown(shown); });
}

void WorkerSession::program_shown(const ShownFile& shown) {
  patience_.cancel();
  if (shown.problem.empty()) {
    program_ = shown.module;
    files_[shown.facts.key].module = program_;
    if (!connection_.ended()) know_used_files();
    for (const auto& [file, digest] : uses_) {
      daemon_.store.note_use(subject_.uid, program_->row.digest, file, digest);
    }
  } else {
    numbered_[0].refused = true;
    log(LogLevel::kDebug, subject_.program + ": " + shown.problem);
  }
  if (!connection_.ended()) {
    if (welcomed_) {
      send_images(new_offers());
    } else {
      welcome();
    }
  }
  if (program_) bind(0, program_);
}

// What this user's runs of the program have mapped before.
void WorkerSession::know_used_files() {
  const int64_t now = time(nullptr);
  for (const FileUse& use : daemon_.store.uses(subject_.uid, program_->row.digest)) {
    const auto module = daemon_.modules.find(use.module);
    if (!module) continue;
    KnownFile& known = files_[use.file];
    if (known.module) continue;
    known.module = module;
    if (use.seen + kSeenAgain < now) {
      daemon_.store.note_use(subject_.uid, program_->row.digest, use.file, use.module);
      daemon_.store.prove(subject_.uid, module->row);
    }
  }
}

ImageKey WorkerSession::key_for(const Module& module) const {
  return {module.row.digest, to_digest(hello_.translator_build), hello_.host_features, hello_.code_options,
          daemon_.modules.scope_for(module, subject_.uid)};
}

Descriptor WorkerSession::find_image(const Module& module, const ImageRow*& row) {
  ImageKey key = key_for(module);
  Descriptor image = daemon_.images.hand_out(key);
  if (!image) {
    // From the time when only this user had shown it; or one for everyone that was imported.
    key.scope = key.scope == kEveryone ? static_cast<Scope>(subject_.uid) : kEveryone;
    image = daemon_.images.hand_out(key);
  }
  if (image) row = &daemon_.images.find(key)->row;
  return image;
}

std::vector<WorkerSession::Offer> WorkerSession::new_offers() {
  std::vector<Offer> offers;
  for (auto& [file, known] : files_) {
    if (known.offered) continue;
    const ImageRow* row = nullptr;
    Descriptor image = find_image(*known.module, row);
    if (image) {
      ++daemon_.counters.hits;
      known.offered = true;
      if (daemon_.policy.topology().nodes() > 1) {
        Descriptor near = daemon_.replicas.hand_out(*row, daemon_.policy.topology().node_of(subject_.cpu));
        if (known.module == program_) program_is_far_ = !near;
        if (near) image = std::move(near);
      }
      images_.insert(row->id);
      offers.push_back({{file, row->file_bytes, static_cast<uint64_t>(row->id)}, std::move(image)});
    } else if (!std::exchange(known.missed, true)) {
      ++daemon_.counters.misses;
    }
  }
  return offers;
}

void WorkerSession::image_available(const ImageKey& key) {
  if (!welcomed_ || key.build != to_digest(hello_.translator_build) || key.features != hello_.host_features ||
      key.options != hello_.code_options) {
    return;
  }
  const bool lacking = std::any_of(files_.begin(), files_.end(), [&](const auto& file) {
    return !file.second.offered && file.second.module->row.digest == key.module;
  });
  if (lacking) send_images(new_offers());
}

void WorkerSession::welcome() {
  welcomed_ = true;
  if (!memory_.create()) return connection_.end(std::string("no page for it: ") + strerror(errno));
  std::vector<Offer> offers = new_offers();
  member_ = daemon_.policy.join(subject_, connection_.peer().pid, memory_.page(), program_is_far_);
  const size_t count = std::min(offers.size(), kFirstOffers);
  std::vector<char> bytes(sizeof(proto::Welcome) + count * sizeof(proto::ImageOffer));
  proto::Welcome message{};
  message.header = {MessageKind::kWelcome, count < offers.size() ? proto::kMore : uint8_t{0}, proto::kProtocolVersion,
                    static_cast<uint32_t>(bytes.size())};
  message.policy_index = daemon_.policy.word(*member_);
  message.offers = static_cast<uint32_t>(count);
  memcpy(bytes.data(), &message, sizeof message);
  std::vector<int> files = {daemon_.policy_memory.file(), memory_.file()};
  for (size_t i = 0; i != count; ++i) {
    memcpy(bytes.data() + sizeof message + i * sizeof(proto::ImageOffer), &offers[i].message,
           sizeof(proto::ImageOffer));
    files.push_back(offers[i].image.get());
  }
  connection_.send(bytes.data(), bytes.size(), files.data(), static_cast<unsigned>(files.size()));
  offers.erase(offers.begin(), offers.begin() + static_cast<ptrdiff_t>(count));
  send_images(std::move(offers));
}

void WorkerSession::send_images(std::vector<Offer> offers) {
  for (size_t sent = 0; sent < offers.size() && !connection_.ended();) {
    const size_t count = std::min(offers.size() - sent, kMoreOffers);
    std::vector<char> bytes(sizeof(proto::Images) + count * sizeof(proto::ImageOffer));
    proto::Images message{};
    message.header = {MessageKind::kImages, sent + count < offers.size() ? proto::kMore : uint8_t{0},
                      proto::kProtocolVersion, static_cast<uint32_t>(bytes.size())};
    message.offers = static_cast<uint32_t>(count);
    memcpy(bytes.data(), &message, sizeof message);
    std::vector<int> files;
    for (size_t i = 0; i != count; ++i) {
      memcpy(bytes.data() + sizeof message + i * sizeof(proto::ImageOffer), &offers[sent + i].message,
             sizeof(proto::ImageOffer));
      files.push_back(offers[sent + i].image.get());
    }
    connection_.send(bytes.data(), bytes.size(), files.data(), static_cast<unsigned>(files.size()));
    sent += count;
  }
}

void WorkerSession::module_met(const proto::ModuleMet& message, std::vector<Descriptor> files) {
  Descriptor file;
  if (files.size() == 1) file = std::move(files[0]);
  daemon_.closer.close_all(std::move(files));
  const uint32_t number = message.module;
  if (number == 0 || number > kMaxModules || numbered_.count(number) != 0) {
    daemon_.closer.close_later(std::move(file));
    return connection_.end("a module's number is wrong");
  }
  Numbered& numbered = numbered_[number];
  if (!file) {
    const auto known = files_.find(message.file);
    if (known == files_.end()) {
      numbered.refused = true;
    } else {
      bind(number, known->second.module);
    }
    return;
  }
  daemon_.modules.show(std::move(file), subject_.uid,
                       [self = connection_.shared_from_this(), number](const ShownFile& shown) {
                         self->worker()->module_shown(number, shown);
                       });
}

void WorkerSession::module_shown(uint32_t number, const ShownFile& shown) {
  if (!shown.problem.empty()) {
    numbered_[number].refused = true;
    numbered_[number].waiting.clear();
    log(LogLevel::kDebug, "a module of " + subject_.program + ": " + shown.problem);
    return;
  }
  files_[shown.facts.key].module = shown.module;
  if (shown.facts.memorable) {
    if (program_) {
      daemon_.store.note_use(subject_.uid, program_->row.digest, shown.facts.key, shown.module->row.digest);
    } else {
      uses_.emplace_back(shown.facts.key, shown.module->row.digest);
    }
  }
  if (welcomed_ && !connection_.ended()) send_images(new_offers());
  bind(number, shown.module);
}

void WorkerSession::bind(uint32_t number, const std::shared_ptr<Module>& module) {
  Numbered& numbered = numbered_[number];
  numbered.module = module;
  add_entries(numbered, std::exchange(numbered.waiting, {}));
}

void WorkerSession::add_entries(Numbered& numbered, std::vector<uint32_t> offsets) {
  const std::shared_ptr<Module> module = numbered.module;
  std::sort(offsets.begin(), offsets.end());
  offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
  std::erase_if(offsets, [&](uint32_t offset) { return (offset & ~proto::kUnalignedAccess) >= module->row.bytes; });
  daemon_.modules.add_entries(*module, subject_.uid, offsets);
  daemon_.jobs.consider(key_for(*module), module, subject_.uid);
}

size_t WorkerSession::drain(size_t limit) {
  if (memory_.page() == nullptr) return 0;
  std::vector<proto::RingEntry> entries;
  drain_ring(memory_, ring_position_, limit, entries);
  std::unordered_map<uint32_t, std::vector<uint32_t>> by_module;
  for (const proto::RingEntry& entry : entries) {
    if (entry.module <= kMaxModules) by_module[entry.module].push_back(entry.offset);
  }
  for (auto& [number, offsets] : by_module) {
    // Entries may come before their module was announced.
    Numbered* numbered = nullptr;
    if (const auto found = numbered_.find(number); found != numbered_.end()) numbered = &found->second;
    if (numbered == nullptr || numbered->refused) continue;
    if (numbered->module) {
      add_entries(*numbered, std::move(offsets));
    } else if (numbered->waiting.size() + offsets.size() <= kMaxWaiting) {
      numbered->waiting.insert(numbered->waiting.end(), offsets.begin(), offsets.end());
    }
  }
  return entries.size();
}

void WorkerSession::ended() {
  patience_.cancel();
  if (!greeted_) return;
  drain(proto::WorkerPage::kRingEntries);
  if (member_ != nullptr) daemon_.policy.leave(std::exchange(member_, nullptr));
}

}  // namespace phybin::daemon
