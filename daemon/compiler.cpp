// See compiler.h.
#include "daemon/compiler.h"

#include <cstdlib>

namespace phybin::daemon {
namespace {

// Bits of ImageHeader::host_features, from the lowest; the highest are the TSC's shift.
constexpr const char* kFeatures[] = {"crc32", "aes",    "pmull", "sha1",  "sha2",   "lse",
                                     "lrcpc", "lrcpc2", "lse2",  "flagm", "flagm2", "frintts"};

struct OptionName {
  uint32_t bit;
  const char* option;
};
constexpr OptionName kOptions[] = {{proto::kOptionFastMath, "--fast-math"},
                                   {proto::kOptionNoSseCheck, "--no-sse-check"}};

}  // namespace

std::vector<std::string> compile_command(const std::string& compiler, const ImageKey& key) {
  std::vector<std::string> words = {compiler,
                                    "--compile-image",
                                    "/proc/self/fd/" + std::to_string(kModuleFile),
                                    "--entries",
                                    "/proc/self/fd/" + std::to_string(kEntriesFile),
                                    "--output",
                                    "-"};
  std::string features;
  uint32_t unknown = key.features & ((1u << proto::kTscShiftBit) - 1);
  for (size_t bit = 0; bit != std::size(kFeatures); ++bit) {
    if ((key.features >> bit & 1) == 0) continue;
    unknown &= ~(1u << bit);
    features += (features.empty() ? "" : ",") + std::string(kFeatures[bit]);
  }
  words.push_back("--host-features=" + (features.empty() ? "none" : features));
  words.push_back("--tsc-shift=" + std::to_string(key.features >> proto::kTscShiftBit));
  uint32_t options = key.options;
  for (const OptionName& known : kOptions) {
    if ((options & known.bit) != 0) words.emplace_back(known.option);
    options &= ~known.bit;
  }
  if (unknown != 0 || options != 0) return {};
  if (key.scope == kEveryone) words.emplace_back("--only-reachable");
  return words;
}

std::vector<std::string> build_command(const std::string& compiler) { return {compiler, "--translator-build"}; }

std::string entries_text(const std::vector<uint32_t>& offsets) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(offsets.size() * 9);
  for (uint32_t offset : offsets) {
    for (int shift = 28; shift >= 0; shift -= 4) text += kDigits[offset >> shift & 15];
    text += '\n';
  }
  return text;
}

std::vector<std::string> compile_environment() {
  std::vector<std::string> words;
  // PATH for compilers that are scripts, the others for builds with sanitizers.
  for (const char* name : {"PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS"}) {
    if (const char* value = getenv(name); value != nullptr) words.push_back(std::string(name) + "=" + value);
  }
  return words;
}

}  // namespace phybin::daemon
