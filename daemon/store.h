// What the daemon remembers, in CACHE/index.sqlite: which images there are, which files users have proved that they
// can read, the digests of those files, the entry points met in each module, and what could not be translated.
//
// Nothing in it is irreplaceable. A damaged index is set aside (index.sqlite.damaged) and begun anew, the images are
// then found again by their own headers. Errors are logged here; a question that cannot be answered is answered with
// "nothing known". Writes are collected in a transaction until commit(). Event thread only.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/digest.h"
#include "daemon/sqlite.h"
#include "proto/messages.h"

namespace phybin::daemon {

// Whom something serves: a user id, or everybody.
using Scope = int64_t;
inline constexpr Scope kEveryone = -1;

// What an image was made from and for, and whom it serves.
struct ImageKey {
  Digest module{}, build{};
  uint32_t features = 0, options = 0;
  Scope scope = kEveryone;

  auto operator<=>(const ImageKey&) const = default;  // NOLINT(modernize-use-nullptr)
};

// Where an image comes from. Kept in the index as a number.
enum class ImageOrigin : uint8_t { kMadeHere, kImported, kImportedAndChecked, kFoundAgain };

struct ImageRow {
  int64_t id = 0;
  ImageKey key;
  int64_t generation = 0;  // of images with this key, counting up
  uint64_t file_bytes = 0;
  uint64_t profile = 0;                // entry points that it was made with
  uint64_t entries = 0;                // that it has
  int64_t created = 0, last_used = 0;  // seconds since the epoch
  int64_t uses = 0;                    // times it was handed out
  ImageOrigin origin = ImageOrigin::kMadeHere;
};

struct Failure {
  int64_t count = 0;
  int64_t retry_at = 0;  // seconds since the epoch
  std::string reason;
};

// A module as users see it.
struct ModuleRow {
  Digest digest{};
  uint64_t bytes = 0;
  bool everyone = false;  // belongs to root and nobody else can change it
  std::string name;       // a path that it had
  int64_t last_seen = 0;
};

// A file that a program has mapped.
struct FileUse {
  proto::FileKey file{};
  Digest module{};
  int64_t seen = 0;
};

class Store {
 public:
  Store();
  ~Store();

  // Opens or begins the index in that folder. An empty string, or what is wrong.
  std::string open(const std::string& folder);
  void close();
  // The index had to be begun anew, so images that are there are missing in it.
  bool fresh() const { return fresh_; }
  // Found while working; start_anew() is called for then.
  bool damaged() const { return damaged_; }
  std::string start_anew();
  void commit();

  std::vector<ImageRow> images();
  // Adds the row, in place of one with the same key, for good (commits). The new id; 0: it failed.
  int64_t add_image(const ImageRow& row);
  void remove_image(int64_t id);
  void touch_image(const ImageRow& row);
  void set_image_origin(const ImageRow& row);

  // Digests by file; a row for everyone answers for all users.
  std::optional<Digest> find_file(const Digest& file_system, const proto::FileKey& key, Scope user);
  void remember_file(const Digest& file_system, const proto::FileKey& key, Scope scope, const Digest& digest);

  // A user has shown that he can read the module.
  void prove(Scope user, const ModuleRow& module);
  std::vector<Scope> provers(const Digest& module);
  std::optional<ModuleRow> module(const Digest& digest);
  std::vector<std::pair<Scope, ModuleRow>> proofs();

  // Files that a user's runs of a program have mapped.
  void note_use(Scope user, const Digest& program, const proto::FileKey& file, const Digest& module);
  std::vector<FileUse> uses(Scope user, const Digest& program);

  // Entry points of a module, ascending, by the user whose programs met them.
  std::map<Scope, std::vector<uint32_t>> entries(const Digest& module);
  void save_entries(const Digest& module, Scope user, const std::vector<uint32_t>& offsets);
  std::map<Scope, uint64_t> entry_counts();
  // Of the module in which this user has not met anything new for longest.
  std::optional<Digest> oldest_entries(Scope user);
  void remove_entries(const Digest& module, Scope user);

  std::optional<Failure> failure(const ImageKey& key);
  void save_failure(const ImageKey& key, const Failure& failure);
  void clear_failure(const ImageKey& key);
  void clear_failures();

  // Drops what has not been seen since then, in seconds since the epoch.
  void forget_before(int64_t time);

 private:
  struct Statements;

  std::string open_index();
  void set_aside();
  void begin();
  template <typename Work>
  void guard(const char* what, Work work);

  std::string folder_;
  Database database_;
  std::unique_ptr<Statements> statements_;
  bool fresh_ = false, damaged_ = false, writing_ = false;
};

}  // namespace phybin::daemon
