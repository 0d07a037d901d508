// See modules.h.
#include "daemon/modules.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "daemon/log.h"

namespace phybin::daemon {
namespace {

// Records in memory, and with them descriptors of files that are kept open.
constexpr size_t kMaxModules = 8192;
// Seconds that a record is kept without a user.
constexpr unsigned kKeepTicks = 60;

std::string path_of(int file) {
  char path[PATH_MAX];
  const ssize_t length = readlink(("/proc/self/fd/" + std::to_string(file)).c_str(), path, sizeof path);
  return length > 0 ? std::string(path, static_cast<size_t>(length)) : "";
}

void merge(std::vector<uint32_t>& into, const std::vector<uint32_t>& from) {
  std::vector<uint32_t> both;
  both.reserve(into.size() + from.size());
  std::set_union(into.begin(), into.end(), from.begin(), from.end(), std::back_inserter(both));
  into = std::move(both);
}

ShownFile refused(const std::string& problem) {
  ShownFile shown;
  shown.problem = problem;
  return shown;
}

}  // namespace

const std::vector<uint32_t>& Module::entries_for(Scope scope) const {
  static const std::vector<uint32_t> none;
  if (scope == kEveryone) return all_entries;
  const auto found = entries.find(scope);
  return found == entries.end() ? none : found->second;
}

Modules::Modules(FileReader& reader, Closer& closer, Store& store, const Config& config, bool single_user)
    : reader_(reader), closer_(closer), store_(store), config_(config), single_user_(single_user) {}

Scope Modules::scope_for(const Module& module, uid_t user) const {
  return !single_user_ && (module.row.everyone || module.provers.size() > 1) ? kEveryone : user;
}

void Modules::show(Descriptor file, uid_t user, std::function<void(const ShownFile&)> done) {
  // These two do not go to the file system. O_PATH proves nothing.
  const int flags = fcntl(file.get(), F_GETFL);
  if (flags < 0 || (flags & O_PATH) != 0 || (flags & O_ACCMODE) == O_WRONLY) {
    closer_.close_later(std::move(file));
    return done(refused("not opened for reading"));
  }
  const ClientFile shared = closer_.own(std::move(file));
  reader_.read(shared, ReadKind::kExamine, 0, user,
               [this, shared, user, done = std::move(done)](const ReadReply& reply, Descriptor) {
                 examined(shared, user, reply, done);
               });
}

void Modules::examined(const ClientFile& file, uid_t user, const ReadReply& reply,
                       const std::function<void(const ShownFile&)>& done) {
  if (reply.error != 0 || reply.facts.key.size > config_.module_size) {
    return done(refused(reply.error != 0 ? strerror(reply.error) : "larger than module_size"));
  }
  if (reply.facts.memorable) {
    if (const auto digest = store_.find_file(reply.facts.file_system, reply.facts.key, user); digest) {
      return hashed(file, user, reply.facts, *digest, done);
    }
  }
  auto finished = [this, file, user, done](const ReadReply& read) {
    if (read.error == 0) return hashed(file, user, read.facts, read.digest, done);
    done(refused(strerror(read.error)));
  };
  std::string name(reinterpret_cast<const char*>(reply.facts.file_system.data()), reply.facts.file_system.size());
  name.append(reinterpret_cast<const char*>(&reply.facts.key), sizeof reply.facts.key);
  name.append(reinterpret_cast<const char*>(&user), sizeof user);
  // What cannot be recognised again is read for each who shows it.
  if (!reply.facts.memorable) name.append(std::to_string(file->get()));
  auto& waiting = hashing_[name];
  waiting.push_back(std::move(finished));
  if (waiting.size() > 1) return;
  reader_.read(file, ReadKind::kDigest, config_.module_size, user, [this, name](const ReadReply& read, Descriptor) {
    const auto calls = std::move(hashing_[name]);
    hashing_.erase(name);
    for (const auto& call : calls) call(read);
  });
}

void Modules::hashed(const ClientFile& file, uid_t user, const FileFacts& facts, const Digest& digest,
                     const std::function<void(const ShownFile&)>& done) {
  if (facts.memorable) {
    store_.remember_file(facts.file_system, facts.key, facts.everyone ? kEveryone : user, digest);
  }
  const std::string name = printable(path_of(file->get()));
  store_.prove(user, {digest, facts.key.size, facts.everyone, name, 0});
  ShownFile shown;
  shown.facts = facts;
  shown.module = load(digest);
  Module& module = *shown.module;
  load_entries(module);
  module.row.bytes = facts.key.size;
  module.row.name = name;
  module.row.everyone |= facts.everyone;
  if (std::find(module.provers.begin(), module.provers.end(), user) == module.provers.end()) {
    module.provers.push_back(user);
  }
  module.source = file;
  module.source_user = user;
  done(shown);
}

std::shared_ptr<Module> Modules::load(const Digest& digest) {
  std::shared_ptr<Module>& module = modules_[digest];
  if (module) return module;
  module = std::make_shared<Module>();
  if (auto row = store_.module(digest); row) module->row = *row;
  module->row.digest = digest;
  module->provers = store_.provers(digest);
  return module;
}

void Modules::load_entries(Module& module) {
  if (std::exchange(module.entries_loaded, true)) return;
  module.entries = store_.entries(module.row.digest);
  for (const auto& [user, offsets] : module.entries) merge(module.all_entries, offsets);
}

std::shared_ptr<Module> Modules::find(const Digest& digest) {
  if (const auto found = modules_.find(digest); found != modules_.end()) return found->second;
  return store_.module(digest) ? load(digest) : nullptr;
}

// A user's profile has a limit: the modules in which he met nothing new for longest are forgotten for new ones.
bool Modules::make_room(uid_t user, uint64_t entries, const Module& keep) {
  uint64_t& count = entry_counts_[user];
  while (count + entries > config_.profile_size) {
    const auto oldest = store_.oldest_entries(user);
    if (!oldest || *oldest == keep.row.digest) return false;
    const auto record = load(*oldest);
    load_entries(*record);
    count -= std::min<uint64_t>(count, record->entries[user].size());
    record->entries.erase(user);
    record->all_entries.clear();
    for (const auto& [other, offsets] : record->entries) merge(record->all_entries, offsets);
    store_.remove_entries(*oldest, user);
  }
  return true;
}

size_t Modules::add_entries(Module& module, uid_t user, const std::vector<uint32_t>& offsets) {
  load_entries(module);
  if (entry_counts_.empty()) entry_counts_ = store_.entry_counts();
  std::vector<uint32_t>& known = module.entries[user];
  std::vector<uint32_t> fresh;
  std::set_difference(offsets.begin(), offsets.end(), known.begin(), known.end(), std::back_inserter(fresh));
  if (fresh.empty() || !make_room(user, fresh.size(), module)) return 0;
  merge(known, fresh);
  merge(module.all_entries, fresh);
  entry_counts_[user] += fresh.size();
  if (std::find(module.unsaved.begin(), module.unsaved.end(), user) == module.unsaved.end()) {
    module.unsaved.push_back(user);
  }
  return fresh.size();
}

void Modules::save_all() {
  for (auto& [digest, module] : modules_) {
    for (Scope user : module->unsaved) store_.save_entries(digest, user, module->entries[user]);
    module->unsaved.clear();
  }
}

void Modules::tick() {
  save_all();
  for (auto module = modules_.begin(); module != modules_.end();) {
    Module& record = *module->second;
    record.unused_ticks = module->second.use_count() == 1 ? record.unused_ticks + 1 : 0;
    module = record.unused_ticks > kKeepTicks ? modules_.erase(module) : std::next(module);
  }
  if (modules_.size() <= kMaxModules) return;
  for (auto& [digest, module] : modules_) module->source.reset();
}

void Modules::refill_index() {
  for (auto& [digest, module] : modules_) {
    for (Scope user : module->provers) store_.prove(user, module->row);
    for (const auto& [user, offsets] : module->entries) store_.save_entries(digest, user, offsets);
  }
}

uint64_t Modules::entries_known() const {
  uint64_t sum = 0;
  for (const auto& [user, count] : entry_counts_) sum += count;
  return sum;
}

}  // namespace phybin::daemon
