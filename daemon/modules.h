// The modules that workers have shown: whose they are, which entry points were met in them, and a descriptor to make
// images from. Records live in memory while a session or a job needs them, their content in the index.
//
// Who gets what (docs/security.md): a module that belongs to root, or that two users have shown, has images for
// everyone, made from the entry points of all of them as far as the translator finds them by itself. Any other module
// has images of its user, from that user's entry points.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/closer.h"
#include "daemon/config.h"
#include "daemon/file_reader.h"
#include "daemon/store.h"

namespace phybin::daemon {

struct Module {
  ModuleRow row;
  std::vector<Scope> provers;
  bool entries_loaded = false;
  std::map<Scope, std::vector<uint32_t>> entries;  // by user, ascending
  std::vector<uint32_t> all_entries;               // of all users, ascending
  std::vector<Scope> unsaved;                      // users whose entries are not in the index yet
  // The file, from the last user who showed it; may hang when touched (file_reader.h).
  ClientFile source;
  uid_t source_user = 0;
  unsigned unused_ticks = 0;

  // What such an image is made from.
  const std::vector<uint32_t>& entries_for(Scope scope) const;
};

// A file that was shown.
struct ShownFile {
  std::string problem;  // empty: it is known now
  FileFacts facts;
  std::shared_ptr<Module> module;
};

class Modules {
 public:
  // `single_user`: the daemon is a user's own, so there is nobody to share with.
  Modules(FileReader& reader, Closer& closer, Store& store, const Config& config, bool single_user);

  // Whom an image serves that this user asks for.
  Scope scope_for(const Module& module, uid_t user) const;

  // A user shows a file: finds out what it is. `file` is taken over.
  void show(Descriptor file, uid_t user, std::function<void(const ShownFile&)> done);
  // The record of a module that the index knows, or null; without its entries.
  std::shared_ptr<Module> find(const Digest& digest);
  // The same of any module, also one that nobody has shown yet.
  std::shared_ptr<Module> record(const Digest& digest) { return load(digest); }
  void load_entries(Module& module);
  // Adds entry points, ascending file offsets. The number of those that are new for that user.
  size_t add_entries(Module& module, uid_t user, const std::vector<uint32_t>& offsets);

  // Once a second: writes to the index, and forgets records that nobody uses.
  void tick();
  void save_all();
  // The index was begun anew.
  void refill_index();
  uint64_t entries_known() const;

 private:
  void examined(const ClientFile& file, uid_t user, const ReadReply& reply,
                const std::function<void(const ShownFile&)>& done);
  void hashed(const ClientFile& file, uid_t user, const FileFacts& facts, const Digest& digest,
              const std::function<void(const ShownFile&)>& done);
  bool make_room(uid_t user, uint64_t entries, const Module& keep);
  std::shared_ptr<Module> load(const Digest& digest);

  FileReader& reader_;
  Closer& closer_;
  Store& store_;
  const Config& config_;
  const bool single_user_;
  std::unordered_map<Digest, std::shared_ptr<Module>, DigestHash> modules_;
  std::map<Scope, uint64_t> entry_counts_;
  // Files being hashed, by file system, key and user: who shows the same one meanwhile waits for the result.
  std::map<std::string, std::vector<std::function<void(const ReadReply&)>>> hashing_;
};

}  // namespace phybin::daemon
