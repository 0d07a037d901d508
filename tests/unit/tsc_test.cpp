// The guest's time stamp counter is the host's counter, shifted: which shift, that it is part of an image's identity,
// and the three instructions that RDTSC is.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/regions.h"
#include "worker/translator/identity.h"

namespace phybin {
namespace {

TEST(Tsc, Shift) {
  struct Known {
    uint32_t frequency;
    unsigned shift;
  };
  // Counters that machines have, and the ends of the range.
  for (const Known& known : {Known{19'200'000, 6},
                             {24'000'000, 6},
                             {25'000'000, 6},
                             {48'000'000, 5},
                             {50'000'000, 5},
                             {62'500'000, 4},
                             {100'000'000, 4},
                             {121'875'000, 4},
                             {1'000'000, 10},
                             {999'999'999, 1},
                             {1'000'000'000, 0},
                             {UINT32_MAX, 0},
                             {1, 30},
                             {0, 0}}) {
    EXPECT_EQ(tsc_shift_for(known.frequency), known.shift) << known.frequency;
  }
  for (uint64_t frequency = 1; frequency < uint64_t{1} << 32; frequency += frequency / 7 + 1) {
    const unsigned shift = tsc_shift_for(static_cast<uint32_t>(frequency));
    EXPECT_GE(frequency << shift, kLeastTscFrequency);
    EXPECT_TRUE(shift == 0 || frequency << (shift - 1) < kLeastTscFrequency) << frequency;
    EXPECT_LE(shift, proto::kMostTscShift);
  }
}

TEST(Tsc, ShiftIsPartOfAnImagesIdentity) {
  for (unsigned shift = 0; shift <= proto::kMostTscShift; ++shift) {
    HostFeatures host;
    host.tsc_shift = static_cast<uint8_t>(shift);
    EXPECT_EQ(host_feature_bits(host), shift << proto::kTscShiftBit);
    host.crc32 = host.lse = host.frintts = true;
    EXPECT_EQ(host_features_of(host_feature_bits(host)), host);
  }
}

// UBFM Rd, Rn, #immr, #imms: LSL, LSR and UBFX are names of it.
uint32_t ubfm(bool is64, unsigned immr, unsigned imms) {
  return (is64 ? 0xd3400000 : 0x53000000) | immr << 16 | imms << 10;
}

RegionCode translated(const std::vector<uint8_t>& bytes, unsigned shift) {
  test::CodeSection section;
  section.address = 0x400000;
  section.bytes = bytes;
  TranslateInput input = test::region_input(section, section.address);
  input.host.tsc_shift = static_cast<uint8_t>(shift);
  RegionCode code;
  EXPECT_EQ(translate(input, code), TranslateStatus::kOk);
  return code;
}

TEST(Tsc, ThreeInstructions) {
  constexpr uint32_t kReadCounter = 0xd53be040, kMove = 0x2a0003e0;  // MRS Xt, CNTVCT_EL0; MOV Wd, Wm
  for (unsigned shift = 0; shift <= proto::kMostTscShift; ++shift) {
    SCOPED_TRACE(shift);
    const RegionCode code = translated({0x0f, 0x31, 0xc3}, shift);  // rdtsc; ret
    EXPECT_EQ(code.words.size(), translated({0xc3}, shift).words.size() + 3);
    const auto at = std::find_if(code.words.begin(), code.words.end(),
                                 [](uint32_t word) { return (word & ~31u) == kReadCounter; });
    ASSERT_GE(code.words.end() - at, 3);
    const uint32_t count = at[0] & 31, low = at[1] & 31, high = at[2] & 31;
    EXPECT_NE(low, high);
    EXPECT_NE(low, count);
    EXPECT_EQ(at[1] - low, shift == 0 ? kMove | count << 16 : ubfm(false, 32 - shift, 31 - shift) | count << 5);
    EXPECT_EQ(at[2] - high, ubfm(true, 32 - shift, 63 - shift) | count << 5);
  }
}

}  // namespace
}  // namespace phybin
