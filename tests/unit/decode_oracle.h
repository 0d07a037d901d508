// What the tests that compare the decoder with other disassemblers share: code to decode, names, collected
// differences.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tests/support/code_sections.h"
#include "worker/translator/decode/instruction.h"

namespace phybin::decode::test {

using phybin::test::code_sections;
using phybin::test::CodeSection;
using phybin::test::kLibraryFolder;

inline std::string hex(std::span<const uint8_t> bytes) {
  std::string text;
  for (const uint8_t byte : bytes) {
    std::array<char, 4> buffer;
    std::snprintf(buffer.data(), buffer.size(), "%02x ", byte);
    text += buffer.data();
  }
  return text;
}

struct Difference {
  std::string kind;
  std::string detail;
};

// Differences, counted by kind, with the first example of each.
class Differences {
 public:
  void add(const Difference& difference, std::span<const uint8_t> bytes) {
    Entry& entry = kinds_[difference.kind];
    if (entry.count++ == 0)
      entry.example = difference.detail + "  " + hex(bytes.first(std::min<std::size_t>(bytes.size(), 15)));
  }
  std::string report() const {
    std::string text;
    for (const auto& [kind, entry] : kinds_)
      text += kind + "  x" + std::to_string(entry.count) + "  e.g. " + entry.example + "\n";
    return text;
  }

 private:
  struct Entry {
    unsigned count = 0;
    std::string example;
  };
  std::map<std::string, Entry> kinds_;
};

inline constexpr std::array<const char*, 16> kConditionNames = {"o", "no", "b", "nb", "z", "nz", "be", "nbe",
                                                                "s", "ns", "p", "np", "l", "nl", "le", "nle"};

inline std::string sized(const std::string& stem, unsigned size) {
  return stem + (size == 1 ? "b" : size == 2 ? "w" : size == 4 ? "d" : "q");
}

// The mnemonic as disassemblers print it in Intel's syntax, where a name of ours stands for several.
inline std::string printed_name(const Instruction& in) {
  using enum Mnemonic;
  std::string name = mnemonic_name(in.mnemonic);
  const std::string condition = kConditionNames[in.condition];
  const bool wide = in.operand_size == 8;
  switch (in.mnemonic) {
    case kJcc:
      return "j" + condition;
    case kSetcc:
      return "set" + condition;
    case kCmovcc:
      return "cmov" + condition;
    case kFcmovcc:
      return in.condition == 10   ? "fcmovu"
             : in.condition == 11 ? "fcmovnu"
             : in.condition == 4  ? "fcmove"
             : in.condition == 5  ? "fcmovne"
                                  : "fcmov" + condition;
    case kCbw:
      return in.operand_size == 2 ? "cbw" : wide ? "cdqe" : "cwde";
    case kCwd:
      return in.operand_size == 2 ? "cwd" : wide ? "cqo" : "cdq";
    case kMovs:
    case kCmps:
    case kStos:
    case kLods:
    case kScas:
    case kIns:
    case kOuts:
      return sized(name, in.operand_size);
    case kPushf:
    case kPopf:
    case kIret:
      return in.operand_size == 2 ? name : sized(name, in.operand_size);
    case kFxsave:
    case kFxrstor:
    case kXsave:
    case kXsavec:
    case kXsaves:
    case kXsaveopt:
    case kXrstor:
    case kXrstors:
      return wide ? name + "64" : name;
    case kJmpIndirect:
    case kJmpFar:
      return "jmp";
    case kCallIndirect:
    case kCallFar:
      return "call";
    case kRetFar:
      return "ret";
    case kJrcxz:
      return in.memory.address32 ? "jecxz" : "jrcxz";
    default:
      return name;
  }
}

}  // namespace phybin::decode::test
