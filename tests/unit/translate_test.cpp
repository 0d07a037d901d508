// The translator as a whole: it is deterministic, translates whatever it is given, and emits nothing but valid A64
// instructions (Capstone is the judge). What the code does is the differential tests' matter.
#include <capstone/capstone.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <vector>

#include "tests/support/regions.h"

namespace phybin {
namespace {

bool full_run() { return std::getenv("PHYBIN_TEST_FULL") != nullptr; }

std::vector<test::CodeSection> libc() { return test::code_sections(std::string(test::kLibraryFolder) + "libc.so.6"); }

struct Variant {
  const char* name;
  HostFeatures host;
  CodeOptions options;
};

// Without LSE and LRCPC, which Capstone 4 does not know; a64_memory_test compares those with the GNU assembler.
std::vector<Variant> variants() {
  HostFeatures crypto;
  crypto.crc32 = crypto.aes = crypto.pmull = crypto.sha1 = crypto.sha2 = true;
  CodeOptions tso;
  tso.memory_model = MemoryModel::kTso;
  CodeOptions fast;
  fast.fast_math = true;
  fast.sse_check = false;
  return {{"armv8.0", {}, {}}, {"crypto-tso", crypto, tso}, {"fast", crypto, fast}};
}

// Words that are no valid instructions on purpose: literals behind the code, with the padding that aligns them, and
// UDF.
std::vector<bool> data_words(const RegionCode& code) {
  std::vector<bool> is_slot(code.words.size()), data(code.words.size());
  for (const SlotUse& use : code.slots) is_slot[use.code_offset / 4] = true;
  std::size_t first = code.words.size();
  for (std::size_t i = 0; i < first; ++i) {
    const uint32_t word = code.words[i];
    if ((word & 0x3b000000) != 0x18000000 || is_slot[i]) continue;  // LDR (literal)
    const auto displacement = static_cast<int32_t>(word << 8) >> 13;
    const bool vector = (word & 0x04000000) != 0;
    const unsigned size = vector ? 1u << (word >> 30) : (word >> 30) == 1 ? 2 : 1;  // words
    const std::size_t literal = i + static_cast<std::size_t>(displacement);
    for (unsigned k = 0; k < size; ++k) data.at(literal + k) = true;
    first = std::min(first, literal);
  }
  for (std::size_t i = first; i < data.size() && i > 0 && code.words[i - 1] == 0; --i) data[i - 1] = true;
  // UDF, where the emitter wants a fault that the location table explains; Capstone does not know it.
  for (const emit::LocationEntry& location : code.locations) {
    const std::size_t i = location.code_offset / 4;
    if (code.words[i] < 0x10000) data[i] = true;
  }
  return data;
}

class Arm64Disassembler {
 public:
  Arm64Disassembler() { EXPECT_EQ(cs_open(CS_ARCH_ARM64, CS_MODE_ARM, &handle_), CS_ERR_OK); }
  ~Arm64Disassembler() { cs_close(&handle_); }
  Arm64Disassembler(const Arm64Disassembler&) = delete;
  Arm64Disassembler& operator=(const Arm64Disassembler&) = delete;

  bool is_valid(uint32_t word) {
    cs_insn* instruction = nullptr;
    const auto* bytes = reinterpret_cast<const uint8_t*>(&word);
    const std::size_t count = cs_disasm(handle_, bytes, sizeof word, 0, 1, &instruction);
    if (count != 0) cs_free(instruction, count);
    return count != 0;
  }

 private:
  csh handle_ = 0;
};

void expect_same(const RegionCode& x, const RegionCode& y) {
  EXPECT_EQ(x.words, y.words);
  ASSERT_EQ(x.entries.size(), y.entries.size());
  for (std::size_t i = 0; i < x.entries.size(); ++i) {
    EXPECT_EQ(x.entries[i].guest, y.entries[i].guest);
    EXPECT_EQ(x.entries[i].code_offset, y.entries[i].code_offset);
    EXPECT_EQ(x.entries[i].live_in, y.entries[i].live_in);
  }
  EXPECT_EQ(x.slots.size(), y.slots.size());
  EXPECT_EQ(x.locations.size(), y.locations.size());
}

// What runtime and signal delivery take for granted about a region's tables.
std::string check_tables(const TranslateInput& input, const RegionCode& code) {
  const std::size_t bytes = code.words.size() * 4;
  if (code.words.empty()) return "no code";
  if (code.entries.empty() || code.entries[0].guest != input.pc) return "the first entry is not the region's start";
  for (const RegionEntry& entry : code.entries) {
    if (entry.code_offset >= bytes || entry.code_offset % 4 != 0) return "an entry outside of the code";
  }
  for (const SlotUse& use : code.slots) {
    if (use.code_offset >= bytes) return "a slot's use outside of the code";
    if (use.pair >= code.slot_pairs.size()) return "a slot pair that does not exist";
  }
  uint32_t last = 0;
  for (const emit::LocationEntry& location : code.locations) {
    if (location.code_offset >= bytes) return "a location outside of the code";
    if (location.code_offset < last) return "locations out of order";
    if (location.instruction >= code.instructions.size()) return "a location without a guest instruction";
    last = location.code_offset;
  }
  for (const GuestRange& range : code.guest_ranges) {
    if (range.start >= range.end) return "an empty guest range";
    if (range.start < input.window.start || range.end > input.window.start + input.window.size) {
      return "guest bytes outside of the window";
    }
  }
  return {};
}

TEST(Translate, SameInputSameOutput) {
  const std::vector<test::CodeSection> sections = libc();
  ASSERT_FALSE(sections.empty());
  unsigned regions = 0;
  for (const test::CodeSection& section : sections) {
    test::for_each_region(section, test::region_input(section, section.address),
                          [&](const TranslateInput& input, TranslateStatus, const RegionCode& code) {
                            if (regions++ % 16 == 0) {
                              RegionCode again;
                              translate(input, again);
                              expect_same(code, again);
                            }
                            return !testing::Test::HasFailure();
                          });
  }
}

TEST(Translate, PositionDoesNotLeakIn) {
  // The same bytes in another buffer: nothing may depend on where the translator's input lies.
  const std::vector<test::CodeSection> sections = libc();
  ASSERT_FALSE(sections.empty());
  const test::CodeSection& section = sections.back();
  const test::CodeSection copy = section;
  for (uint64_t offset = 0; offset < std::min<std::size_t>(section.bytes.size(), 20'000); offset += 64) {
    RegionCode x, y;
    translate(test::region_input(section, section.address + offset), x);
    translate(test::region_input(copy, section.address + offset), y);
    expect_same(x, y);
  }
}

TEST(Translate, Libc) {
  Arm64Disassembler disassembler;
  for (const Variant& variant : variants()) {
    unsigned regions = 0;
    for (const test::CodeSection& section : libc()) {
      TranslateInput start = test::region_input(section, section.address);
      start.host = variant.host;
      start.options = variant.options;
      test::for_each_region(
          section, start, [&](const TranslateInput& input, TranslateStatus status, const RegionCode& code) {
            EXPECT_EQ(status, TranslateStatus::kOk);
            EXPECT_EQ(check_tables(input, code), "") << variant.name << " region " << std::hex << input.pc;
            if (regions++ % (full_run() ? 4 : 32) == 0) {
              const std::vector<bool> data = data_words(code);
              for (std::size_t i = 0; i < code.words.size(); ++i) {
                EXPECT_TRUE(data[i] || disassembler.is_valid(code.words[i]))
                    << variant.name << " region " << std::hex << input.pc << " word " << code.words[i];
              }
            }
            return !testing::Test::HasFailure();
          });
    }
    EXPECT_GT(regions, 1000u);
  }
}

TEST(Translate, RandomBytes) {
  std::mt19937_64 random(7);
  const unsigned rounds = full_run() ? 100'000 : 10'000;
  for (unsigned i = 0; i < rounds && !testing::Test::HasFailure(); ++i) {
    test::CodeSection section;
    section.address = 0x400000 + random() % 4096;
    section.bytes.resize(1 + random() % 64);
    for (uint8_t& byte : section.bytes) byte = static_cast<uint8_t>(random());
    RegionCode code;
    const TranslateInput input = test::region_input(section, section.address);
    ASSERT_EQ(translate(input, code), TranslateStatus::kOk);
    EXPECT_EQ(check_tables(input, code), "");
  }
}

// Instructions of libc with a bit flipped: nearer to valid code than random bytes.
TEST(Translate, DamagedCode) {
  std::mt19937_64 random(8);
  const std::vector<test::CodeSection> sections = libc();
  ASSERT_FALSE(sections.empty());
  const test::CodeSection& section = sections.back();
  const unsigned rounds = full_run() ? 50'000 : 5'000;
  for (unsigned i = 0; i < rounds && !testing::Test::HasFailure(); ++i) {
    const std::size_t size = std::min<std::size_t>(256, section.bytes.size());
    const std::size_t offset = random() % (section.bytes.size() - size + 1);
    test::CodeSection piece;
    piece.address = section.address + offset;
    piece.bytes.assign(section.bytes.begin() + static_cast<std::ptrdiff_t>(offset),
                       section.bytes.begin() + static_cast<std::ptrdiff_t>(offset + size));
    for (unsigned k = 0; k < 8; ++k) piece.bytes[random() % size] ^= static_cast<uint8_t>(1u << (random() % 8));
    RegionCode code;
    const TranslateInput input = test::region_input(piece, piece.address);
    ASSERT_EQ(translate(input, code), TranslateStatus::kOk);
    EXPECT_EQ(check_tables(input, code), "");
  }
}

// cmp edi, 1; je A; cmp edi, 2; je A; cmp edi, 3; je A; mov eax, edi; ret; A: xor eax, eax; ret
test::CodeSection three_branches() {
  test::CodeSection section;
  section.address = 0x400000;
  section.bytes = {0x83, 0xff, 1,    0x74, 13,   0x83, 0xff, 2,    0x74, 8,   0x83,
                   0xff, 3,    0x74, 3,    0x89, 0xf8, 0xc3, 0x31, 0xc0, 0xc3};
  section.bytes.resize(64, 0x90);
  return section;
}

std::vector<uint64_t> entries_of(const RegionCode& code) {
  std::vector<uint64_t> entries;
  for (const RegionEntry& entry : code.entries) entries.push_back(entry.guest);
  return entries;
}

TEST(Translate, EnterAnywhere) {
  const test::CodeSection section = three_branches();
  TranslateInput input = test::region_input(section, section.address);
  RegionCode code;
  ASSERT_EQ(translate(input, code), TranslateStatus::kOk);
  EXPECT_EQ(entries_of(code), std::vector<uint64_t>{0x400000});
  input.enter_anywhere = true;
  ASSERT_EQ(translate(input, code), TranslateStatus::kOk);
  // The block at 0x40000f defines no flags before it returns: whoever comes there has to bring them.
  EXPECT_EQ(entries_of(code), (std::vector<uint64_t>{0x400000, 0x400005, 0x40000a, 0x400012}));
  for (const RegionEntry& entry : code.entries) EXPECT_EQ(entry.live_in, 0);
}

TEST(Translate, EndsAtKnownCode) {
  const test::CodeSection section = three_branches();
  TranslateInput input = test::region_input(section, section.address);
  RegionCode code;
  const auto covers = [&](uint64_t address) {
    return std::any_of(code.instructions.begin(), code.instructions.end(),
                       [&](const ir::GuestInstruction& i) { return i.address == address; });
  };
  ASSERT_EQ(translate(input, code), TranslateStatus::kOk);
  EXPECT_TRUE(covers(0x40000f));
  // Near the start of the region the paths go on all the same.
  input.is_known = [](const void*, uint64_t guest) { return guest == 0x400005 || guest == 0x40000f; };
  ASSERT_EQ(translate(input, code), TranslateStatus::kOk);
  EXPECT_TRUE(covers(0x400005));
  EXPECT_TRUE(covers(0x400012));
  EXPECT_FALSE(covers(0x40000f));
  EXPECT_TRUE(std::any_of(code.slot_pairs.begin(), code.slot_pairs.end(),
                          [](const SlotPair& pair) { return pair.target == 0x40000f; }));
  // The start itself is translated whatever is known.
  input.is_known = [](const void*, uint64_t) { return true; };
  ASSERT_EQ(translate(input, code), TranslateStatus::kOk);
  EXPECT_EQ(code.instructions.front().address, 0x400000u);
}

TEST(Translate, NothingToRead) {
  RegionCode code;
  TranslateInput input;
  input.pc = 0x1000;
  EXPECT_EQ(translate(input, code), TranslateStatus::kNoCode);
  const uint8_t byte = 0x90;
  input.window = {0x2000, &byte, 1};
  EXPECT_EQ(translate(input, code), TranslateStatus::kNoCode);
  input.pc = 0x2001;
  EXPECT_EQ(translate(input, code), TranslateStatus::kNoCode);
}

}  // namespace
}  // namespace phybin
