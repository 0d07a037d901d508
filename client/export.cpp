// phybinctl cache export. The daemon says what there is and opens it; the archive is written here, as the user who
// asked. Everything is read twice: once for the digests in the manifest, which stands in front, and once to be
// copied.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <optional>

#include "client/archive.h"
#include "client/commands.h"
#include "client/digest.h"
#include "client/format.h"
#include "client/module.h"
#include "client/progress.h"

namespace phybin::client {
namespace {

struct Source {
  Json request;  // that gives the descriptor
  std::string what;
  uint64_t bytes = 0;
  std::string sha256;
};

class Export {
 public:
  Export(Connection& connection, std::vector<Source> sources)
      : connection_(connection), sources_(std::move(sources)) {
    for (const Source& source : sources_) total_ += 2 * source.bytes;
  }

  // Each returns a status; `error` says what went wrong.
  int hash_all() {
    for (Source& source : sources_) {
      Sha256 hash;
      const int code = each_piece(source, [&](const char* data, size_t bytes) {
        hash.add(data, bytes);
        return true;
      });
      if (code != kSuccess) return code;
      source.sha256 = hash.finish();
    }
    return kSuccess;
  }
  int copy_all(int file) {
    for (Source& source : sources_) {
      Sha256 hash;
      const int code = each_piece(source, [&](const char* data, size_t bytes) {
        hash.add(data, bytes);
        return write_piece(file, data, bytes);
      });
      if (code != kSuccess) return code;
      if (hash.finish() != source.sha256) {
        error = source.what + " has changed meanwhile; try again";
        return kFailure;
      }
    }
    return kSuccess;
  }
  bool write_piece(int file, const char* data, size_t bytes) {
    while (bytes != 0) {
      const ssize_t count = write(file, data, bytes);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) {
        error = strerror(errno);
        return false;
      }
      data += count;
      bytes -= static_cast<size_t>(count);
    }
    return true;
  }

  const std::vector<Source>& sources() const { return sources_; }
  std::string error;

 private:
  template <typename Take>
  int each_piece(const Source& source, Take take) {
    Answer answer = connection_.ask(source.request);
    if (answer.status == kSuccess && answer.descriptors.size() != 1) {
      answer.status = kFailure;
      answer.error = source.what + ": the daemon sent no file";
    }
    if (answer.status != kSuccess) {
      error = answer.error;
      return answer.status;
    }
    std::vector<char> buffer(1 << 20);
    uint64_t done = 0;
    for (;;) {
      const ssize_t count =
          pread(answer.descriptors[0].get(), buffer.data(), buffer.size(), static_cast<off_t>(done));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 || (count == 0 && done != source.bytes)) {
        error = source.what + ": " + (count < 0 ? strerror(errno) : "it has another size than the daemon said");
        return kFailure;
      }
      if (count == 0) return kSuccess;
      done += static_cast<uint64_t>(count);
      done_ += static_cast<uint64_t>(count);
      if (done > source.bytes) {
        error = source.what + " has changed meanwhile; try again";
        return kFailure;
      }
      if (!take(buffer.data(), static_cast<size_t>(count))) return kFailure;
      progress_.show(done_, total_, source.what);
    }
  }

  Connection& connection_;
  std::vector<Source> sources_;
  Progress progress_{"exporting", true};
  uint64_t done_ = 0, total_ = 0;
};

// Takes the members that go into the manifest; the digest is filled in later.
Json manifest_entry(const Json& listed, std::initializer_list<const char*> names) {
  Json entry;
  for (const char* name : names) entry[name] = member(listed, name);
  return entry;
}

}  // namespace

int run_cache_export(const Arguments& arguments) {
  const std::string& name = arguments.operands[0];
  std::optional<KeyPair> key;
  std::string error;
  if (arguments.has("--key")) {
    key.emplace();
    if (!read_secret_key(arguments.get("--key"), *key, error)) return failure(error);
  }
  Connection connection;
  if (const int code = connection.open(arguments, error); code != kSuccess) {
    failure(error);
    return code;
  }
  Json request{{"request", "cache-export"}};
  add_module(arguments, request);
  const Answer list = connection.ask(request);
  if (list.status != kSuccess) {
    failure(list.error);
    return list.status;
  }
  Json profiles = Json::array(), images = Json::array();
  std::vector<Source> sources;
  for (const Json& each : member(list.body, "profiles")) {
    profiles.push_back(manifest_entry(each, {"module", "module_sha256", "bytes"}));
    sources.push_back({{{"request", "cache-export-profile"}, {"module_sha256", member(each, "module_sha256")}},
                       "profile of " + text(each, "module"),
                       number(each, "bytes"),
                       {}});
  }
  if (!arguments.has("--profiles-only")) {
    for (const Json& each : member(list.body, "images")) {
      Json entry = manifest_entry(
          each, {"module", "module_sha256", "translator_build", "host_features", "code_options", "bytes"});
      entry["profile"] = nullptr;
      for (size_t i = 0; flag(each, "of_profile") && i != profiles.size(); ++i) {
        if (profiles[i]["module_sha256"] == entry["module_sha256"]) entry["profile"] = i;
      }
      images.push_back(std::move(entry));
      sources.push_back({{{"request", "cache-export-image"}, {"id", number(each, "id")}},
                         "image of " + text(each, "module"),
                         number(each, "bytes"),
                         {}});
    }
  }
  const size_t image_count = images.size(), profile_count = profiles.size();
  if (image_count + profile_count == 0) return failure("there is nothing to export");

  // Under another name until it is whole: FILE is never half an archive.
  const std::string temporary = name + ".part";
  Descriptor file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file) return failure(temporary + ": " + strerror(errno));
  Export work(connection, std::move(sources));
  int code = work.hash_all();
  uint64_t bytes = 0;
  if (code == kSuccess) {
    for (size_t i = 0; i != work.sources().size(); ++i) {
      Json& entry = i < profile_count ? profiles[i] : images[i - profile_count];
      entry["sha256"] = work.sources()[i].sha256;
      bytes += work.sources()[i].bytes;
    }
    const Json manifest{{"format", 1},
                        {"made_by", "phybinctl " PHYBIN_VERSION},
                        {"made_at", time(nullptr)},
                        {"profiles", std::move(profiles)},
                        {"images", std::move(images)}};
    const std::string front = archive_front(manifest, key ? &*key : nullptr);
    bytes += front.size();
    code = work.write_piece(file.get(), front.data(), front.size()) ? work.copy_all(file.get()) : kFailure;
  }
  if (code == kSuccess && (fsync(file.get()) != 0 || rename(temporary.c_str(), name.c_str()) != 0)) {
    work.error = name + ": " + strerror(errno);
    code = kFailure;
  }
  if (code != kSuccess) {
    unlink(temporary.c_str());
    failure(work.error);
    return code;
  }
  if (arguments.has("--json")) {
    print_json({{"file", name},
                {"images", image_count},
                {"profiles", profile_count},
                {"bytes", bytes},
                {"signed", key.has_value()}});
  } else {
    print(std::to_string(image_count) + " images and " + std::to_string(profile_count) + " profiles, " +
          format_bytes(bytes) + (key ? ", signed\n" : ", not signed: images in it cannot be imported\n"));
  }
  return kSuccess;
}

}  // namespace phybin::client
