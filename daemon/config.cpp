// See config.h.
#include "daemon/config.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

#include "proto/config_keys.h"

namespace phybin::daemon {
namespace {

struct Key {
  const char* name;
  const char* allowed;
  const char* preset;
  const char* help;
  bool (*set)(Config&, std::string_view);  // false: not allowed, nothing is changed
};

std::optional<uint64_t> parse_number(std::string_view text, uint64_t low, uint64_t high) {
  if (text.empty() || text.size() > 19) return std::nullopt;
  uint64_t value = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + static_cast<uint64_t>(c - '0');
  }
  if (value < low || value > high) return std::nullopt;
  return value;
}

// Bytes, with an optional suffix K, M, G or T.
std::optional<uint64_t> parse_size(std::string_view text, uint64_t low, uint64_t high) {
  constexpr std::string_view kSuffixes = "KMGT";
  unsigned shift = 0;
  if (!text.empty()) {
    const size_t suffix = kSuffixes.find(static_cast<char>(text.back() & ~0x20));
    if (suffix != kSuffixes.npos) {
      shift = 10 * static_cast<unsigned>(suffix + 1);
      text.remove_suffix(1);
    }
  }
  auto value = parse_number(text, 0, high >> shift);
  if (!value || *value << shift < low) return std::nullopt;
  return *value << shift;
}

template <auto Member, uint64_t Low, uint64_t High>
bool set_size(Config& config, std::string_view text) {
  auto value = parse_size(text, Low, High);
  if (value) config.*Member = *value;
  return value.has_value();
}

template <auto Member, uint64_t Low, uint64_t High>
bool set_number(Config& config, std::string_view text) {
  auto value = parse_number(text, Low, High);
  if (value) config.*Member = static_cast<std::remove_reference_t<decltype(config.*Member)>>(*value);
  return value.has_value();
}

bool set_cache_dir(Config& config, std::string_view text) {
  if (text.empty() || text[0] != '/') return false;
  config.cache_dir = text;
  return true;
}

bool set_compile_memory(Config& config, std::string_view text) {
  if (text == "unlimited") {
    config.compile_memory = 0;
    return true;
  }
  return set_size<&Config::compile_memory, (64ull << 20), (1ull << 44)>(config, text);
}

bool set_log_level(Config& config, std::string_view text) {
  constexpr std::string_view kLevels[] = {"error", "warning", "info", "debug"};
  const auto* found = std::find(std::begin(kLevels), std::end(kLevels), text);
  if (found == std::end(kLevels)) return false;
  config.log_level = static_cast<LogLevel>(found - std::begin(kLevels));
  return true;
}

// proto/config_keys.h names the same keys, for the worker.
constexpr Key kKeys[] = {
    {"cache_dir", "an absolute path", "/var/cache/phybin", "where index and images are kept (read at start)",
     set_cache_dir},
    {"cache_size", "1M to 16T", "4G", "images beyond this are evicted, those unused for longest first",
     set_size<&Config::cache_size, (1ull << 20), (16ull << 40)>},
    {"user_cache_size", "1M to 16T", "1G", "what of this the images may take that serve a single user, each user",
     set_size<&Config::user_cache_size, (1ull << 20), (16ull << 40)>},
    {"compile_jobs", "1 to 256", "an eighth of the CPUs", "images made at the same time",
     set_number<&Config::compile_jobs, 1, 256>},
    {"compile_memory", "64M to 16T or unlimited", "4G", "address space of the process that makes an image",
     set_compile_memory},
    {"compile_time", "1 to 86400", "600", "seconds that making an image may take",
     set_number<&Config::compile_time, 1, 86400>},
    {"module_size", "64K to 4095M", "1G", "largest file that an image is made of",
     set_size<&Config::module_size, (64ull << 10), (4095ull << 20)>},
    {"profile_size", "1024 to 1000000000", "4194304", "entry points that are remembered of each user",
     set_number<&Config::profile_size, 1024, 1000000000>},
    {"log_level", "error, warning, info, debug", "info", "what is logged", set_log_level},
};

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

}  // namespace

Config default_config() {
  Config config;
  cpu_set_t cpus;
  const int count = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
  config.compile_jobs = static_cast<unsigned>(std::max(1, count / 8));
  return config;
}

void apply_config(std::string_view text, std::string_view file_name, Config& config, Messages& messages) {
  unsigned number = 0;
  for (size_t position = 0; position < text.size();) {
    const size_t end = std::min(text.find('\n', position), text.size());
    std::string_view line = text.substr(position, end - position);
    line = trim(proto::without_comment(line));
    position = end + 1;
    ++number;
    if (line.empty()) continue;
    if (line[0] == '[') return;  // sections are the worker's, and go on to the end of the file
    const size_t equals = line.find('=');
    if (equals == line.npos) continue;
    const std::string_view name = trim(line.substr(0, equals)), value = trim(line.substr(equals + 1));
    for (const Key& key : kKeys) {
      if (name != key.name || key.set(config, value)) continue;
      messages.push_back(std::string(file_name) + ":" + std::to_string(number) + ": " + key.name + ": '" +
                         printable(value) + "' is not allowed; allowed: " + key.allowed + "; using " + key.preset);
    }
  }
}

Config load_config(const std::string& file_name, bool required, Messages& messages) {
  Config config = default_config();
  errno = 0;
  std::ifstream file(file_name);
  if (!file) {
    if (required || (errno != ENOENT && errno != ENOTDIR)) {
      messages.push_back(file_name + ": " + strerror(errno) + "; using the defaults");
    }
    return config;
  }
  std::ostringstream text;
  text << file.rdbuf();
  apply_config(text.str(), file_name, config, messages);
  return config;
}

std::string config_help() {
  std::string text;
  for (const Key& key : kKeys) {
    std::string name = key.name;
    name.resize(18, ' ');
    text += "  " + name + key.help + "\n" + std::string(20, ' ') + key.allowed + " (default: " + key.preset + ")\n";
  }
  return text;
}

}  // namespace phybin::daemon
