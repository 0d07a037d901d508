// The checks of the daemon: does it answer, is it of this package's version, can it keep translations?
#include "client/connection.h"
#include "client/doctor.h"
#include "client/format.h"

namespace phybin::client {
namespace {

// Images are at most some hundred megabytes; below that the next one may not fit.
constexpr uint64_t kLittleSpace = 512ull << 20;

void check_version(const Json& status, Findings& findings) {
  const std::string version = text(status, "version");
  if (version == PHYBIN_VERSION) return findings.ok("version", "phybinctl and phybind are " + version);
  findings.fail("version", "phybind is " + version + ", phybinctl " PHYBIN_VERSION,
                "systemctl restart phybind; running programs go on");
}

void check_cache(const Json& status, Findings& findings) {
  const Json& cache = member(status, "cache");
  const uint64_t bytes = number(cache, "bytes"), limit = number(cache, "limit_bytes");
  const std::string where = text(cache, "directory");
  const std::string size = format_bytes(bytes) + " of " + format_bytes(limit) + " in " + where;
  if (member(cache, "writable") == false) {
    return findings.fail("cache", where + " is not writable for the daemon",
                         "chown -R phybin:phybin " + where + ", and see that it is mounted read-write");
  }
  if (bytes > limit) {
    return findings.fail("cache", size + ": more than is allowed", "phybinctl cache purge, or raise cache_size");
  }
  const Json& free = member(cache, "free_bytes");
  if (free.is_number() && number(cache, "free_bytes") < kLittleSpace && bytes + kLittleSpace < limit) {
    return findings.warn("cache", "only " + format_bytes(number(cache, "free_bytes")) + " are free in " + where,
                         "make room, or lower cache_size in /etc/phybin.conf");
  }
  findings.ok("cache", size);
}

void check_compiler(const Json& status, Findings& findings) {
  if (member(status, "translator_build").is_string()) {
    return findings.ok("compiler", "images are made by " + text(status, "compiler"));
  }
  const std::string compiler = text(status, "compiler");
  findings.fail("compiler", compiler.empty() ? "the daemon finds no phybin" : compiler + " does not answer",
                "no images are made; install the package again and restart phybind");
}

}  // namespace

void check_daemon(const Patient& patient, Findings& findings) {
  Connection connection;
  std::string error;
  if (connection.open(patient.arguments, error) != kSuccess) {
    return findings.warn("daemon", error,
                         "programs run, with private translations only: systemctl enable --now phybind.socket");
  }
  const Answer answer = connection.ask({{"request", "status"}});
  if (answer.status != kSuccess) {
    return findings.fail("daemon", answer.error, "systemctl restart phybind; running programs go on");
  }
  findings.ok("daemon",
              text(answer.body, "socket") + " answers, process " + std::to_string(number(answer.body, "pid")));
  check_version(answer.body, findings);
  check_cache(answer.body, findings);
  check_compiler(answer.body, findings);
}

}  // namespace phybin::client
