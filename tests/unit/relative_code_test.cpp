// Code for images: it may hold no address of the module that it was made from, but for those that its tables name. So
// the same bytes, translated for two places, must give the same words, and tables that differ by the distance alone.
#include <gtest/gtest.h>

#include "tests/support/regions.h"

namespace phybin {
namespace {

constexpr uint64_t kDistance = 0x7e1234567000;

constexpr bool is_adrp(uint32_t word) { return (word & 0x9fffffe0) == 0x90000000; }
constexpr bool is_b(uint32_t word) { return word == 0x14000000; }
constexpr bool is_bl(uint32_t word) { return word == 0x94000000; }

void expect_moved(const RegionCode& x, const RegionCode& y) {
  EXPECT_EQ(x.words, y.words);
  ASSERT_EQ(x.address_uses.size(), y.address_uses.size());
  for (std::size_t i = 0; i < x.address_uses.size(); ++i) {
    EXPECT_EQ(x.address_uses[i].code_offset, y.address_uses[i].code_offset);
    EXPECT_EQ(x.address_uses[i].guest + kDistance, y.address_uses[i].guest);
  }
  ASSERT_EQ(x.exits.size(), y.exits.size());
  for (std::size_t i = 0; i < x.exits.size(); ++i) EXPECT_EQ(x.exits[i].target + kDistance, y.exits[i].target);
  ASSERT_EQ(x.entries.size(), y.entries.size());
  for (std::size_t i = 0; i < x.entries.size(); ++i) EXPECT_EQ(x.entries[i].guest + kDistance, y.entries[i].guest);
  ASSERT_EQ(x.locations.size(), y.locations.size());
  for (std::size_t i = 0; i < x.locations.size(); ++i) {
    EXPECT_EQ(x.locations[i].code_offset, y.locations[i].code_offset);
    EXPECT_EQ(x.instructions[x.locations[i].instruction].address + kDistance,
              y.instructions[y.locations[i].instruction].address);
  }
}

// What the builder of images relies on.
std::string check_tables(const RegionCode& code) {
  if (!code.slots.empty() || !code.slot_pairs.empty()) return "slots in spite of open exits";
  for (const AddressUse& use : code.address_uses) {
    const uint32_t word = code.words[use.code_offset / 4];
    if (!is_adrp(word)) return "no ADRP at the use of an address";
    if ((use.guest & 0xfff) == 0) continue;
    // The instruction that adds the rest; a register that has to move first may come in between, or a barrier.
    const uint32_t reg = word & 31;
    std::size_t next = use.code_offset / 4 + 1;
    for (unsigned between = 0; (code.words[next] >> 5 & 31) != reg; ++next) {
      if (++between == 4) return "the page of an address is not used";
    }
    const uint32_t user = code.words[next];
    const bool adds = (user & 0xffc00000) == 0x91000000;
    if (adds && (user >> 10 & 0xfff) != (use.guest & 0xfff)) return "another address than the table says";
    const bool accesses = (user & 0x3b000000) == 0x39000000;  // any register, unsigned offset
    if (!adds && !accesses) return "an address is used for something else";
  }
  for (const OpenExit& exit : code.exits) {
    const uint32_t hot = code.words[exit.hot / 4];
    if (!is_b(hot) && !is_bl(hot)) return "no branch at an exit";
    if (exit.cold <= exit.hot || exit.cold_branch < exit.cold) return "an exit without its cold code";
    if (!is_b(code.words[exit.cold_branch / 4])) return "no branch behind an exit's cold code";
  }
  return {};
}

TEST(RelativeCode, HoldsNoAddress) {
  const std::vector<test::CodeSection> sections =
      test::code_sections(std::string(test::kLibraryFolder) + "libc.so.6");
  ASSERT_FALSE(sections.empty());
  for (const MemoryModel model : {MemoryModel::kWeak, MemoryModel::kTso}) {
    unsigned regions = 0, uses = 0, exits = 0;
    for (const test::CodeSection& section : sections) {
      TranslateInput start = test::region_input(section, section.address);
      start.options.memory_model = model;
      start.relative_addresses = true;
      start.open_exits = true;
      test::for_each_region(section, start,
                            [&](const TranslateInput& input, TranslateStatus status, const RegionCode& code) {
                              EXPECT_EQ(status, TranslateStatus::kOk);
                              EXPECT_EQ(check_tables(code), "") << std::hex << input.pc;
                              uses += static_cast<unsigned>(code.address_uses.size());
                              exits += static_cast<unsigned>(code.exits.size());
                              if (regions++ % 8 == 0) {
                                TranslateInput moved = input;
                                moved.pc += kDistance;
                                moved.window.start += kDistance;
                                RegionCode other;
                                translate(moved, other);
                                expect_moved(code, other);
                              }
                              return !testing::Test::HasFailure();
                            });
    }
    EXPECT_GT(uses, 10'000u);
    EXPECT_GT(exits, 10'000u);
  }
}

// The address of the module's first byte is a number like any other when the module is translated as linked, and must
// not be taken for the constant 0.
TEST(RelativeCode, AddressZero) {
  // lea rax, [rip - 7]; mov [rcx], rax; add rax, 1; ret
  test::CodeSection section{
      0, {0x48, 0x8d, 0x05, 0xf9, 0xff, 0xff, 0xff, 0x48, 0x89, 0x01, 0x48, 0x83, 0xc0, 0x01, 0xc3}};
  for (const uint64_t address : {uint64_t{0}, kDistance}) {
    section.address = address;
    TranslateInput input = test::region_input(section, address);
    input.relative_addresses = true;
    RegionCode code;
    ASSERT_EQ(translate(input, code), TranslateStatus::kOk);
    ASSERT_EQ(code.address_uses.size(), 1u);
    EXPECT_EQ(code.address_uses[0].guest, address);
    EXPECT_EQ(code.words[0], 0x90000008u);  // adrp x8
    EXPECT_EQ(code.words[1], 0xf9000128u);  // str x8, [x9]
    EXPECT_EQ(code.words[2], 0xb1000508u);  // adds x8, x8, #1
  }
}

}  // namespace
}  // namespace phybin
