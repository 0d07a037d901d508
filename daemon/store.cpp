// See store.h.
#include "daemon/store.h"

#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <memory>

#include "daemon/log.h"
#include "daemon/store_schema.h"

namespace phybin::daemon {
namespace {

// Files that are offered to a program when it starts, at most; the last ones seen.
constexpr int kMaxUses = 512;

int64_t now() { return time(nullptr); }

Digest digest_column(const Statement& statement, int column) {
  const std::string_view bytes = statement.blob(column);
  Digest digest{};
  if (bytes.size() != digest.size()) throw SqliteError(SQLITE_CORRUPT, "a digest has the wrong length");
  memcpy(digest.data(), bytes.data(), digest.size());
  return digest;
}

constexpr const char* kSuffixes[] = {"", "-wal", "-shm"};

}  // namespace

struct Store::Statements {
  explicit Statements(Database& d)
      : images(
            d.prepare("SELECT id, module, build, features, options, scope, generation, file_bytes, profile, entries,"
                      " created, last_used, uses, origin FROM images")),
        add_image(d.prepare("INSERT OR REPLACE INTO images (module, build, features, options, scope, generation,"
                            " file_bytes, profile, entries, created, last_used, uses, origin)"
                            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")),
        remove_image(d.prepare("DELETE FROM images WHERE id = ?")),
        touch_image(d.prepare("UPDATE images SET last_used = ?, uses = ? WHERE id = ?")),
        set_image_origin(d.prepare("UPDATE images SET origin = ? WHERE id = ?")),
        find_file(d.prepare("SELECT digest FROM files WHERE file_system = ? AND device = ? AND inode = ?"
                            " AND scope IN (-1, ?) AND size = ? AND modified = ? AND changed = ?")),
        remember_file(d.prepare("INSERT OR REPLACE INTO files (file_system, device, inode, scope, size, modified,"
                                " changed, digest, seen) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")),
        add_module(d.prepare("INSERT INTO modules (digest, bytes, everyone) VALUES (?, ?, ?)"
                             " ON CONFLICT DO UPDATE SET everyone = everyone OR excluded.everyone")),
        prove(d.prepare("INSERT OR REPLACE INTO proofs (module, uid, name, seen) VALUES (?, ?, ?, ?)")),
        provers(d.prepare("SELECT uid FROM proofs WHERE module = ?")),
        module(d.prepare("SELECT bytes, everyone, (SELECT name FROM proofs WHERE module = digest LIMIT 1),"
                         " (SELECT max(seen) FROM proofs WHERE module = digest) FROM modules WHERE digest = ?")),
        proofs(
            d.prepare("SELECT uid, digest, bytes, everyone, name, seen FROM proofs JOIN modules ON module = digest")),
        note_use(
            d.prepare("INSERT OR REPLACE INTO uses (uid, program, device, inode, size, modified, changed, module,"
                      " seen) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")),
        uses(d.prepare(
            "SELECT device, inode, size, modified, changed, module, seen FROM uses WHERE uid = ? AND program = ?"
            " ORDER BY seen DESC LIMIT ?")),
        entries(d.prepare("SELECT uid, offsets FROM entries WHERE module = ?")),
        save_entries(d.prepare("INSERT OR REPLACE INTO entries (module, uid, offsets, seen) VALUES (?, ?, ?, ?)")),
        oldest_entries(d.prepare("SELECT module FROM entries WHERE uid = ? ORDER BY seen LIMIT 1")),
        remove_entries(d.prepare("DELETE FROM entries WHERE module = ? AND uid = ?")),
        entry_counts(d.prepare("SELECT uid, sum(length(offsets)) / 4 FROM entries GROUP BY uid")),
        failure(
            d.prepare("SELECT count, retry_at, reason FROM failures WHERE module = ? AND build = ? AND features = ?"
                      " AND options = ? AND scope = ?")),
        save_failure(d.prepare("INSERT OR REPLACE INTO failures (module, build, features, options, scope, count,"
                               " retry_at, reason) VALUES (?, ?, ?, ?, ?, ?, ?, ?)")),
        clear_failure(d.prepare("DELETE FROM failures WHERE module = ? AND build = ? AND features = ? AND options = ?"
                                " AND scope = ?")) {}

  Statement images, add_image, remove_image, touch_image, set_image_origin, find_file, remember_file, add_module,
      prove, provers, module, proofs, note_use, uses, entries, save_entries, oldest_entries, remove_entries,
      entry_counts, failure, save_failure, clear_failure;
};

Store::Store() = default;

Store::~Store() { close(); }

// Does `work`; what goes wrong in it is logged, and remembered if the index is to blame.
template <typename Work>
void Store::guard(const char* what, Work work) {
  if (!statements_ || damaged_) return;
  try {
    work(*statements_);
  } catch (const SqliteError& error) {
    log(LogLevel::kError, std::string("index: ") + what + ": " + error.what());
    damaged_ = error.damaged();
  }
}

std::string Store::open(const std::string& folder) {
  folder_ = folder;
  try {
    return open_index();
  } catch (const SqliteError& error) {
    if (!error.damaged()) return folder_ + "/index.sqlite: " + error.what();
    log(LogLevel::kWarning, folder_ + "/index.sqlite is damaged (" + error.what() + "); beginning a new one");
  }
  return start_anew();
}

std::string Store::start_anew() {
  set_aside();
  try {
    return open_index();
  } catch (const SqliteError& error) {
    return folder_ + "/index.sqlite: " + error.what();
  }
}

std::string Store::open_index() {
  database_.open(folder_ + "/index.sqlite");
  // Of a power failure in WAL mode, NORMAL loses the last transactions at most; images are found again then.
  database_.run("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA journal_size_limit = 16777216");
  int64_t version = 0;
  {
    Statement question = database_.prepare("PRAGMA user_version");
    if (question.row()) version = question.integer(0);
    Statement check = database_.prepare("PRAGMA quick_check(1)");
    if (!check.row() || check.text(0) != "ok") throw SqliteError(SQLITE_CORRUPT, check.text(0));
    Statement tables = database_.prepare("SELECT count(*) FROM sqlite_master");
    const bool empty = tables.row() && tables.integer(0) == 0;
    if (empty) version = 0;
    if (!empty && version != kSchemaVersion) {
      throw SqliteError(SQLITE_CORRUPT,
                        "version " + std::to_string(version) + ", this one is " + std::to_string(kSchemaVersion));
    }
  }
  fresh_ = version == 0;
  if (fresh_) {
    database_.run("BEGIN");
    database_.run(kSchema);
    database_.run(("PRAGMA user_version = " + std::to_string(kSchemaVersion)).c_str());
    database_.run("COMMIT");
  }
  statements_ = std::make_unique<Statements>(database_);
  damaged_ = false;
  return {};
}

void Store::set_aside() {
  statements_.reset();
  database_.close();
  writing_ = false;
  for (const char* suffix : kSuffixes) {
    const std::string path = folder_ + "/index.sqlite" + suffix;
    rename(path.c_str(), (folder_ + "/index.sqlite.damaged" + suffix).c_str());
  }
}

void Store::close() {
  if (!statements_) return;
  commit();
  statements_.reset();
  database_.close();
}

void Store::begin() {
  if (!writing_) database_.run("BEGIN");
  writing_ = true;
}

void Store::commit() {
  if (!writing_) return;
  guard("commit", [this](Statements&) {
    writing_ = false;
    try {
      database_.run("COMMIT");
    } catch (const SqliteError&) {
      // A full disk, say: what was collected is lost, later writes may succeed.
      sqlite3_exec(database_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
      throw;
    }
  });
}

std::vector<ImageRow> Store::images() {
  std::vector<ImageRow> rows;
  guard("images", [&](Statements& s) {
    for (s.images(); s.images.row();) {
      ImageRow& row = rows.emplace_back();
      row.id = s.images.integer(0);
      row.key.module = digest_column(s.images, 1);
      row.key.build = digest_column(s.images, 2);
      row.key.features = static_cast<uint32_t>(s.images.integer(3));
      row.key.options = static_cast<uint32_t>(s.images.integer(4));
      row.key.scope = s.images.integer(5);
      row.generation = s.images.integer(6);
      row.file_bytes = s.images.number(7);
      row.profile = s.images.number(8);
      row.entries = s.images.number(9);
      row.created = s.images.integer(10);
      row.last_used = s.images.integer(11);
      row.uses = s.images.integer(12);
      row.origin = static_cast<ImageOrigin>(s.images.integer(13));
    }
  });
  return rows;
}

int64_t Store::add_image(const ImageRow& row) {
  int64_t id = 0;
  guard("adding an image", [&](Statements& s) {
    begin();
    s.add_image(row.key.module, row.key.build, row.key.features, row.key.options, row.key.scope, row.generation,
                row.file_bytes, row.profile, row.entries, row.created, row.last_used, row.uses,
                static_cast<int>(row.origin))
        .run();
    id = database_.last_row();
  });
  commit();
  return damaged_ ? 0 : id;
}

void Store::remove_image(int64_t id) {
  guard("removing an image", [&](Statements& s) {
    begin();
    s.remove_image(id).run();
  });
}

void Store::touch_image(const ImageRow& row) {
  guard("use of an image", [&](Statements& s) {
    begin();
    s.touch_image(row.last_used, row.uses, row.id).run();
  });
}

void Store::set_image_origin(const ImageRow& row) {
  guard("origin of an image", [&](Statements& s) {
    begin();
    s.set_image_origin(static_cast<int>(row.origin), row.id).run();
  });
}

std::optional<Digest> Store::find_file(const Digest& file_system, const proto::FileKey& key, Scope user) {
  std::optional<Digest> digest;
  guard("files", [&](Statements& s) {
    s.find_file(file_system, key.device, key.inode, user, key.size, key.modified_ns, key.changed_ns);
    while (s.find_file.row()) digest = digest_column(s.find_file, 0);
  });
  return digest;
}

void Store::remember_file(const Digest& file_system, const proto::FileKey& key, Scope scope, const Digest& digest) {
  guard("remembering a file", [&](Statements& s) {
    begin();
    s.remember_file(file_system, key.device, key.inode, scope, key.size, key.modified_ns, key.changed_ns, digest,
                    now())
        .run();
  });
}

void Store::prove(Scope user, const ModuleRow& module) {
  guard("proofs", [&](Statements& s) {
    begin();
    s.add_module(module.digest, module.bytes, module.everyone ? 1 : 0).run();
    s.prove(module.digest, user, module.name, now()).run();
  });
}

std::vector<Scope> Store::provers(const Digest& module) {
  std::vector<Scope> users;
  guard("proofs", [&](Statements& s) {
    for (s.provers(module); s.provers.row();) users.push_back(s.provers.integer(0));
  });
  return users;
}

std::optional<ModuleRow> Store::module(const Digest& digest) {
  std::optional<ModuleRow> row;
  guard("modules", [&](Statements& s) {
    for (s.module(digest); s.module.row();) {
      row = {digest, s.module.number(0), s.module.integer(1) != 0, s.module.text(2), s.module.integer(3)};
    }
  });
  return row;
}

std::vector<std::pair<Scope, ModuleRow>> Store::proofs() {
  std::vector<std::pair<Scope, ModuleRow>> rows;
  guard("proofs", [&](Statements& s) {
    for (s.proofs(); s.proofs.row();) {
      rows.push_back({s.proofs.integer(0),
                      {digest_column(s.proofs, 1), s.proofs.number(2), s.proofs.integer(3) != 0, s.proofs.text(4),
                       s.proofs.integer(5)}});
    }
  });
  return rows;
}

void Store::note_use(Scope user, const Digest& program, const proto::FileKey& file, const Digest& module) {
  guard("uses", [&](Statements& s) {
    begin();
    s.note_use(user, program, file.device, file.inode, file.size, file.modified_ns, file.changed_ns, module, now())
        .run();
  });
}

std::vector<FileUse> Store::uses(Scope user, const Digest& program) {
  std::vector<FileUse> rows;
  guard("uses", [&](Statements& s) {
    for (s.uses(user, program, kMaxUses); s.uses.row();) {
      rows.push_back({{s.uses.number(0), s.uses.number(1), s.uses.number(2), s.uses.integer(3), s.uses.integer(4)},
                      digest_column(s.uses, 5),
                      s.uses.integer(6)});
    }
  });
  return rows;
}

std::map<Scope, std::vector<uint32_t>> Store::entries(const Digest& module) {
  std::map<Scope, std::vector<uint32_t>> result;
  guard("entries", [&](Statements& s) {
    for (s.entries(module); s.entries.row();) {
      const std::string_view bytes = s.entries.blob(1);
      std::vector<uint32_t>& offsets = result[s.entries.integer(0)];
      offsets.resize(bytes.size() / sizeof(uint32_t));
      if (!offsets.empty()) memcpy(offsets.data(), bytes.data(), offsets.size() * sizeof(uint32_t));
    }
  });
  return result;
}

void Store::save_entries(const Digest& module, Scope user, const std::vector<uint32_t>& offsets) {
  guard("saving entries", [&](Statements& s) {
    begin();
    s.save_entries(module, user, Blob{offsets.data(), offsets.size() * sizeof(uint32_t)}, now()).run();
  });
}

std::map<Scope, uint64_t> Store::entry_counts() {
  std::map<Scope, uint64_t> counts;
  guard("entries", [&](Statements& s) {
    for (s.entry_counts(); s.entry_counts.row();) counts[s.entry_counts.integer(0)] = s.entry_counts.number(1);
  });
  return counts;
}

std::optional<Digest> Store::oldest_entries(Scope user) {
  std::optional<Digest> module;
  guard("entries", [&](Statements& s) {
    for (s.oldest_entries(user); s.oldest_entries.row();) module = digest_column(s.oldest_entries, 0);
  });
  return module;
}

void Store::remove_entries(const Digest& module, Scope user) {
  guard("entries", [&](Statements& s) {
    begin();
    s.remove_entries(module, user).run();
  });
}

std::optional<Failure> Store::failure(const ImageKey& key) {
  std::optional<Failure> result;
  guard("failures", [&](Statements& s) {
    for (s.failure(key.module, key.build, key.features, key.options, key.scope); s.failure.row();) {
      result = {s.failure.integer(0), s.failure.integer(1), s.failure.text(2)};
    }
  });
  return result;
}

void Store::save_failure(const ImageKey& key, const Failure& failure) {
  guard("failures", [&](Statements& s) {
    begin();
    s.save_failure(key.module, key.build, key.features, key.options, key.scope, failure.count, failure.retry_at,
                   failure.reason)
        .run();
  });
}

void Store::clear_failure(const ImageKey& key) {
  guard("failures", [&](Statements& s) {
    begin();
    s.clear_failure(key.module, key.build, key.features, key.options, key.scope).run();
  });
}

void Store::clear_failures() {
  guard("failures", [&](Statements&) {
    begin();
    database_.run("DELETE FROM failures");
  });
}

void Store::forget_before(int64_t time) {
  guard("forgetting", [&](Statements&) {
    begin();
    for (const char* table : {"files", "uses", "entries", "proofs"}) {
      database_.run(("DELETE FROM " + std::string(table) + " WHERE seen < " + std::to_string(time)).c_str());
    }
    database_.run("DELETE FROM modules WHERE digest NOT IN (SELECT module FROM proofs)");
  });
}

}  // namespace phybin::daemon
