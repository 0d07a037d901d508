// See options.h.
#include "daemon/options.h"

#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <cstring>

#include "daemon/config.h"
#include "daemon/log.h"
#include "proto/places.h"

namespace phybin::daemon {
namespace {

struct Option {
  const char* name;
  bool takes_value;
  void (*set)(Options&, const char* value);
  const char* help;
};

constexpr Option kOptions[] = {
    {"--system", false, [](Options& o, const char*) { o.system = true; },
     "serve all users (default for root): /run/phybin/phybind.sock, /var/cache/phybin"},
    {"--user", false, [](Options& o, const char*) { o.system = false; },
     "serve this user: $XDG_RUNTIME_DIR/phybin/phybind.sock, $XDG_CACHE_HOME/phybin"},
    {"--socket", true, [](Options& o, const char* v) { o.socket = v; }, "PATH  where workers and clients connect"},
    {"--cache", true, [](Options& o, const char* v) { o.cache = v; }, "DIR  where index and images are kept"},
    {"--compiler", true, [](Options& o, const char* v) { o.compiler = v; },
     "PATH  what makes images (default: phybin beside phybind, else in $PATH)"},
    {"--config", true, [](Options& o, const char* v) { o.config = v; }, "FILE  instead of /etc/phybin.conf"},
    {"--keys", true, [](Options& o, const char* v) { o.keys = v; },
     "DIR  public keys that imported images may be signed with (default: /etc/phybin/keys)"},
    {"--topology", true, [](Options& o, const char* v) { o.topology = v; },
     "DIR  for tests: memory nodes, in the form of /sys/devices/system/node"},
    {"--fault-point", true, [](Options& o, const char* v) { o.fault_point = v; },
     "NAME  for tests: kill the daemon when it gets there"},
    {"--version", false, [](Options& o, const char*) { o.version = true; }, "print the version"},
    {"--help", false, [](Options& o, const char*) { o.help = true; }, "print this text"},
};

std::string from_environment(const char* name) {
  const char* value = getenv(name);
  return value != nullptr && value[0] == '/' ? value : "";
}

std::string find_compiler() {
  char self[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length > 0) {
    std::string path(self, static_cast<size_t>(length));
    path.resize(path.rfind('/') + 1);
    path += "phybin";
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  const char* variable = getenv("PATH");
  const std::string paths = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
  for (size_t start = 0; start <= paths.size();) {
    const size_t end = std::min(paths.find(':', start), paths.size());
    std::string path = paths.substr(start, end - start) + "/phybin";
    if (path[0] == '/' && access(path.c_str(), X_OK) == 0) return path;
    start = end + 1;
  }
  return {};
}

// Where a user's own daemon has socket and cache; an empty string, or what is missing.
std::string fill_in_user_places(Options& options) {
  if (options.socket.empty()) {
    const std::string runtime = from_environment("XDG_RUNTIME_DIR");
    if (runtime.empty()) return "XDG_RUNTIME_DIR is not set; give --socket PATH";
    options.socket = runtime + "/" + proto::kUserSocket;
  }
  if (options.cache.empty()) {
    std::string cache = from_environment("XDG_CACHE_HOME");
    if (cache.empty()) {
      cache = from_environment("HOME");
      if (cache.empty()) return "neither XDG_CACHE_HOME nor HOME is set; give --cache DIR";
      cache += "/.cache";
    }
    options.cache = cache + "/" + proto::kUserCache;
  }
  return {};
}

}  // namespace

std::string parse_options(int argc, char** argv, Options& options) {
  options.system = geteuid() == 0;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const std::string_view name = word.substr(0, word.find('='));
    const Option* found = nullptr;
    for (const Option& option : kOptions) {
      if (name == option.name) found = &option;
    }
    if (found == nullptr) return "unknown option '" + printable(word) + "'; --help lists them";
    const char* value = name.size() < word.size() ? argv[i] + name.size() + 1 : nullptr;
    if (found->takes_value && value == nullptr && i + 1 < argc) value = argv[++i];
    if (found->takes_value ? value == nullptr || *value == 0 : value != nullptr) {
      return std::string(found->name) + (found->takes_value ? " needs a value" : " takes no value");
    }
    found->set(options, value);
  }
  if (options.help || options.version) return {};
  // The cache's place may come from the configuration file instead, so only the socket is certain here.
  if (options.system) {
    if (options.socket.empty()) options.socket = proto::kSystemSocket;
  } else if (std::string problem = fill_in_user_places(options); !problem.empty()) {
    return problem;
  }
  if (options.compiler.empty()) options.compiler = find_compiler();
  return {};
}

std::string usage() {
  std::string text =
      "usage: phybind [OPTION]...\n\nKeeps the translations of x86_64 programs for PhyBin's workers.\n\n";
  for (const Option& option : kOptions) {
    std::string name = option.name;
    std::string_view help = option.help;
    if (option.takes_value) {
      const size_t gap = help.find("  ");
      name += "=" + std::string(help.substr(0, gap));
      help.remove_prefix(gap + 2);
    }
    name.resize(std::max<size_t>(name.size() + 1, 22), ' ');
    text += "  " + name + std::string(help) + "\n";
  }
  text += "\nKeys of the configuration file that are the daemon's:\n\n" + config_help();
  text += "\nSIGHUP reads the file again, SIGTERM ends the daemon. Running programs go on without it.\n";
  return text;
}

}  // namespace phybin::daemon
