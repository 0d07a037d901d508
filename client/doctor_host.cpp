// The checks of CPU and kernel: features, version, page size, sysctls.
#include <algorithm>
#include <cstring>

#include "client/doctor.h"
#include "client/format.h"

namespace phybin::client {
namespace {

struct FeatureUse {
  const char* name;  // as /proc/cpuinfo has it (HWCAP)
  const char* serves;
};

// Translations need these.
constexpr const char* kFloor[] = {"fp", "asimd"};
// Worth a warning where they are missing: helpers stand in for them.
constexpr FeatureUse kWished[] = {
    {"crc32", "CRC32 instructions"}, {"aes", "AES instructions"},      {"pmull", "PCLMULQDQ"},
    {"sha1", "SHA-1 instructions"},  {"sha2", "SHA-256 instructions"},
};
// Used where they are there; older machines lack them, and nothing is wrong with that.
constexpr const char* kExtras[] = {"atomics", "lrcpc", "ilrcpc", "uscat", "flagm", "flagm2", "frint"};

bool has(const std::vector<std::string>& names, const char* name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
  return text;
}

constexpr const char kAuxiliary[] = "/proc/self/auxv";
constexpr uint64_t kAtPageSize = 6;  // AT_PAGESZ

struct Sysctl {
  const char* name;
  uint64_t value;
  bool exact;  // else a greater one is as good
  const char* without;
};

// As etc/sysctl.conf sets them.
constexpr Sysctl kSysctls[] = {
    {"vm.max_map_count", 2147483642, false, "programs with many mappings fail with ENOMEM"},
    {"vm.overcommit_memory", 1, true, "programs that reserve much memory fail with ENOMEM"},
    {"kernel.pid_max", 4194303, false, "machines with many processes and threads run out of ids"},
};

}  // namespace

void check_cpu(const Patient& patient, Findings& findings) {
  const std::optional<std::string> text = patient.host.read("/proc/cpuinfo");
  if (!text) return findings.warn("cpu", "/proc/cpuinfo cannot be read", "mount /proc");
  // What every CPU has: a program may run on any of them.
  std::vector<std::string> common;
  size_t cpus = 0;
  for (const std::string& whole : split_lines(*text)) {
    const std::string_view line = whole;
    const size_t colon = line.find(':');
    if (colon == line.npos || trim(line.substr(0, colon)) != "Features") continue;
    const std::vector<std::string> names = split_words(line.substr(colon + 1));
    if (cpus++ == 0) {
      common = names;
    } else {
      std::erase_if(common, [&](const std::string& name) { return !has(names, name.c_str()); });
    }
  }
  if (cpus == 0) {
    return findings.fail("cpu", "this is not an ARM64 machine: /proc/cpuinfo lists no 'Features'",
                         "PhyBin runs on ARM64; x86_64 programs need no help on x86_64");
  }
  std::vector<std::string> missing, used;
  for (const char* name : kFloor) {
    if (has(common, name)) {
      used.emplace_back(name);
    } else {
      missing.emplace_back(name);
    }
  }
  if (!missing.empty()) {
    return findings.fail("cpu", "the CPU lacks " + joined(missing), "no x86_64 program can run; use another machine");
  }
  std::string slow;
  for (const FeatureUse& wish : kWished) {
    if (has(common, wish.name)) {
      used.emplace_back(wish.name);
    } else {
      missing.emplace_back(wish.name);
      slow += (slow.empty() ? "" : ", ") + std::string(wish.serves);
    }
  }
  for (const char* name : kExtras) {
    if (has(common, name)) used.emplace_back(name);
  }
  const std::string have = std::to_string(cpus) + " CPUs with " + joined(used);
  if (missing.empty()) return findings.ok("cpu", have);
  findings.warn("cpu", have + "; without " + joined(missing),
                "nothing is to be done, but these of x86_64 are slow here: " + slow);
}

void check_kernel(const Patient& patient, Findings& findings) {
  const std::optional<std::string> release = patient.host.line("/proc/sys/kernel/osrelease");
  if (!release) return findings.warn("kernel", "the version cannot be read", "mount /proc");
  unsigned major = 0, minor = 0;
  if (sscanf(release->c_str(), "%u.%u", &major, &minor) != 2) {
    return findings.warn("kernel", "version '" + *release + "' is not understood", "4.19 or newer is needed");
  }
  if (major < 4 || (major == 4 && minor < 19)) {
    return findings.fail("kernel", "Linux " + *release + " is older than 4.19", "install a newer kernel");
  }
  findings.ok("kernel", "Linux " + *release);
}

void check_page_size(const Patient& patient, Findings& findings) {
  const std::optional<std::string> vector = patient.host.read(kAuxiliary);
  uint64_t size = 0;
  if (vector) {
    uint64_t pair[2];
    for (size_t at = 0; at + sizeof pair <= vector->size(); at += sizeof pair) {
      memcpy(pair, vector->data() + at, sizeof pair);
      if (pair[0] == kAtPageSize) size = pair[1];
    }
  }
  if (size == 0) return findings.warn("page-size", "cannot be told", std::string(kAuxiliary) + " is missing");
  const std::string text = format_bytes(size) + " pages";
  if (size == 4096) return findings.ok("page-size", text);
  findings.fail("page-size", text + " are not supported yet",
                "boot a kernel with 4 KiB pages (CONFIG_ARM64_4K_PAGES)");
}

void check_sysctls(const Patient& patient, Findings& findings) {
  for (const Sysctl& wish : kSysctls) {
    std::string path = "/proc/sys/" + std::string(wish.name);
    std::replace(path.begin() + 10, path.end(), '.', '/');
    const std::optional<uint64_t> value = patient.host.number(path);
    const std::string wished = std::to_string(wish.value);
    if (!value) {
      findings.warn(wish.name, "cannot be read", "it should be " + wished);
    } else if (*value == wish.value || (!wish.exact && *value > wish.value)) {
      findings.ok(wish.name, std::to_string(*value));
    } else {
      findings.warn(wish.name, "is " + std::to_string(*value) + ", so " + wish.without,
                    "sysctl -w " + std::string(wish.name) + "=" + wished +
                        ", and see that nothing overrides /usr/lib/sysctl.d/50-phybin.conf");
    }
  }
}

}  // namespace phybin::client
