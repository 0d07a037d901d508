// The decoder against Zydis and Capstone over real code and random bytes.
//
// The ordinary run takes a part of libc and some random bytes. PHYBIN_TEST_FULL=1 sweeps whole libraries and more
// random bytes.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <random>

#include "tests/unit/decode_capstone.h"
#include "tests/unit/decode_zydis.h"

namespace phybin::decode::test {
namespace {

bool full_run() { return std::getenv("PHYBIN_TEST_FULL") != nullptr; }

// Decodes with both; differences are added. Returns the length to go on by.
std::size_t check_one(std::span<const uint8_t> bytes, uint64_t address, Differences& differences) {
  Instruction in;
  const DecodeStatus status = decode(bytes.data(), bytes.size(), address, in);
  const ZydisResult zydis(bytes.data(), bytes.size());
  if (!zydis.valid) {
    // Without MPX its encodings are no-ops, whatever their operands.
    if (status == DecodeStatus::kOk && in.mnemonic != Mnemonic::kNop)
      differences.add({"valid for us only: " + printed_name(in), ""}, bytes);
    return 1;
  }
  if (status != DecodeStatus::kOk) {
    if (is_supported(zydis))
      differences.add({"invalid for us: " + zydis.name(), ""}, bytes);
    else if (in.length != 0 && in.length != zydis.in.length)
      differences.add({"length of unsupported " + zydis.name(), ""}, bytes);
    return zydis.in.length;
  }
  if (in.length != zydis.in.length)
    differences.add({"length of " + printed_name(in) + " / " + zydis.name(), ""}, bytes);
  else if (const Difference difference = compare_with_zydis(in, zydis, address); !difference.kind.empty())
    differences.add(difference, bytes);
  return zydis.in.length;
}

void sweep(const std::string& path, std::size_t limit, Differences& differences) {
  std::size_t count = 0;
  for (const CodeSection& section : code_sections(path)) {
    std::span<const uint8_t> rest = section.bytes;
    uint64_t address = section.address;
    while (!rest.empty() && count++ < limit) {
      const std::size_t length = check_one(rest, address, differences);
      rest = rest.subspan(length);
      address += length;
    }
  }
  std::printf("%s: %zu instructions\n", path.c_str(), count);
}

TEST(DecodeOracle, Libc) {
  Differences differences;
  sweep(std::string(kLibraryFolder) + "libc.so.6", full_run() ? SIZE_MAX : 200'000, differences);
  EXPECT_EQ(differences.report(), "");
}

TEST(DecodeOracle, Libraries) {
  if (!full_run()) GTEST_SKIP() << "set PHYBIN_TEST_FULL=1";
  Differences differences;
  for (const char* name : {"libcrypto.so.3", "libstdc++.so.6", "libm.so.6", "libpython3.11.so.1.0"})
    sweep(std::string(kLibraryFolder) + name, SIZE_MAX, differences);
  EXPECT_EQ(differences.report(), "");
}

TEST(DecodeOracle, Capstone) {
  Differences differences;
  Capstone capstone;
  std::vector<std::string> names = {"libc.so.6"};
  if (full_run()) names = {"libc.so.6", "libcrypto.so.3", "libstdc++.so.6", "libm.so.6", "libpython3.11.so.1.0"};
  const std::size_t limit = full_run() ? SIZE_MAX : 100'000;
  for (const std::string& name : names) {
    std::size_t count = 0;
    for (const CodeSection& section : code_sections(kLibraryFolder + name)) {
      std::span<const uint8_t> rest = section.bytes;
      uint64_t address = section.address;
      while (!rest.empty() && count++ < limit) {
        Instruction in;
        const DecodeStatus status = decode(rest.data(), rest.size(), address, in);
        const cs_insn* theirs = capstone.decode(rest, address);
        if (status == DecodeStatus::kOk && theirs == nullptr && !capstone_accepts_too_little(in))
          differences.add({"valid for us only: " + capstone_name(in), ""}, rest);
        else if (status != DecodeStatus::kOk && theirs != nullptr && in.encoding != Encoding::kEvex &&
                 !capstone_accepts_too_much(*theirs))
          differences.add({std::string("invalid for us: ") + theirs->mnemonic, ""}, rest);
        else if (status == DecodeStatus::kOk && theirs != nullptr)
          if (const Difference difference = compare_with_capstone(capstone, in, *theirs); !difference.kind.empty())
            differences.add(difference, rest);
        const std::size_t length = in.length != 0 ? in.length : 1;
        rest = rest.subspan(std::min(length, rest.size()));
        address += length;
      }
    }
  }
  EXPECT_EQ(differences.report(), "");
}

TEST(DecodeOracle, RandomBytes) {
  Differences differences;
  std::mt19937_64 random(1);
  const unsigned rounds = full_run() ? 5'000'000 : 200'000;
  for (unsigned i = 0; i < rounds; ++i) {
    std::array<uint8_t, 40> bytes;
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    check_one(bytes, 0x400000, differences);
  }
  EXPECT_EQ(differences.report(), "");
}

// Every opcode of every map with each mandatory prefix and W, many ModRM bytes, other prefixes now and then.
TEST(DecodeOracle, AllOpcodes) {
  Differences differences;
  std::mt19937_64 random(2);
  const unsigned modrm_step = full_run() ? 1 : 23;
  for (unsigned form = 0; form < 256; ++form) {
    const unsigned map = form & 7;  // 0..3 legacy, 4..6 VEX, 7 EVEX
    const unsigned prefix = form >> 3 & 3;
    const bool w = (form & 32) != 0;
    const bool extra = (form & 64) != 0;
    const bool l = (form & 128) != 0;
    if (map < 4 && l && !full_run()) continue;
    for (unsigned opcode = 0; opcode < 256; ++opcode) {
      for (unsigned modrm = random() % modrm_step; modrm < 256; modrm += modrm_step) {
        std::vector<uint8_t> bytes;
        const auto add = [&](unsigned byte) { bytes.push_back(static_cast<uint8_t>(byte)); };
        if (extra) {
          constexpr std::array<uint8_t, 8> kPrefixes = {0x64, 0x65, 0x67, 0x2e, 0x66, 0xf0, 0xf2, 0xf3};
          add(kPrefixes[random() % 8]);
        }
        constexpr std::array<uint8_t, 4> kMandatory = {0, 0x66, 0xf3, 0xf2};
        const unsigned vvvv = random() % 2 != 0 ? 15 : random() % 16;
        if (map < 4) {
          if (prefix != 0) add(kMandatory[prefix]);
          if (w || random() % 4 == 0) add(0x40 | (w ? 8 : 0) | (random() % 8));
          if (map != 0) add(0x0f);
          if (map >= 2) add(map == 2 ? 0x38 : 0x3a);
        } else if (map < 7) {
          add(0xc4);
          add((random() & 0xe0) | (map - 3));
          add((w ? 0x80 : 0) | vvvv << 3 | (l ? 4 : 0) | prefix);
        } else {
          add(0x62);
          add((random() & 0xf0) | (random() % 3 + 1));
          add((w ? 0x80 : 0) | vvvv << 3 | 4 | prefix);
          add(random());
        }
        add(opcode);
        add(modrm);
        while (bytes.size() < 40) add(random());
        check_one(bytes, 0x12345678, differences);
      }
    }
  }
  EXPECT_EQ(differences.report(), "");
}

}  // namespace
}  // namespace phybin::decode::test
