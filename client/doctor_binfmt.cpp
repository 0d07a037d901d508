// The check of binfmt_misc: is there an entry that has the kernel start PhyBin for x86_64 programs, as the package
// makes it, and no other one that would be asked first?
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "client/doctor.h"

namespace phybin::client {
namespace {

constexpr const char kFolder[] = "/proc/sys/fs/binfmt_misc";
constexpr const char kEntry[] = "x86_64-arm64";
constexpr const char kInterpreter[] = "/usr/lib/phybin/phybin-binfmt-P";
constexpr const char kRegister[] =
    "update-binfmts --import /usr/share/phybin/x86_64-arm64, or systemctl restart systemd-binfmt";

struct Flag {
  char name;
  const char* without;
};
constexpr Flag kFlags[] = {
    {'P', "programs see another argv[0] than they were given"},
    {'O', "programs that may be executed but not read do not run"},
    {'C', "set-uid programs lose their rights"},
    {'F', "containers and chroots do not find the worker"},
};

struct Entry {
  bool enabled = false;
  std::string interpreter, flags;
  size_t offset = 0;
  std::string magic, mask;  // bytes; no magic: it goes by the file's name
};

std::string unhex(std::string_view text) {
  std::string bytes;
  const auto value = [](char c) { return c <= '9' ? c - '0' : (c | 32) - 'a' + 10; };
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<char>(value(text[i]) << 4 | value(text[i + 1])));
  }
  return bytes;
}

// As the kernel shows an entry: a line "enabled" or "disabled", then "NAME VALUE" lines.
Entry parse_entry(std::string_view text) {
  Entry entry;
  for (const std::string& whole : split_lines(text)) {
    const std::string_view line = whole;
    const size_t space = std::min(line.find(' '), line.size());
    const std::string_view name = line.substr(0, space), value = trim(line.substr(space));
    if (name == "enabled") entry.enabled = true;
    if (name == "interpreter") entry.interpreter = value;
    if (name == "flags:") entry.flags = value;
    if (name == "offset") entry.offset = parse_number(value).value_or(0);
    if (name == "magic") entry.magic = unhex(value);
    if (name == "mask") entry.mask = unhex(value);
  }
  return entry;
}

// Beginnings of x86_64 programs: ET_EXEC and ET_DYN, for System V and for GNU/Linux.
std::array<std::string, 4> program_headers() {
  std::array<std::string, 4> headers;
  size_t i = 0;
  for (const char type : {'\2', '\3'}) {
    for (const char abi : {'\0', '\3'}) {
      std::string& header = headers[i++];
      header.assign("\177ELF\2\1\1", 7);
      header.resize(64);
      header[7] = abi;
      header[16] = type;
      header[18] = 62;  // EM_X86_64
      header[20] = 1;
    }
  }
  return headers;
}

bool matches(const Entry& entry, const std::string& header) {
  if (entry.magic.empty() || entry.offset + entry.magic.size() > header.size()) return false;
  for (size_t i = 0; i < entry.magic.size(); ++i) {
    const auto mask = static_cast<uint8_t>(i < entry.mask.size() ? entry.mask[i] : '\xff');
    if (((entry.magic[i] ^ header[entry.offset + i]) & mask) != 0) return false;
  }
  return true;
}

bool in_container(const HostTree& host) {
  return host.exists("/.dockerenv") || host.exists("/run/.containerenv") || host.exists("/run/systemd/container");
}

void check_entry(const HostTree& host, const Entry& entry, Findings& findings) {
  if (!entry.enabled) {
    return findings.fail("binfmt", std::string("entry ") + kEntry + " is disabled",
                         std::string("echo 1 > ") + kFolder + "/" + kEntry);
  }
  if (entry.interpreter != kInterpreter) {
    return findings.fail("binfmt",
                         std::string("entry ") + kEntry + " starts " + entry.interpreter + ", not " + kInterpreter,
                         std::string("register it again: ") + kRegister);
  }
  if (!host.exists(kInterpreter)) {
    return findings.fail("binfmt", std::string(kInterpreter) + " does not exist", "install the package again");
  }
  for (const std::string& header : program_headers()) {
    if (matches(entry, header)) continue;
    return findings.fail("binfmt", std::string("entry ") + kEntry + " does not match all x86_64 programs",
                         std::string("register it again: ") + kRegister);
  }
  std::string missing, without;
  for (const Flag& flag : kFlags) {
    if (entry.flags.find(flag.name) != entry.flags.npos) continue;
    missing += flag.name;
    without += (without.empty() ? "" : ", ") + std::string(flag.without);
  }
  if (!missing.empty()) {
    return findings.fail("binfmt", std::string("entry ") + kEntry + " lacks the flags " + missing + ": " + without,
                         std::string("register it again: ") + kRegister);
  }
  findings.ok("binfmt", std::string(kEntry) + " starts " + kInterpreter + ", flags " + entry.flags);
}

void check_others(const HostTree& host, Findings& findings) {
  std::vector<std::string> others;
  for (const std::string& name : host.list(kFolder)) {
    if (name == kEntry || name == "register" || name == "status") continue;
    const std::optional<std::string> text = host.read(std::string(kFolder) + "/" + name);
    if (!text) continue;
    const Entry entry = parse_entry(*text);
    const auto headers = program_headers();
    const bool any = std::any_of(headers.begin(), headers.end(),
                                 [&](const std::string& header) { return matches(entry, header); });
    if (entry.enabled && any) others.push_back(name + " (" + entry.interpreter + ")");
  }
  if (others.empty()) return findings.ok("binfmt-others", "no other entry matches x86_64 programs");
  std::string list;
  for (const std::string& other : others) list += (list.empty() ? "" : ", ") + other;
  findings.fail("binfmt-others", "other entries match x86_64 programs too: " + list,
                "the one registered last is asked: remove them with update-binfmts --disable NAME, or echo -1 > " +
                    std::string(kFolder) + "/NAME");
}

}  // namespace

void check_binfmt(const Patient& patient, Findings& findings) {
  const HostTree& host = patient.host;
  const std::optional<std::string> status = host.line(std::string(kFolder) + "/status");
  if (!status) {
    if (in_container(host)) {
      return findings.warn("binfmt", "cannot be seen in this container",
                           "the entries of the host hold: run phybinctl doctor there");
    }
    return findings.fail("binfmt", std::string(kFolder) + " is not mounted",
                         std::string("modprobe binfmt_misc; mount -t binfmt_misc binfmt_misc ") + kFolder);
  }
  if (*status != "enabled") {
    return findings.fail("binfmt", "binfmt_misc is disabled", std::string("echo 1 > ") + kFolder + "/status");
  }
  const std::optional<std::string> text = host.read(std::string(kFolder) + "/" + kEntry);
  if (text) {
    check_entry(host, parse_entry(*text), findings);
  } else {
    findings.fail("binfmt", std::string("there is no entry ") + kEntry + ", so the kernel starts no x86_64 program",
                  kRegister);
  }
  check_others(host, findings);
}

}  // namespace phybin::client
