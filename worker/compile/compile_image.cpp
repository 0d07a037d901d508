// See compile_image.h.
#include "worker/compile/compile_image.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "worker/compile/sandbox.h"
#include "worker/image/image_builder.h"
#include "worker/translator/identity.h"

namespace phybin::compile {
namespace {

constexpr int kUsageError = 2;
// Offsets in a module are 32-bit numbers.
constexpr uint64_t kMaxModuleBytes = UINT32_MAX;
constexpr uint64_t kMaxEntriesBytes = 256 << 20;

constexpr char kUsage[] =
    "--compile-image MODULE --entries FILE --output FILE [--host-features=NAME,...|none] [--tsc-shift=N] "
    "[--fast-math] [--no-sse-check] [--only-reachable], or --translator-build";

struct FeatureName {
  std::string_view name;
  bool HostFeatures::*feature;
};
constexpr FeatureName kFeatureNames[] = {
    {"crc32", &HostFeatures::crc32}, {"aes", &HostFeatures::aes},       {"pmull", &HostFeatures::pmull},
    {"sha1", &HostFeatures::sha1},   {"sha2", &HostFeatures::sha2},     {"lse", &HostFeatures::lse},
    {"lrcpc", &HostFeatures::lrcpc}, {"lrcpc2", &HostFeatures::lrcpc2}, {"lse2", &HostFeatures::lse2},
    {"flagm", &HostFeatures::flagm}, {"flagm2", &HostFeatures::flagm2}, {"frintts", &HostFeatures::frintts},
};

void write_all(int fd, const char* text, size_t size) {
  while (size != 0) {
    const ssize_t written = write(fd, text, size);
    if (written <= 0) return;
    text += written;
    size -= static_cast<size_t>(written);
  }
}

int fail(int status, std::string_view message) {
  const std::string line = "phybin: " + std::string(message) + "\n";
  write_all(STDERR_FILENO, line.data(), line.size());
  return status;
}

struct Request {
  const char* module = nullptr;
  const char* entries = nullptr;
  const char* output = nullptr;
  image::ImageInput input;
  std::string error;
};

bool read_features(std::string_view list, HostFeatures& host) {
  const uint8_t tsc_shift = host.tsc_shift;
  host = {};
  host.tsc_shift = tsc_shift;
  if (list == "none") return true;
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    bool known = false;
    for (const FeatureName& feature : kFeatureNames) {
      if (feature.name != list.substr(0, end)) continue;
      host.*feature.feature = true;
      known = true;
    }
    if (!known) return false;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return true;
}

bool read_tsc_shift(std::string_view text, HostFeatures& host) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), host.tsc_shift);
  return error == std::errc{} && end == text.data() + text.size() && host.tsc_shift <= proto::kMostTscShift;
}

// An option's value stands behind "=" or is the next argument.
Request read_arguments(int count, char* const* arguments, const HostFeatures& host) {
  Request request;
  request.input.host = host;
  for (int i = 0; i < count; ++i) {
    std::string_view name = arguments[i];
    const char* value = strchr(arguments[i], '=');
    if (value != nullptr) name = name.substr(0, static_cast<size_t>(value++ - arguments[i]));
    if (value == nullptr) {
      if (name == "--fast-math") {
        request.input.options.fast_math = true;
        continue;
      }
      if (name == "--no-sse-check") {
        request.input.options.sse_check = false;
        continue;
      }
      if (name == "--only-reachable") {
        request.input.only_reachable = true;
        continue;
      }
      if (++i < count) value = arguments[i];
    }
    if (value == nullptr) {
      request.error = "no value for " + std::string(name);
    } else if (name == "--compile-image") {
      request.module = value;
    } else if (name == "--entries") {
      request.entries = value;
    } else if (name == "--output") {
      request.output = value;
    } else if (name == "--host-features") {
      if (!read_features(value, request.input.host)) request.error = "unknown host feature in " + std::string(value);
    } else if (name == "--tsc-shift") {
      if (!read_tsc_shift(value, request.input.host)) request.error = "--tsc-shift: not a number from 0 to 31";
    } else {
      request.error = "unknown option " + std::string(name);
    }
    if (!request.error.empty()) return request;
  }
  if (request.module == nullptr || request.entries == nullptr || request.output == nullptr)
    request.error = "usage: " + std::string(kUsage);
  return request;
}

// The whole of an open file, at most `limit` bytes. Empty when nothing went wrong.
std::string read_file(int fd, const char* name, uint64_t size, uint64_t limit, std::vector<uint8_t>& bytes) {
  bytes.resize(size);
  size_t used = 0;
  for (;;) {
    if (used == bytes.size()) bytes.resize(bytes.size() + (bytes.size() / 2 > 65536 ? bytes.size() / 2 : 65536));
    const ssize_t got = read(fd, bytes.data() + used, bytes.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::string(name) + ": " + strerror(errno);
    if (got == 0) break;
    used += static_cast<size_t>(got);
    if (used > limit) return std::string(name) + ": too large";
  }
  bytes.resize(used);
  return {};
}

// One hexadecimal number a line.
bool read_entry_points(const std::vector<uint8_t>& text, std::vector<uint32_t>& entry_points) {
  uint64_t value = 0;
  unsigned digits = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? static_cast<char>(text[i]) : '\n';
    if (c == '\n') {
      if (digits != 0) entry_points.push_back(static_cast<uint32_t>(value));
      value = digits = 0;
    } else if (c >= '0' && c <= '9') {
      value = value << 4 | static_cast<unsigned>(c - '0');
      ++digits;
    } else if (c >= 'a' && c <= 'f') {
      value = value << 4 | static_cast<unsigned>(c - 'a' + 10);
      ++digits;
    } else if (c == 'x' && digits == 1 && value == 0) {
      digits = 0;
    } else {
      return false;
    }
    if (value > UINT32_MAX) return false;
  }
  return true;
}

std::string summary(const image::ImageReport& report) {
  std::string text = "entry_points " + std::to_string(report.given) + " outside " + std::to_string(report.outside) +
                     " unaligned " + std::to_string(report.unaligned) + " not_reachable " +
                     std::to_string(report.not_reachable);
  static constexpr const char* kNames[] = {"weak", "tso"};
  for (unsigned i = 0; i < 2; ++i) {
    const image::ImageReport::Variant& v = report.variants[i];
    const auto add = [&](const char* name, uint64_t value) {
      text += " " + std::string(kNames[i]) + "_" + name + " " + std::to_string(value);
    };
    add("dropped", v.dropped);
    add("entries", v.entries);
    add("code_bytes", v.code_bytes);
    add("guest_instructions", v.guest_instructions);
    add("places", v.places);
    add("slot_pairs", v.slot_pairs);
    add("linked_exits", v.linked_exits);
    add("open_exits", v.open_exits);
  }
  return text + "\n";
}

int compile(Request& request) {
  const int module = open(request.module, O_RDONLY | O_CLOEXEC);
  if (module < 0) return fail(1, std::string(request.module) + ": " + strerror(errno));
  struct stat status;
  if (fstat(module, &status) != 0 || !S_ISREG(status.st_mode))
    return fail(1, std::string(request.module) + ": not a regular file");
  const int entries = open(request.entries, O_RDONLY | O_CLOEXEC);
  if (entries < 0) return fail(1, std::string(request.entries) + ": " + strerror(errno));
  // "-" is for a caller that lets this process open nothing for writing.
  const bool to_standard_output = strcmp(request.output, "-") == 0;
  const int output =
      to_standard_output ? STDOUT_FILENO : open(request.output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (output < 0) return fail(1, std::string(request.output) + ": " + strerror(errno));
  enter_sandbox();

  const auto expected = static_cast<uint64_t>(status.st_size);
  if (expected > kMaxModuleBytes) return fail(1, std::string(request.module) + ": too large");
  std::vector<uint8_t> file, text, result;
  // One byte more than expected shows that the file has not grown.
  std::string problem = read_file(module, request.module, expected + 1, kMaxModuleBytes, file);
  if (problem.empty()) problem = read_file(entries, request.entries, 0, kMaxEntriesBytes, text);
  if (!problem.empty()) return fail(1, problem);
  if (!read_entry_points(text, request.input.entry_points))
    return fail(1, std::string(request.entries) + ": something else than one hexadecimal number a line");
  text = {};
  request.input.file = file.data();
  request.input.size = file.size();
  image::ImageReport report;
  problem = image::build_image(request.input, result, report);
  if (!problem.empty()) return fail(1, std::string(request.module) + ": " + problem);
  for (size_t at = 0; at < result.size();) {
    const ssize_t written = write(output, result.data() + at, result.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return fail(1, std::string(request.output) + ": " + strerror(errno));
    at += static_cast<size_t>(written);
  }
  const std::string line = summary(report);
  write_all(to_standard_output ? STDERR_FILENO : STDOUT_FILENO, line.data(), line.size());
  return 0;
}

int print_translator_build() {
  std::string text;
  for (const uint8_t byte : kTranslatorBuild) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  text += '\n';
  write_all(STDOUT_FILENO, text.data(), text.size());
  return 0;
}

constexpr std::string_view kCompile = "--compile-image", kBuild = "--translator-build";

}  // namespace

bool is_command(int count, char* const* arguments) {
  if (count == 0) return false;
  const std::string_view first = arguments[0];
  return first == kBuild || first == kCompile || first.starts_with("--compile-image=");
}

int run_command(int count, char* const* arguments, const HostFeatures& host) {
  if (count == 1 && arguments[0] == kBuild) return print_translator_build();
  try {
    Request request = read_arguments(count, arguments, host);
    if (!request.error.empty()) return fail(kUsageError, request.error);
    return compile(request);
  } catch (const std::bad_alloc&) {
    return fail(1, "not enough memory");
  }
}

}  // namespace phybin::compile
