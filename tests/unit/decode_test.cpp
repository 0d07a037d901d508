// The decoder's contract, by hand-picked encodings; decode_oracle_test.cpp covers the breadth.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "worker/translator/decode/instruction.h"
#include "worker/translator/decode/opcode_table.h"

namespace phybin::decode {
namespace {

using enum Mnemonic;
using enum OperandKind;

constexpr uint64_t kAddress = 0x400000;

std::vector<uint8_t> parse(const std::string& hex) {
  std::istringstream stream(hex);
  std::vector<uint8_t> bytes;
  for (std::string word; stream >> word;) bytes.push_back(static_cast<uint8_t>(std::stoul(word, nullptr, 16)));
  return bytes;
}

// Decodes with exactly these bytes available, so that a read beyond them is found by the sanitizer.
DecodeStatus decode_exact(const uint8_t* bytes, std::size_t size, Instruction& out) {
  const std::unique_ptr<uint8_t[]> copy(new uint8_t[size]);
  std::copy(bytes, bytes + size, copy.get());
  return decode(copy.get(), size, kAddress, out);
}

DecodeStatus status_of(const std::string& hex) {
  const std::vector<uint8_t> bytes = parse(hex);
  Instruction in;
  return decode_exact(bytes.data(), bytes.size(), in);
}

// A valid instruction that takes all of its bytes; also checks what every valid instruction must satisfy.
Instruction decoded(const std::string& hex) {
  std::vector<uint8_t> bytes = parse(hex);
  Instruction in;
  EXPECT_EQ(decode_exact(bytes.data(), bytes.size(), in), DecodeStatus::kOk) << hex;
  EXPECT_EQ(in.length, bytes.size()) << hex;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    Instruction shorter;
    EXPECT_EQ(decode_exact(bytes.data(), size, shorter), DecodeStatus::kOutOfBytes) << hex << " cut to " << size;
    EXPECT_EQ(shorter, Instruction{});
  }
  bytes.resize(64, 0xcc);
  Instruction with_more;
  EXPECT_EQ(decode(bytes.data(), bytes.size(), kAddress, with_more), DecodeStatus::kOk) << hex;
  EXPECT_EQ(with_more, in) << hex;
  return in;
}

// Operands as text: kind, register, size.
std::string operands(const Instruction& in) {
  constexpr std::array<const char*, 12> kKinds = {"none", "gpr",     "high",  "vector", "mmx", "st",
                                                  "seg",  "control", "debug", "mem",    "imm", "target"};
  std::string text;
  for (unsigned i = 0; i < in.operand_count; ++i) {
    const Operand& operand = in.operands[i];
    text += (i != 0 ? " " : "") + std::string(kKinds[static_cast<std::size_t>(operand.kind)]);
    if (operand.reg != kNoRegister) text += std::to_string(operand.reg);
    text += ":" + std::to_string(operand.size);
  }
  for (unsigned i = in.operand_count; i < in.operands.size(); ++i) EXPECT_EQ(in.operands[i], Operand{});
  return text;
}

Memory memory(uint8_t base, uint8_t index = kNoRegister, uint8_t scale_log2 = 0, int64_t disp = 0) {
  Memory result;
  result.base = base;
  result.index = index;
  result.scale_log2 = scale_log2;
  result.disp = disp;
  return result;
}

void expect(const std::string& hex, Mnemonic mnemonic, const std::string& operand_text, unsigned operand_size) {
  const Instruction in = decoded(hex);
  EXPECT_STREQ(mnemonic_name(in.mnemonic), mnemonic_name(mnemonic)) << hex;
  EXPECT_EQ(operands(in), operand_text) << hex;
  EXPECT_EQ(in.operand_size, operand_size) << hex;
}

TEST(Decode, Names) {
  EXPECT_STREQ(mnemonic_name(kInvalid), "invalid");
  EXPECT_STREQ(mnemonic_name(kAdc), "adc");
  EXPECT_STREQ(mnemonic_name(kCmpxchg16b), "cmpxchg16b");
  EXPECT_STREQ(mnemonic_name(kVfnmsub231sd), "vfnmsub231sd");
}

// Every operation has an encoding: none of the list is a name only.
TEST(Decode, EveryMnemonicIsInTheTable) {
  std::vector<bool> seen(kMnemonicCount);
  std::vector<std::size_t> pending;
  for (std::size_t root = 0; root < kRootCount; ++root) pending.push_back(root);
  while (!pending.empty()) {
    const Entry entry = kOpcodeTable[pending.back()];
    pending.pop_back();
    if (entry.has(kEntrySelect))
      for (std::size_t i = 0; i < entry.field_count(); ++i) pending.push_back(entry.value() + i);
    else if (!entry.has(kEntrySpecial))
      seen[entry.value()] = true;
  }
  for (unsigned i = 0; i < kMnemonicCount; ++i) EXPECT_TRUE(seen[i]) << mnemonic_name(static_cast<Mnemonic>(i));
}

TEST(Decode, OperandSizes) {
  expect("00 d8", kAdd, "gpr0:1 gpr3:1", 1);
  expect("66 01 d8", kAdd, "gpr0:2 gpr3:2", 2);
  expect("01 d8", kAdd, "gpr0:4 gpr3:4", 4);
  expect("48 01 d8", kAdd, "gpr0:8 gpr3:8", 8);
  expect("4d 01 d8", kAdd, "gpr8:8 gpr11:8", 8);
  expect("66 48 01 d8", kAdd, "gpr0:8 gpr3:8", 8);
  expect("4c 03 25 00 00 00 00", kAdd, "gpr12:8 mem:8", 8);
  expect("53", kPush, "gpr3:8", 8);
  expect("66 53", kPush, "gpr3:2", 2);
  expect("41 5f", kPop, "gpr15:8", 8);
  expect("48 98", kCbw, "", 8);
  expect("66 99", kCwd, "", 2);
  expect("63 c8", kMovsxd, "gpr1:4 gpr0:4", 4);
  expect("48 63 c8", kMovsxd, "gpr1:8 gpr0:4", 8);
  expect("66 63 c8", kMovsxd, "gpr1:2 gpr0:2", 2);
  expect("0f b6 c9", kMovzx, "gpr1:4 gpr1:1", 4);
  expect("48 0f bf 08", kMovsx, "gpr1:8 mem:2", 8);
  expect("66 0f be c1", kMovsx, "gpr0:2 gpr1:1", 2);
  expect("0f c8", kBswap, "gpr0:4", 4);
  expect("49 0f cf", kBswap, "gpr15:8", 8);
}

TEST(Decode, ByteRegisters) {
  expect("88 e0", kMov, "gpr0:1 high0:1", 1);
  expect("88 f9", kMov, "gpr1:1 high3:1", 1);
  expect("40 88 e0", kMov, "gpr0:1 gpr4:1", 1);
  expect("44 88 ff", kMov, "gpr7:1 gpr15:1", 1);
  expect("b4 7f", kMov, "high0:1 imm:1", 1);
  expect("40 b4 7f", kMov, "gpr4:1 imm:1", 1);
  expect("0f 94 c4", kSetcc, "high0:1", 1);
  expect("41 0f 94 c4", kSetcc, "gpr12:1", 1);
}

TEST(Decode, RexCountsOnlyBeforeTheOpcode) {
  expect("48 66 01 d8", kAdd, "gpr0:2 gpr3:2", 2);
  expect("4f 2e 01 d8", kAdd, "gpr0:4 gpr3:4", 4);
  expect("4f 48 01 d8", kAdd, "gpr0:8 gpr3:8", 8);
  expect("40 f3 88 e0", kMov, "gpr0:1 high0:1", 1);
  // Between a mandatory prefix and 0F it is where it belongs; before the prefix it is lost.
  expect("f3 48 0f 2a c1", kCvtsi2ss, "vector0:4 gpr1:8", 8);
  expect("48 f3 0f 2a c1", kCvtsi2ss, "vector0:4 gpr1:4", 4);
}

TEST(Decode, PrefixOrders) {
  for (const char* hex : {"66 f0 64 01 18", "64 66 f0 01 18", "f0 64 66 01 18", "2e 66 64 f0 66 01 18"}) {
    const Instruction in = decoded(hex);
    EXPECT_EQ(in.mnemonic, kAdd);
    EXPECT_EQ(operands(in), "mem:2 gpr3:2");
    EXPECT_EQ(in.prefixes, kPrefixLock | kPrefixOperandSize);
    EXPECT_EQ(in.memory.segment, 4);
  }
  // The last one of F2 and F3 counts; of the segments, the last one of FS and GS.
  EXPECT_EQ(decoded("f2 f3 a4").prefixes, kPrefixRep);
  EXPECT_EQ(decoded("f3 f2 a4").prefixes, kPrefixRepne);
  EXPECT_EQ(decoded("64 65 8b 00").memory.segment, 5);
  EXPECT_EQ(decoded("65 2e 8b 00").memory.segment, 5);
  EXPECT_EQ(decoded("3e 8b 00").memory.segment, kNoRegister);
  expect("f2 f3 0f 10 c1", kMovss, "vector0:4 vector1:4", 0);
  expect("66 f2 0f 10 c1", kMovsd, "vector0:8 vector1:8", 0);
}

TEST(Decode, PrefixesThatAreOpcode) {
  EXPECT_EQ(decoded("66 0f 58 c1").prefixes, 0);
  EXPECT_EQ(decoded("f3 0f 58 c1").prefixes, 0);
  EXPECT_EQ(decoded("f3 0f b8 c1").prefixes, 0);
  EXPECT_EQ(decoded("66 f3 0f b8 c1").prefixes, kPrefixOperandSize);
  expect("66 f3 0f b8 c1", kPopcnt, "gpr0:2 gpr1:2", 2);
  EXPECT_EQ(decoded("f3 c3").prefixes, kPrefixRep);
  EXPECT_EQ(decoded("f2 ff 20").prefixes, kPrefixRepne);
  EXPECT_EQ(decoded("f3 0f bc c1").mnemonic, kTzcnt);
  EXPECT_EQ(decoded("f2 0f bc c1").mnemonic, kBsf);
  expect("66 f2 0f 38 f1 c1", kCrc32, "gpr0:4 gpr1:2", 2);
  expect("f2 48 0f 38 f0 c1", kCrc32, "gpr0:8 gpr1:1", 8);
  expect("66 0f 38 f0 08", kMovbe, "gpr1:2 mem:2", 2);
}

TEST(Decode, Lock) {
  EXPECT_EQ(decoded("f0 48 0f b1 0b").prefixes, kPrefixLock);
  EXPECT_EQ(decoded("f0 87 0b").prefixes, kPrefixLock);
  EXPECT_EQ(decoded("f0 0f ba 28 01").mnemonic, kBts);
  EXPECT_EQ(decoded("f0 48 0f c7 0b").mnemonic, kCmpxchg16b);
  EXPECT_EQ(decoded("f2 f0 ff 03").prefixes, kPrefixLock | kPrefixRepne);
  for (const char* hex : {"f0 01 d8",        // register destination
                          "f0 03 18",        // memory is the source
                          "f0 39 18",        // CMP
                          "f0 89 18",        // MOV
                          "f0 0f ba 20 01",  // BT
                          "f0 c1 20 01",     // shifts
                          "f0 90", "f0 c5 f8 77"})
    EXPECT_EQ(status_of(hex), DecodeStatus::kInvalid) << hex;
}

TEST(Decode, Memory) {
  EXPECT_EQ(decoded("8b 00").memory, memory(0));
  EXPECT_EQ(decoded("41 8b 43 80").memory, memory(11, kNoRegister, 0, -128));
  EXPECT_EQ(decoded("8b 83 78 56 34 f2").memory, memory(3, kNoRegister, 0, int32_t(0xf2345678)));
  EXPECT_EQ(decoded("8b 04 24").memory, memory(4));
  EXPECT_EQ(decoded("43 8b 44 e5 10").memory, memory(13, 12, 3, 16));
  EXPECT_EQ(decoded("8b 04 8b").memory, memory(3, 1, 2));
  EXPECT_EQ(decoded("42 8b 04 23").memory, memory(3, 12));
  EXPECT_EQ(decoded("8b 04 25 00 00 00 80").memory, memory(kNoRegister, kNoRegister, 0, int32_t(0x80000000)));
  EXPECT_EQ(decoded("8b 04 cd 00 10 00 00").memory, memory(kNoRegister, 1, 3, 0x1000));
  // REX.B does not make R13 of "no base", nor R12 of "SIB follows".
  EXPECT_EQ(decoded("41 8b 04 25 04 00 00 00").memory, memory(kNoRegister, kNoRegister, 0, 4));
  EXPECT_EQ(decoded("41 8b 04 24").memory, memory(12));
  EXPECT_EQ(decoded("41 8b 45 00").memory, memory(13));
}

TEST(Decode, RipRelative) {
  EXPECT_EQ(decoded("8b 05 10 00 00 00").memory, memory(kRipBase, kNoRegister, 0, kAddress + 6 + 16));
  EXPECT_EQ(decoded("41 8b 05 f0 ff ff ff").memory.disp, int64_t(kAddress + 7 - 16));
  // Relative to the end, immediates included.
  const Instruction add = decoded("48 81 05 00 01 00 00 78 56 34 92");
  EXPECT_EQ(add.memory.disp, int64_t(kAddress + 11 + 0x100));
  EXPECT_EQ(add.imm, int32_t(0x92345678));
  EXPECT_EQ(decoded("83 3d 00 01 00 00 ff").memory.disp, int64_t(kAddress + 7 + 0x100));
  EXPECT_EQ(decoded("66 c7 05 00 01 00 00 34 12").memory.disp, int64_t(kAddress + 9 + 0x100));
  EXPECT_EQ(decoded("c4 e3 71 4a 05 00 01 00 00 20").memory.disp, int64_t(kAddress + 10 + 0x100));
}

TEST(Decode, AddressSize) {
  const Instruction in = decoded("67 8b 44 24 f0");
  EXPECT_TRUE(in.memory.address32);
  EXPECT_EQ(in.memory.base, 4);
  EXPECT_EQ(in.memory.disp, -16);
  EXPECT_TRUE(decoded("67 8d 05 00 00 00 00").memory.address32);
  EXPECT_TRUE(decoded("67 e3 00").memory.address32);
  EXPECT_TRUE(decoded("67 f3 a4").memory.address32);
  EXPECT_FALSE(decoded("e3 00").memory.address32);
  EXPECT_EQ(decoded("65 ac").memory.segment, 5);
  // LEA computes no linear address.
  EXPECT_EQ(decoded("64 8d 00").memory.segment, kNoRegister);
}

TEST(Decode, MemoryOffsets) {
  const Instruction load = decoded("48 a1 88 77 66 55 44 33 22 91");
  EXPECT_EQ(load.mnemonic, kMov);
  EXPECT_EQ(operands(load), "gpr0:8 mem:8");
  EXPECT_EQ(load.memory, memory(kNoRegister, kNoRegister, 0, int64_t(0x9122334455667788)));
  const Instruction store = decoded("67 a2 00 00 00 90");
  EXPECT_EQ(operands(store), "mem:1 gpr0:1");
  EXPECT_EQ(store.operand_size, 1);
  EXPECT_EQ(store.memory.disp, 0x90000000);
  EXPECT_EQ(operands(decoded("66 64 a3 00 00 00 00 00 00 00 00")), "mem:2 gpr0:2");
}

TEST(Decode, Immediates) {
  EXPECT_EQ(decoded("83 c0 ff").imm, -1);
  EXPECT_EQ(operands(decoded("48 83 c0 ff")), "gpr0:8 imm:8");
  EXPECT_EQ(decoded("80 c1 80").imm, -128);
  EXPECT_EQ(decoded("66 81 c1 00 80").imm, -0x8000);
  EXPECT_EQ(decoded("66 48 81 c1 00 80 00 00").imm, 0x8000);
  EXPECT_EQ(decoded("48 c7 c0 ff ff ff ff").imm, -1);
  EXPECT_EQ(decoded("48 b8 88 77 66 55 44 33 22 11").imm, 0x1122334455667788);
  EXPECT_EQ(operands(decoded("b8 88 77 66 55")), "gpr0:4 imm:4");
  EXPECT_EQ(decoded("66 b8 88 77").imm, 0x7788);
  EXPECT_EQ(operands(decoded("6a ff")), "imm:8");
  EXPECT_EQ(operands(decoded("66 68 34 12")), "imm:2");
  EXPECT_EQ(decoded("68 00 00 00 80").imm, int32_t(0x80000000));
  EXPECT_EQ(decoded("c1 e0 ff").imm, 255);
  EXPECT_EQ(operands(decoded("d1 e0")), "gpr0:4 imm:1");
  EXPECT_EQ(decoded("d1 e0").imm, 1);
  EXPECT_EQ(operands(decoded("d3 e0")), "gpr0:4 gpr1:1");
  EXPECT_EQ(decoded("c2 00 80").imm, 0x8000);
  const Instruction enter = decoded("c8 10 80 03");
  EXPECT_EQ(enter.imm, 0x8010);
  EXPECT_EQ(enter.imm2, 3);
  EXPECT_EQ(operands(decoded("6b c1 80")), "gpr0:4 gpr1:4 imm:4");
  EXPECT_EQ(operands(decoded("f7 e9")), "gpr1:4");
  EXPECT_EQ(decoded("66 0f 70 c1 e4").imm, 0xe4);
}

TEST(Decode, Branches) {
  const Instruction jcc = decoded("74 fe");
  EXPECT_EQ(jcc.mnemonic, kJcc);
  EXPECT_EQ(jcc.condition, 4);
  EXPECT_EQ(jcc.imm, int64_t(kAddress));
  EXPECT_EQ(operands(jcc), "target:8");
  EXPECT_EQ(decoded("0f 8f 00 01 00 00").condition, 15);
  EXPECT_EQ(decoded("0f 8f 00 01 00 00").imm, int64_t(kAddress + 6 + 0x100));
  EXPECT_EQ(decoded("e8 00 00 00 00").mnemonic, kCall);
  EXPECT_EQ(decoded("eb 10").mnemonic, kJmp);
  expect("ff d0", kCallIndirect, "gpr0:8", 8);
  expect("41 ff 24 c4", kJmpIndirect, "mem:8", 8);
  // 66 does not change near branches (Intel; the displacement keeps its four bytes).
  EXPECT_EQ(decoded("66 e9 00 00 01 00").imm, int64_t(kAddress + 6 + 0x10000));
  EXPECT_EQ(decoded("66 0f 84 00 00 01 00").imm, int64_t(kAddress + 7 + 0x10000));
  expect("66 ff e0", kJmpIndirect, "gpr0:8", 8);
  expect("66 c3", kRet, "", 8);
  EXPECT_EQ(decoded("2e 74 00").mnemonic, kJcc);
}

TEST(Decode, Nops) {
  for (const char* hex :
       {"90", "66 90", "48 90", "0f 1f 00", "66 2e 0f 1f 84 00 00 00 00 00", "0f 1e c8", "0f 0d c0"})
    EXPECT_EQ(decoded(hex).mnemonic, kNop) << hex;
  EXPECT_EQ(decoded("f3 90").mnemonic, kPause);
  EXPECT_EQ(decoded("f3 0f 1e fa").mnemonic, kEndbr64);
  EXPECT_EQ(decoded("0f 18 08").mnemonic, kPrefetch);
  expect("41 90", kXchg, "gpr8:4 gpr0:4", 4);
  expect("48 91", kXchg, "gpr1:8 gpr0:8", 8);
}

TEST(Decode, Conditions) {
  for (unsigned cc = 0; cc < 16; ++cc) {
    const auto code = [&](unsigned base) {
      std::ostringstream text;
      text << std::hex << "0f " << base + cc << " c1";
      return text.str();
    };
    EXPECT_EQ(decoded(code(0x40)).mnemonic, kCmovcc);
    EXPECT_EQ(decoded(code(0x40)).condition, cc);
    EXPECT_EQ(decoded(code(0x90)).condition, cc);
  }
  EXPECT_EQ(decoded("da c9").condition, 4);
  EXPECT_EQ(decoded("db d9").condition, 11);
}

TEST(Decode, Sse) {
  expect("0f 28 c1", kMovaps, "vector0:16 vector1:16", 0);
  expect("44 0f 29 00", kMovaps, "mem:16 vector8:16", 0);
  expect("f3 0f 58 00", kAddss, "vector0:4 mem:4", 0);
  expect("66 45 0f 6e c1", kMovd, "vector8:16 gpr9:4", 0);
  expect("66 4d 0f 6e c1", kMovq, "vector8:16 gpr9:8", 0);
  expect("66 48 0f 7e c1", kMovq, "gpr1:8 vector0:8", 0);
  expect("f3 0f 7e 00", kMovq, "vector0:16 mem:8", 0);
  expect("66 0f d6 00", kMovq, "mem:8 vector0:8", 0);
  expect("0f 12 c1", kMovhlps, "vector0:16 vector1:16", 0);
  expect("0f 12 01", kMovlps, "vector0:8 mem:8", 0);
  expect("0f fc c1", kPaddb, "mmx0:8 mmx1:8", 0);
  expect("4d 0f fc c1", kPaddb, "mmx0:8 mmx1:8", 0);
  expect("66 0f fc c1", kPaddb, "vector0:16 vector1:16", 0);
  expect("66 0f 73 d9 04", kPsrldq, "vector1:16 imm:1", 0);
  expect("66 0f c5 c1 03", kPextrw, "gpr0:4 vector1:16 imm:1", 0);
  expect("66 0f 3a 14 01 03", kPextrb, "mem:1 vector0:16 imm:1", 0);
  expect("66 0f 3a 14 c1 03", kPextrb, "gpr1:4 vector0:16 imm:1", 0);
  expect("66 0f 38 10 c1", kPblendvb, "vector0:16 vector1:16", 0);
  expect("f2 48 0f 2d c1", kCvtsd2si, "gpr0:8 vector1:8", 8);
  expect("66 0f 3a 0f c1 05", kPalignr, "vector0:16 vector1:16 imm:1", 0);
  expect("0f ae 38", kClflush, "mem:1", 0);
  expect("0f ae e8", kLfence, "", 0);
  expect("48 0f ae 00", kFxsave, "mem:0", 8);
}

TEST(Decode, X87) {
  expect("d8 c3", kFadd, "st0:10 st3:10", 0);
  expect("dc c3", kFadd, "st3:10 st0:10", 0);
  expect("dc e3", kFsubr, "st3:10 st0:10", 0);
  expect("de e9", kFsubp, "st1:10 st0:10", 0);
  expect("d9 c1", kFld, "st1:10", 0);
  expect("db 28", kFld, "mem:10", 0);
  expect("df 28", kFild, "mem:8", 0);
  expect("df e0", kFnstsw, "gpr0:2", 0);
  expect("d9 38", kFnstcw, "mem:2", 0);
  expect("df f1", kFcomip, "st0:10 st1:10", 0);
  expect("d9 fb", kFsincos, "", 0);
  expect("9b", kFwait, "", 0);
}

TEST(Decode, Vex) {
  const Instruction add = decoded("c5 f4 58 c2");
  EXPECT_EQ(add.mnemonic, kVaddps);
  EXPECT_EQ(add.encoding, Encoding::kVex256);
  EXPECT_EQ(operands(add), "vector0:32 vector1:32 vector2:32");
  EXPECT_EQ(decoded("c5 f0 58 c2").encoding, Encoding::kVex128);
  expect("c4 41 32 58 c2", kVaddss, "vector8:16 vector9:16 vector10:4", 0);
  expect("c5 fa 10 00", kVmovss, "vector0:16 mem:4", 0);
  expect("c5 f2 10 c2", kVmovss, "vector0:16 vector1:16 vector2:4", 0);
  expect("c4 e3 71 4a c2 30", kVblendvps, "vector0:16 vector1:16 vector2:16 vector3:16", 0);
  expect("c4 e2 f0 f2 c2", kAndn, "gpr0:8 gpr1:8 gpr2:8", 8);
  expect("c4 e2 78 f3 ca", kBlsr, "gpr0:4 gpr2:4", 4);
  expect("c4 e3 7b f0 c1 05", kRorx, "gpr0:4 gpr1:4 imm:1", 4);
  expect("c4 e2 f5 b8 c2", kVfmadd231pd, "vector0:32 vector1:32 vector2:32", 0);
  expect("c4 e2 7d 20 00", kVpmovsxbw, "vector0:32 mem:16", 0);
  expect("c5 f8 77", kVzeroupper, "", 0);
  expect("c5 fc 77", kVzeroall, "", 0);
  const Instruction gather = decoded("c4 e2 69 92 04 8b");
  EXPECT_EQ(operands(gather), "vector0:16 mem:4 vector2:16");
  EXPECT_TRUE(gather.memory.vsib);
  EXPECT_EQ(gather.memory.index, 1);
  EXPECT_EQ(gather.memory.scale_log2, 2);
  EXPECT_EQ(decoded("c4 e2 69 92 04 23").memory.index, 4);
  for (const char* hex : {"66 c5 f4 58 c2", "f3 c5 f4 58 c2", "48 c5 f4 58 c2",  // prefixes that VEX excludes
                          "c5 70 28 c2",                                         // vvvv without an operand
                          "c4 e2 71 92 04 8b", "c4 e2 69 92 03",                 // gather: mask = index; no SIB
                          "c4 e4 71 58 c2"})                                     // no such map
    EXPECT_EQ(status_of(hex), DecodeStatus::kInvalid) << hex;
}

TEST(Decode, InvalidIn64BitMode) {
  for (const char* hex : {"06",
                          "0e",
                          "16",
                          "1e",
                          "27",
                          "2f",
                          "37",
                          "3f",
                          "60",
                          "61",
                          "82 c0 01",
                          "9a 00 00 00 00 00 00",
                          "ce",
                          "d4 0a",
                          "d5 0a",
                          "d6",
                          "ea 00 00 00 00 00 00",
                          "8e c8",
                          "8d c0",
                          "0f 04",
                          "0f ae c0",
                          "0f 20 e8",
                          "c6 c8 00",
                          "8f c8",
                          "ff f8",
                          "0f 01 d5"})
    EXPECT_EQ(status_of(hex), DecodeStatus::kInvalid) << hex;
  EXPECT_EQ(decoded("0f 0b").mnemonic, kUd2);
}

TEST(Decode, Length) {
  expect("66 66 66 66 66 66 66 66 66 66 66 66 66 66 90", kNop, "", 0);
  EXPECT_EQ(status_of("66 66 66 66 66 66 66 66 66 66 66 66 66 66 66 90"), DecodeStatus::kTooLong);
  EXPECT_EQ(status_of("2e 2e 2e 2e 2e 48 81 84 24 00 00 00 00 00 00 00 00"), DecodeStatus::kTooLong);
  EXPECT_EQ(status_of("66 66 66 66 66 66 66 66 66 66 66 66 66 66"), DecodeStatus::kOutOfBytes);
}

TEST(Decode, EvexIsInvalidWithALength) {
  const std::vector<uint8_t> bytes = parse("62 f3 7d 48 3f 84 24 00 01 00 00 05");
  Instruction in;
  EXPECT_EQ(decode_exact(bytes.data(), bytes.size(), in), DecodeStatus::kInvalid);
  EXPECT_EQ(in.mnemonic, kInvalid);
  EXPECT_EQ(in.encoding, Encoding::kEvex);
  EXPECT_EQ(in.length, bytes.size());
}

// With fewer bytes the result is the same, or that more are needed.
TEST(Decode, TruncatedRandomBytes) {
  std::mt19937_64 random(3);
  for (unsigned round = 0; round < 50'000; ++round) {
    std::array<uint8_t, 48> bytes;
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    if (round % 2 != 0) bytes[0] = 0x0f;
    Instruction whole;
    const DecodeStatus status = decode(bytes.data(), bytes.size(), kAddress, whole);
    const std::size_t size = random() % 18;
    Instruction part;
    const DecodeStatus part_status = decode_exact(bytes.data(), size, part);
    if (part_status == DecodeStatus::kOutOfBytes) {
      EXPECT_LT(size, kMaxInstructionLength);
      EXPECT_TRUE(status != DecodeStatus::kOk || whole.length > size);
    } else {
      EXPECT_EQ(part_status, status);
      EXPECT_EQ(part, whole);
    }
  }
}

}  // namespace
}  // namespace phybin::decode
