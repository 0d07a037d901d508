// The table of options and the functions that read it. See options.h.
#include "worker/config/options.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include "proto/config_keys.h"

namespace phybin::config {
namespace {

enum Places : uint8_t { kEverywhere, kNotInFile, kFromParent };

struct OptionSpec {
  const char* key;      // as in the file; on the command line "--" and '-' for '_'
  const char* allowed;  // what the user may give, for messages and help; a list of words is checked against
  const char* preset;   // default
  const char* not_yet;  // words that are known and refused because nothing stands behind them yet
  Places places;
  bool (*set)(Options&, std::string_view);  // false: not allowed
  const char* help;
};

std::optional<bool> parse_switch(std::string_view text) {
  if (text == "on") return true;
  if (text == "off") return false;
  return std::nullopt;
}

template <bool Options::*Member>
bool set_switch(Options& options, std::string_view text) {
  auto value = parse_switch(text);
  if (value) options.*Member = *value;
  return value.has_value();
}

std::optional<uint64_t> parse_number(std::string_view text, uint64_t limit) {
  if (text.empty()) return std::nullopt;
  uint64_t value = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + static_cast<uint64_t>(c - '0');
    if (value > limit) return std::nullopt;
  }
  return value;
}

// A size in bytes with an optional suffix K, M, G or T.
std::optional<uint64_t> parse_size(std::string_view text, uint64_t low, uint64_t high) {
  unsigned shift = 0;
  if (!text.empty()) {
    switch (text.back() & ~0x20) {
      case 'K':
        shift = 10;
        break;
      case 'M':
        shift = 20;
        break;
      case 'G':
        shift = 30;
        break;
      case 'T':
        shift = 40;
        break;
      default:
        break;
    }
    if (shift) text.remove_suffix(1);
  }
  auto value = parse_number(text, high >> shift);
  if (!value || *value << shift < low) return std::nullopt;
  return *value << shift;
}

constexpr uint64_t kMegabyte = 1ull << 20, kTerabyte = 1ull << 40;

bool set_cache(Options& options, std::string_view text) {
  if (text == "auto")
    options.shared_translation_cache = SharedCache::kAuto;
  else if (text == "on")
    options.shared_translation_cache = SharedCache::kOn;
  else if (text == "read")
    options.shared_translation_cache = SharedCache::kRead;
  else if (text == "off")
    options.shared_translation_cache = SharedCache::kOff;
  else
    return false;
  return true;
}

bool set_daemon_socket(Options& options, std::string_view text) {
  constexpr size_t kLongest = 107;  // sockaddr_un
  if (text == "default")
    text = {};
  else if (text.empty() || text[0] != '/' || text.size() > kLongest || text.find('\0') != text.npos)
    return false;
  options.daemon_socket = text;
  return true;
}

bool set_daemon_timeout(Options& options, std::string_view text) {
  auto value = parse_number(text, 10'000);
  if (value) options.daemon_timeout = static_cast<unsigned>(*value);
  return value.has_value();
}

bool set_memory_model(Options& options, std::string_view text) {
  if (text == "auto")
    options.memory_model = MemoryModelChoice::kAuto;
  else if (text == "tso")
    options.memory_model = MemoryModelChoice::kTso;
  else if (text == "weak")
    options.memory_model = MemoryModelChoice::kWeak;
  else
    return false;
  return true;
}

bool set_rootfs(Options& options, std::string_view text) {
  if (text == "none")
    text = {};
  else if (text.empty() || text[0] != '/')
    return false;
  while (!text.empty() && text.back() == '/') text.remove_suffix(1);
  if (text.size() >= 3000 || text.find('\0') != text.npos) return false;
  options.rootfs = text;
  return true;
}

bool set_jit_cache_size(Options& options, std::string_view text) {
  auto value = parse_size(text, 4 * kMegabyte, 64 * 1024 * kMegabyte);
  if (value) options.jit_cache_size = *value;
  return value.has_value();
}

bool set_prefetch_depth(Options& options, std::string_view text) {
  auto value = parse_number(text, 64);
  if (value) options.prefetch_depth = static_cast<unsigned>(*value);
  return value.has_value();
}

// "0xSTART-0xEND", or anything else that is not empty as a symbol.
bool parse_trace_range(std::string_view text, Trace& trace) {
  if (text.substr(0, 2) != "0x") {
    trace.symbol = text;
    return !text.empty();
  }
  const size_t dash = text.find('-');
  if (dash == text.npos || text.substr(dash + 1, 2) != "0x") return false;
  const auto hex = [](std::string_view digits, uint64_t& value) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    return error == std::errc() && end == digits.data() + digits.size();
  };
  return hex(text.substr(2, dash - 2), trace.start) && hex(text.substr(dash + 3), trace.end) &&
         trace.start < trace.end;
}

bool set_trace(Options& options, std::string_view text) {
  Trace trace;
  const size_t comma = text.find(',');
  trace.to = text.substr(0, comma);
  if (comma != text.npos && !parse_trace_range(text.substr(comma + 1), trace)) return false;
  if (trace.to.empty()) return false;
  if (trace.to == "off") trace = {};
  options.trace_instruction = trace;
  return true;
}

bool set_float_emulation(Options& options, std::string_view text) {
  if (text != "soft") return false;
  options.float_emulation_hard = false;
  return true;
}

bool set_mem_alias_check(Options& options, std::string_view text) {
  if (text != "off") return false;
  options.mem_alias_check = false;
  return true;
}

bool set_gpu_direct(Options& options, std::string_view text) {
  if (text != "off") return false;
  options.enable_gpu_direct = false;
  return true;
}

bool set_argv0(Options& options, std::string_view text) {
  options.has_argv0 = true;
  options.argv0 = text;
  return true;
}

bool set_program_fd(Options& options, std::string_view text) {
  auto value = parse_number(text, 1u << 30);
  if (value) options.program_fd = static_cast<int>(*value);
  return value.has_value();
}

constexpr OptionSpec kOptions[] = {
    {"shared_translation_cache", "auto, on, read, off", "auto", "", kEverywhere, set_cache,
     "shared translations of the daemon: use them and say what is missing (on), use them only (read), private "
     "translations only (off), as the daemon decides (auto); without a daemon every value means off"},
    {"daemon_socket", "default, an absolute path", "default", "", kEverywhere, set_daemon_socket,
     "where the daemon listens; by default the system's, or else the user's own"},
    {"daemon_timeout", "0 to 10000", "20", "", kEverywhere, set_daemon_timeout,
     "milliseconds that the start of a program waits for the daemon at most"},
    {"fast_math", "off, on", "off", "", kEverywhere, set_switch<&Options::fast_math>,
     "give up bit-exact NaNs and denormal corner cases where they cost"},
    {"no_sse_check", "off, on", "off", "", kEverywhere, set_switch<&Options::no_sse_check>,
     "no fault for misaligned movaps-style operands, no tracking of MXCSR exception flags"},
    {"trace_instruction", "off, on, FILE; on and FILE with ,0xSTART-0xEND or ,FUNCTION", "off", "", kEverywhere,
     set_trace,
     "print each guest instruction reached and the code made of it, to stderr or behind FILE's end; "
     "programs that are traced use no shared translations, which would not show"},
    {"enable_gpu_direct", "off", "off", "on", kEverywhere, set_gpu_direct,
     "device memory of /dev/kfd and /dev/dri goes to the guest untouched"},
    {"memory_model", "auto, tso, weak", "auto", "", kEverywhere, set_memory_model,
     "order of ordinary loads and stores: as on x86 (tso), none (weak), as on x86 once memory is shared (auto)"},
    {"rootfs", "none, an absolute directory", "none", "", kEverywhere, set_rootfs,
     "x86_64 root directory: paths are looked up there first, then on the host"},
    {"JIT_cache_size", "4M to 64G", "256M", "", kEverywhere, set_jit_cache_size,
     "upper bound of one process's private translations"},
    {"prefetch_depth", "0 to 64", "4", "", kEverywhere, set_prefetch_depth,
     "successors of a block that are translated ahead with it"},
    {"mem_alias_check", "off", "off", "on", kEverywhere, set_mem_alias_check,
     "track every alias of translated memory, those of other processes too"},
    {"float_emulation", "soft", "soft", "hard", kEverywhere, set_float_emulation,
     "soft: x87 in 80 bits, SSE results bit-identical; hard: x87 in the host's double"},
    {"log", "off, on", "off", "", kNotInFile, set_switch<&Options::log>, "diagnostics to stderr"},
    {"stats", "off, on", "off", "", kNotInFile, set_switch<&Options::stats>,
     "counters of the worker to stderr when the program ends"},
    {"guest_argv0", "any text", "", "", kFromParent, set_argv0, ""},
    {"guest_fd", "a descriptor", "", "", kFromParent, set_program_fd, ""},
};

// True if `word` stands in the space separated `list`, or the list is "*".
bool in_list(std::string_view list, std::string_view word) {
  if (list == "*") return true;
  while (!list.empty()) {
    size_t end = std::min(list.find(' '), list.size());
    if (list.substr(0, end) == word) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

std::string dashed(std::string_view key) {
  std::string name = "--";
  for (char c : key) name += c == '_' ? '-' : c;
  return name;
}

const OptionSpec* find_key(std::string_view key) {
  for (const OptionSpec& spec : kOptions) {
    if (key == spec.key) return &spec;
  }
  return nullptr;
}

// `name` without the leading dashes, spelled with '-'.
const OptionSpec* find_dashed(std::string_view name) {
  std::string key(name);
  for (char& c : key) {
    if (c == '_') return nullptr;
    if (c == '-') c = '_';
  }
  return find_key(key);
}

// Control characters would break the one line that a message is.
std::string printable(std::string_view text) {
  std::string out;
  for (char c : text.substr(0, 80)) out += c < ' ' || c == 0x7f ? '?' : c;
  if (text.size() > 80) out += "...";
  return out;
}

// What is wrong with `value`; empty when it is allowed and was set.
std::string set_option(const OptionSpec& spec, std::string_view value, Options& options) {
  if (spec.set(options, value)) return {};
  bool known = *spec.not_yet && in_list(spec.not_yet, value);
  return "'" + printable(value) + (known ? "' is not implemented yet" : "' is not allowed") +
         "; allowed: " + spec.allowed;
}

std::string with_default(const std::string& text, const OptionSpec& spec, Options& options) {
  spec.set(options, spec.preset);
  return text + "; using the default, " + spec.preset;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\f\v";
  size_t start = text.find_first_not_of(kBlank);
  if (start == text.npos) return {};
  return text.substr(start, text.find_last_not_of(kBlank) - start + 1);
}

std::string known_keys() {
  std::string text;
  for (const OptionSpec& spec : kOptions) {
    if (spec.places != kEverywhere) continue;
    if (!text.empty()) text += ", ";
    text += spec.key;
  }
  return text;
}

enum class Section : uint8_t { kGlobal, kProgram, kOther };

constexpr std::string_view kProgramPrefix = "program:";

// The lines of a configuration file that hold something, one after the other.
class FileLines {
 public:
  FileLines(std::string_view text, std::string_view file_name, Messages& messages)
      : text_(text), file_name_(file_name), messages_(messages) {}

  bool next() {
    do {
      if (position_ >= text_.size()) return false;
      const size_t end = std::min(text_.find('\n', position_), text_.size());
      line_ = trim(proto::without_comment(text_.substr(position_, end - position_)));
      position_ = end + 1;
      ++number_;
    } while (line_.empty());
    return true;
  }

  void report(const std::string& what) {
    messages_.push_back(std::string(file_name_) + ":" + std::to_string(number_) + ": " + what);
  }

  bool is_section() const { return line_[0] == '['; }
  // NAME of [program:NAME]; none for other sections.
  std::optional<std::string_view> section() const {
    if (line_.back() != ']') return std::nullopt;
    std::string_view name = trim(line_.substr(1, line_.size() - 2));
    if (name.substr(0, kProgramPrefix.size()) != kProgramPrefix) return std::nullopt;
    name = trim(name.substr(kProgramPrefix.size()));
    if (name.empty()) return std::nullopt;
    return name;
  }
  void report_section() {
    report("'" + printable(line_) + "' is not a section; allowed: [program:NAME]; what it holds is ignored");
  }

  std::string_view key() const { return trim(line_.substr(0, line_.find('='))); }
  bool is_daemon_key() const {
    return std::find(std::begin(proto::kDaemonKeys), std::end(proto::kDaemonKeys), key()) !=
           std::end(proto::kDaemonKeys);
  }
  // Sets the option of a KEY = VALUE line, or reports what is wrong with it.
  void apply(Options& options) {
    const size_t equals = line_.find('=');
    if (equals == line_.npos) {
      report("'" + printable(line_) + "' is not allowed; allowed: KEY = VALUE, [program:NAME], # comment");
      return;
    }
    if (is_daemon_key()) return;
    const OptionSpec* spec = find_key(key());
    if (!spec || spec->places != kEverywhere) {
      report("unknown key '" + printable(key()) + "'; allowed: " + known_keys());
      return;
    }
    const std::string error = set_option(*spec, trim(line_.substr(equals + 1)), options);
    if (!error.empty()) report(std::string(spec->key) + ": " + with_default(error, *spec, options));
  }

 private:
  std::string_view text_, file_name_, line_;
  Messages& messages_;
  size_t position_ = 0;
  unsigned number_ = 0;
};

struct OptionText {
  const OptionSpec* spec = nullptr;
  std::string_view value;
  std::string error;
};

// Takes "--name", "--name=value" apart. A bare name means on.
OptionText split_option(std::string_view text, Places places) {
  OptionText result;
  std::string_view name = text.substr(2);
  size_t equals = name.find('=');
  if (equals != name.npos) {
    result.value = name.substr(equals + 1);
    name = name.substr(0, equals);
  } else {
    result.value = "on";
  }
  const OptionSpec* spec = find_dashed(name);
  if (!spec || spec->places > places) {
    result.error = "unknown option " + printable(text.substr(0, name.size() + 2));
    return result;
  }
  bool takes_switch = strstr(spec->allowed, "off") || in_list(spec->not_yet, "on");
  if (equals == name.npos && !takes_switch) {
    result.error = dashed(spec->key) + " needs a value; allowed: " + spec->allowed;
    return result;
  }
  result.spec = spec;
  return result;
}

}  // namespace

void apply_file(std::string_view text, std::string_view file_name, std::string_view program, Options& options,
                Messages& messages) {
  // Two rounds, because a section wins over global keys wherever it stands. Each line is reported in one of them.
  for (Section round : {Section::kGlobal, Section::kProgram}) {
    Section section = Section::kGlobal;
    FileLines lines(text, file_name, messages);
    while (lines.next()) {
      if (lines.is_section()) {
        const std::optional<std::string_view> name = lines.section();
        if (!name && round == Section::kGlobal) lines.report_section();
        section = name == program ? Section::kProgram : Section::kOther;
      } else if (section == round) {
        lines.apply(options);
      }
    }
  }
}

void check_file(std::string_view text, std::string_view file_name, Messages& messages) {
  Options options;
  bool known = true, global = true;
  FileLines lines(text, file_name, messages);
  while (lines.next()) {
    if (lines.is_section()) {
      known = lines.section().has_value();
      global = false;
      if (!known) lines.report_section();
    } else if (known) {
      lines.apply(options);
      if (!global && lines.is_daemon_key()) lines.report("a key of the daemon has no effect in a section");
    }
  }
}

void apply_file_at(const char* file_name, std::string_view program, Options& options, Messages& messages) {
  constexpr off_t kLimit = 1 << 20;
  // Not blocking: the path may name a pipe.
  int fd = open(file_name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    if (errno != ENOENT && errno != ENOTDIR) {
      messages.push_back(std::string(file_name) + ": " + strerror(errno) + "; using the defaults");
    }
    return;
  }
  struct stat status;
  const char* problem = nullptr;
  std::string text;
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    problem = "not a regular file";
  } else if (status.st_size > kLimit) {
    problem = "larger than 1 MiB";
  } else {
    text.resize(static_cast<size_t>(status.st_size));
    size_t done = 0;
    while (done < text.size()) {
      ssize_t count = read(fd, text.data() + done, text.size() - done);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) problem = strerror(errno);
      if (count <= 0) break;
      done += static_cast<size_t>(count);
    }
    text.resize(done);
  }
  close(fd);
  if (problem) {
    messages.push_back(std::string(file_name) + ": " + problem + "; using the defaults");
    return;
  }
  apply_file(text, file_name, program, options, messages);
}

void apply_environment(std::string_view value, Options& options, Messages& messages) {
  for (size_t position = 0; position < value.size();) {
    size_t end = std::min(value.find_first_of(" \t\n", position), value.size());
    std::string_view word = value.substr(position, end - position);
    position = end + 1;
    if (word.empty()) continue;
    if (word.substr(0, 2) != "--") {
      messages.push_back("PHYBIN_OPTIONS: '" + printable(word) + "' is not allowed; allowed: --OPTION[=VALUE] ...");
      continue;
    }
    OptionText option = split_option(word, kNotInFile);
    if (!option.spec) {
      messages.push_back("PHYBIN_OPTIONS: " + option.error);
      continue;
    }
    std::string error = set_option(*option.spec, option.value, options);
    if (!error.empty()) {
      messages.push_back("PHYBIN_OPTIONS: " + dashed(option.spec->key) + ": " +
                         with_default(error, *option.spec, options));
    }
  }
}

void apply_heap_size(std::string_view value, Options& options, Messages& messages) {
  auto size = parse_size(value, 0, 64 * kTerabyte);
  if (size) {
    options.heap_size = *size;
  } else {
    messages.push_back("PHYBIN_HEAP_SIZE: '" + printable(value) +
                       "' is not allowed; allowed: a size up to 64T, as 4G; using the default, 4G");
  }
}

CommandLine apply_command_line(int argc, char* const* argv, Options& options) {
  CommandLine result;
  Options changed = options;
  int index = 1;
  for (; index < argc; ++index) {
    std::string_view word = argv[index];
    if (word == "--") {
      ++index;
      break;
    }
    if (word == "-h" || word == "--help") {
      result.help = true;
      continue;
    }
    if (word == "-V" || word == "--version") {
      result.version = true;
      continue;
    }
    if (word.empty() || word[0] != '-' || word == "-") break;
    if (word.substr(0, 2) != "--") {
      result.error = "unknown option " + printable(word);
      return result;
    }
    OptionText option = split_option(word, kFromParent);
    if (!option.spec) {
      result.error = option.error;
      return result;
    }
    std::string error = set_option(*option.spec, option.value, changed);
    if (!error.empty()) {
      result.error = dashed(option.spec->key) + ": " + error;
      return result;
    }
    if (option.spec->places != kFromParent) result.passed_on.emplace_back(word);
  }
  result.program_index = index;
  options = changed;
  return result;
}

std::string help_text() {
  std::string text =
      "Usage: phybin [OPTION]... PROGRAM [ARG]...\n"
      "Runs the x86_64 Linux program PROGRAM by translating it.\n\n"
      "Options, also in PHYBIN_OPTIONS (space separated) and, as KEY = VALUE with '_' for '-',\n"
      "in /etc/phybin.conf; the command line wins, then the environment, then [program:NAME], then the rest:\n";
  for (const OptionSpec& spec : kOptions) {
    if (spec.places == kFromParent) continue;
    text += "  " + dashed(spec.key) + "=VALUE\n      " + spec.help + "\n      values: " + spec.allowed +
            "; default: " + spec.preset;
    if (*spec.not_yet) {
      text += "; not implemented yet: ";
      text += std::string_view(spec.not_yet) == "*" ? "every other value" : spec.not_yet;
    }
    if (spec.places == kNotInFile) text += "; not in the file";
    text += "\n";
  }
  text +=
      "  --help, --version\n      say this, or the version, and exit\n"
      "  --compile-image MODULE --entries FILE --output FILE, --translator-build\n"
      "      for phybind: make an image of MODULE for the shared translation cache; say which translator this is\n\n"
      "Environment: PHYBIN_OPTIONS; PHYBIN_HEAP_SIZE=4G, how far the program's heap may grow.\n"
      "Exit status: the program's; 126 when it cannot be run, 127 when it is not there, 2 for a bad option.\n";
  return text;
}

}  // namespace phybin::config
