// How many A64 instructions x86 code costs: reads lines of hexadecimal bytes, translates each alone with all flags
// wanted at its end, and prints how many instructions run between the entry and the exit of the region, or `-` where
// the code cannot be translated as one region; `+` after the number says that a helper of the runtime is called,
// whose instructions come on top. The exit and cold paths are not counted. What an empty region (a NOP) needs is
// subtracted, so that a fixed cost of regions is not charged to the instruction.
//
//   phybin_count_code [--lse] [--flagm] [--fast-math] [--words] < LINES
//
// --words prints the words of the code behind the number. tests/bench/instruction_table.py makes the table of
// docs/benchmarks.md with it.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "worker/translator/decode/instruction.h"
#include "worker/translator/translate.h"

namespace phybin {
namespace {

constexpr uint64_t kGuestAddress = 0x401000;

struct Settings {
  CodeOptions options;
  HostFeatures host;
  bool words = false;
};

std::optional<std::vector<uint8_t>> parse_hex(const std::string& text) {
  std::vector<uint8_t> bytes;
  if (text.empty() || text.size() % 2 != 0 || text.find_first_not_of("0123456789abcdef") != std::string::npos)
    return std::nullopt;
  for (size_t i = 0; i < text.size(); i += 2)
    bytes.push_back(static_cast<uint8_t>(std::strtoul(text.substr(i, 2).c_str(), nullptr, 16)));
  return bytes;
}

// 0 when the bytes are not a sequence of instructions.
unsigned count_instructions(const std::vector<uint8_t>& bytes) {
  unsigned count = 0;
  for (size_t at = 0; at < bytes.size(); count++) {
    decode::Instruction instruction;
    if (decode::decode(&bytes[at], bytes.size() - at, kGuestAddress + at, instruction) != decode::DecodeStatus::kOk)
      return 0;
    at += instruction.length;
  }
  return count;
}

std::optional<RegionCode> translate_alone(const std::vector<uint8_t>& code, const Settings& settings) {
  // Bytes behind the code, so that the region ends because of its length and not at the end of memory.
  std::vector<uint8_t> memory = code;
  memory.insert(memory.end(), 16, 0x90);
  TranslateInput input;
  input.pc = kGuestAddress;
  input.window = {kGuestAddress, memory.data(), memory.size()};
  input.options = settings.options;
  input.host = settings.host;
  input.max_instructions = count_instructions(code);
  input.single_block = true;
  input.all_flags_at_exit = true;
  RegionCode region;
  if (input.max_instructions == 0) return std::nullopt;
  if (translate(input, region) != TranslateStatus::kOk) return std::nullopt;
  // Without an exit that goes on, the region ends in a trap: an instruction that the translator does not know.
  if (region.slot_pairs.empty()) return std::nullopt;
  return region;
}

size_t body(const RegionCode& region) { return region.body_words; }

// Whether the body calls a helper of the runtime (BLR), whose instructions are not seen here.
bool calls_helper(const RegionCode& region) {
  for (size_t i = 0; i < body(region); i++)
    if ((region.words[i] & 0xfffffc1f) == 0xd63f0000) return true;
  return false;
}

int run(const Settings& settings) {
  const auto empty = translate_alone({0x90}, settings);
  if (!empty) {
    std::fputs("a NOP cannot be translated\n", stderr);
    return 1;
  }
  for (std::string line; std::getline(std::cin, line);) {
    const auto code = parse_hex(line);
    if (!code) {
      std::fprintf(stderr, "not hexadecimal bytes: '%s'\n", line.c_str());
      return 1;
    }
    const auto region = translate_alone(*code, settings);
    if (!region) {
      std::puts("-");
      continue;
    }
    std::printf("%zu%s", body(*region) - body(*empty), calls_helper(*region) ? "+" : "");
    if (settings.words)
      for (size_t i = 0; i < body(*region); i++) std::printf(" %08x", region->words[i]);
    std::putchar('\n');
  }
  return 0;
}

}  // namespace
}  // namespace phybin

int main(int argc, char** argv) {
  phybin::Settings settings;
  // What every machine has whose CPU is newer than ARMv8.0's minimum (FT-2000/4, FT-2500).
  settings.host.crc32 = settings.host.aes = settings.host.pmull = settings.host.sha1 = settings.host.sha2 = true;
  for (int i = 1; i < argc; i++) {
    const std::string argument = argv[i];
    if (argument == "--lse") {
      settings.host.lse = true;
    } else if (argument == "--flagm") {
      settings.host.flagm = true;
    } else if (argument == "--fast-math") {
      settings.options.fast_math = true;
    } else if (argument == "--words") {
      settings.words = true;
    } else {
      std::fprintf(stderr, "unknown argument '%s'\n", argv[i]);
      return 2;
    }
  }
  return phybin::run(settings);
}
