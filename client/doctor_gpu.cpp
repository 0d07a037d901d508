// The checks of AMD GPUs on ARM64 servers: what is known to go wrong there. Memory windows that the firmware leaves
// no room for, a driver that looks for displays on a machine without one, clocks that stay low, devices that users
// may not open.
#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <map>

#include "client/doctor.h"
#include "client/gpu_cards.h"
#include "client/kernel_log.h"

namespace phybin::client {
namespace {

constexpr char kNoGpu[] = "no AMD GPU";

// ---- PCI memory windows (BARs) in the kernel's log

constexpr const char* kBarProblems[] = {"no space for",    "failed to assign",     "can't assign",
                                        "can't claim",     "no compatible bridge", "address conflict",
                                        "bogus alignment", "can't allocate",       "no space"};

// "0000:03:00.0" in a line, or an empty string.
std::string pci_address(std::string_view line) {
  constexpr std::string_view kShape = "xxxx:xx:xx.x";
  for (size_t at = 0; at + kShape.size() <= line.size(); ++at) {
    bool fits = at == 0 || std::isxdigit(static_cast<unsigned char>(line[at - 1])) == 0;
    for (size_t i = 0; fits && i < kShape.size(); ++i) {
      const char c = line[at + i];
      fits = kShape[i] == 'x' ? std::isxdigit(static_cast<unsigned char>(c)) != 0 : c == kShape[i];
    }
    if (fits) return std::string(line.substr(at, kShape.size()));
  }
  return {};
}

// The number behind "BAR "; none if it is not about one.
std::optional<unsigned> bar_number(std::string_view line) {
  const size_t at = line.find("BAR ");
  if (at == line.npos || at + 4 >= line.size() || std::isdigit(static_cast<unsigned char>(line[at + 4])) == 0)
    return {};
  return static_cast<unsigned>(line[at + 4] - '0');
}

// The complaint that holds in the end of each window: the kernel tries several times, and may succeed at last.
std::map<std::pair<std::string, unsigned>, std::string> bar_complaints(const KernelLog& log) {
  std::map<std::pair<std::string, unsigned>, std::string> complaints;
  for (const std::string& line : log.lines) {
    const std::string address = pci_address(line);
    const std::optional<unsigned> bar = bar_number(line);
    if (address.empty() || !bar) continue;
    const auto is_in = [&](const char* words) { return line.find(words) != line.npos; };
    if (std::any_of(std::begin(kBarProblems), std::end(kBarProblems), is_in)) {
      complaints[{address, *bar}] = line.substr(line.find("BAR "));
    } else if (line.find("assigned") != line.npos) {
      complaints.erase({address, *bar});
    }
  }
  return complaints;
}

// ---- modprobe.d

constexpr const char* kModprobeFolders[] = {"/etc/modprobe.d", "/run/modprobe.d", "/usr/local/lib/modprobe.d",
                                            "/usr/lib/modprobe.d", "/lib/modprobe.d"};
constexpr std::string_view kOption = "virtual_display=";

struct Setting {
  std::string value, where;  // of the last one found
};

void scan_words(std::string_view line, std::string_view prefix, const std::string& where, Setting& setting) {
  for (const std::string& word : split_words(line)) {
    if (word.starts_with(prefix)) setting = {word.substr(prefix.size()), where};
  }
}

// As modprobe reads it: of files with the same name the first folder's counts, the rest is joined in order of names.
Setting configured_display(const HostTree& host) {
  std::map<std::string, std::string> files;
  for (const char* folder : kModprobeFolders) {
    for (const std::string& name : host.list(folder)) {
      if (name.ends_with(".conf")) files.emplace(name, std::string(folder) + "/" + name);
    }
  }
  Setting setting;
  for (const auto& [name, path] : files) {
    std::string text = host.read(path).value_or("");
    for (size_t at = 0; (at = text.find("\\\n", at)) != text.npos;) text.replace(at, 2, " ");
    for (const std::string& whole : split_lines(text)) {
      const std::string_view line = whole;
      const std::vector<std::string> words = split_words(line);
      if (words.size() > 2 && words[0] == "options" && words[1] == "amdgpu") scan_words(line, kOption, path, setting);
    }
  }
  // The kernel's own command line comes last.
  scan_words(host.read("/proc/cmdline").value_or(""), "amdgpu." + std::string(kOption), "/proc/cmdline", setting);
  return setting;
}

// ---- devices

std::string group_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return "render";
  const group* entry = getgrgid(status.st_gid);
  return entry != nullptr ? entry->gr_name : std::to_string(status.st_gid);
}

// Whether this user may use it. `needed`: nothing works without.
void check_device(const HostTree& host, const std::string& path, Findings& findings) {
  const std::string check = path.substr(1), real = host.at(path);
  if (faccessat(AT_FDCWD, real.c_str(), R_OK | W_OK, AT_EACCESS) == 0) {
    return findings.ok(check, path + " may be read and written");
  }
  if (errno == ENOENT) {
    return findings.fail(check, path + " does not exist", "modprobe amdgpu, and read the kernel's log");
  }
  const std::string reason = strerror(errno), owners = group_of(real);
  findings.fail(check, path + ": " + reason,
                owners == "root" ? "chgrp render " + path + " && chmod g+rw " + path + " (a udev rule keeps it so)"
                                 : "usermod -aG " + owners + " USER, and log in anew");
}

}  // namespace

void check_pci_bars(const Patient& patient, Findings& findings) {
  const KernelLog log = read_kernel_log(patient.host);
  if (log.lines.empty() && !log.problem.empty()) {
    return findings.warn("pci-bars", "the kernel's log cannot be read (" + log.problem + ")", "run it as root");
  }
  const auto complaints = bar_complaints(log);
  if (complaints.empty() && !log.problem.empty()) {
    return findings.warn("pci-bars", "no BAR error in the kernel's log, but " + log.problem,
                         "look at the log of the last start: journalctl -k -b");
  }
  if (complaints.empty()) return findings.ok("pci-bars", "no BAR error in the kernel's log");
  for (const auto& [key, complaint] : complaints) {
    const auto& [address, bar] = key;
    const std::optional<uint64_t> vendor = patient.host.number("/sys/bus/pci/devices/" + address + "/vendor");
    const bool memory = complaint.find("[io") == complaint.npos && bar < 6;  // 6: the expansion ROM
    const bool gpu = !vendor || *vendor == 0x1002;
    const std::string advice =
        "switch on \"Above 4G Decoding\" in the firmware, or start the kernel with pci=realloc";
    if (memory && gpu) {
      findings.fail("pci-bars", address + ": " + complaint, advice);
    } else {
      findings.warn("pci-bars", address + ": " + complaint,
                    memory ? advice : "harmless for computing: no driver needs this window");
    }
  }
}

void check_virtual_display(const Patient& patient, Findings& findings) {
  const std::string check = "amdgpu-virtual-display";
  if (!has_amd_gpu(patient.host)) return findings.ok(check, kNoGpu);
  const std::string line = "options amdgpu virtual_display=1";
  const Setting setting = configured_display(patient.host);
  if (setting.where.empty()) {
    return findings.warn(check, "virtual_display is not set, so the driver looks for displays that servers lack",
                         "echo '" + line + "' > /etc/modprobe.d/amdgpu.conf, update-initramfs -u, and reboot");
  }
  const std::string said = setting.where + " sets virtual_display=" + setting.value;
  // "1", or PCI addresses of cards ("0000:03:00.0,1"), or "all".
  if (setting.value.empty() || setting.value == "0") {
    return findings.warn(check, said, "servers without displays want there: " + line);
  }
  // What the driver that is loaded was told; "(null)" is nothing.
  const std::optional<std::string> loaded = patient.host.line("/sys/module/amdgpu/parameters/virtual_display");
  if (loaded && (loaded->empty() || *loaded == "(null)")) {
    return findings.warn(check, said + ", but the driver was loaded without", "update-initramfs -u, and reboot");
  }
  findings.ok(check, said);
}

void check_gpu_power(const Patient& patient, Findings& findings) {
  const std::string file = "/power_dpm_force_performance_level";
  bool any = false;
  for (const GpuCard& card : find_cards(patient.host)) {
    const std::optional<std::string> level = patient.host.line(card.folder + file);
    if (!card.is_amd() || !level) continue;
    any = true;
    const std::string check = "amdgpu-power-" + card.name;
    if (*level == "auto" || *level == "high") {
      findings.ok(check, "performance level " + *level);
    } else {
      findings.warn(check, "the performance level is " + *level + ", so the clocks do not follow the load",
                    "echo auto > " + card.folder + file + " (or high)");
    }
  }
  if (!any) findings.ok("amdgpu-power", has_amd_gpu(patient.host) ? "no card tells its performance level" : kNoGpu);
}

void check_gpu_access(const Patient& patient, Findings& findings) {
  const HostTree& host = patient.host;
  if (!host.exists("/sys/class/kfd")) {
    if (!has_amd_gpu(host)) return findings.ok("dev/kfd", kNoGpu);
    return findings.fail("dev/kfd", "there is an AMD GPU, but no compute driver (/sys/class/kfd)",
                         "modprobe amdgpu, and read the kernel's log");
  }
  check_device(host, "/dev/kfd", findings);
  bool any = false;
  for (const std::string& name : host.list("/dev/dri")) {
    if (!name.starts_with("renderD")) continue;
    any = true;
    check_device(host, "/dev/dri/" + name, findings);
  }
  if (!any) {
    findings.fail("dev/dri", "there is no /dev/dri/renderD*", "modprobe amdgpu, and read the kernel's log");
  }
}

}  // namespace phybin::client
