// phybinctl cache import. The whole archive is read and compared with its digests before the daemon hears of it; then
// its parts are handed over in sealed memory, and count only when all have arrived.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>

#include "client/archive.h"
#include "client/commands.h"
#include "client/format.h"
#include "client/progress.h"

namespace phybin::client {
namespace {

std::set<size_t> numbers(const Json& list) {
  std::set<size_t> result;
  for (const Json& each : list) {
    if (each.is_number_unsigned()) result.insert(each.get<size_t>());
  }
  return result;
}

int hand_over(Connection& connection, int file, const Archive& archive, const Json& begun, std::string& error) {
  const std::set<size_t> images = numbers(member(begun, "wanted_images"));
  const std::set<size_t> profiles = numbers(member(begun, "wanted_profiles"));
  Progress progress("importing", true);
  for (const ArchivePart& part : archive.parts) {
    progress.show(part.offset, archive.file_bytes, "");
    if ((part.is_image ? images : profiles).count(part.index) == 0) continue;
    const Descriptor copy = sealed_copy(file, part.offset, part.bytes);
    if (!copy) {
      error = std::string("a copy in memory: ") + strerror(errno);
      return kFailure;
    }
    const Answer answer = connection.ask({{"request", "cache-import-part"},
                                          {"token", member(begun, "token")},
                                          {part.is_image ? "image" : "profile", part.index}},
                                         {copy.get()});
    if (answer.status != kSuccess) {
      error = answer.error;
      return answer.status;
    }
  }
  return kSuccess;
}

}  // namespace

int run_cache_import(const Arguments& arguments) {
  const std::string& name = arguments.operands[0];
  const Descriptor file(open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) return failure(name + ": " + strerror(errno));
  Archive archive;
  std::string error;
  {
    Progress progress("checking", true);
    error = read_archive(file.get(), archive, [&](uint64_t done, uint64_t total) { progress.show(done, total, ""); });
  }
  if (!error.empty()) return failure(name + ": " + error);
  const bool has_images = !member(archive.manifest, "images").empty();
  bool images = has_images && !arguments.has("--profiles-only");
  if (images && !archive.has_signature) {
    return failure(name + ": it is not signed; only its profiles can be imported (--profiles-only)");
  }
  Connection connection;
  if (const int code = connection.open(arguments, error); code != kSuccess) {
    failure(error);
    return code;
  }
  const Descriptor manifest = sealed_text(archive.signed_text);
  if (!manifest) return failure(std::string("a copy in memory: ") + strerror(errno));
  Answer begun = connection.ask({{"request", "cache-import-begin"},
                                 {"manifest_bytes", archive.signed_text.size()},
                                 {"images", images},
                                 {"signature", archive.signature}},
                                {manifest.get()});
  if (begun.status == kSuccess) {
    begun.status = hand_over(connection, file.get(), archive, begun.body, begun.error);
  }
  if (begun.status != kSuccess) {
    failure(name + ": " + begun.error);
    return begun.status;
  }
  Answer done = connection.ask({{"request", "cache-import-commit"}, {"token", member(begun.body, "token")}});
  if (done.status != kSuccess) {
    failure(name + ": " + done.error);
    return done.status;
  }
  for (const char* kept : {"foreign", "present"}) done.body[kept] = number(begun.body, kept);
  if (arguments.has("--json")) {
    print_json(done.body);
    return kSuccess;
  }
  std::string text = std::to_string(number(done.body, "images")) + " images and " +
                     std::to_string(number(done.body, "profiles")) + " profiles imported (" +
                     std::to_string(number(done.body, "new_entry_points")) + " new entry points)";
  if (const uint64_t present = number(done.body, "present")) text += "; " + std::to_string(present) + " were there";
  if (const uint64_t foreign = number(done.body, "foreign")) {
    text += "; " + std::to_string(foreign) + " left out, of another translator";
  }
  if (const uint64_t checks = number(done.body, "spot_checks")) {
    text += "; " + std::to_string(checks) + " are being translated again to compare them";
  }
  print(text + "\n");
  return kSuccess;
}

}  // namespace phybin::client
