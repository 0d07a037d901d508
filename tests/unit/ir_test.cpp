// The IR's text form and its verifier: both over regions lifted from libc, and rule by rule on texts.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/support/regions.h"
#include "worker/translator/ir/printer.h"
#include "worker/translator/ir/reader.h"
#include "worker/translator/ir/verifier.h"

namespace phybin::ir {
namespace {

Region read_ok(std::string_view text) {
  Region region;
  EXPECT_EQ(read(text, region), "");
  return region;
}

std::string read_error(std::string_view text) {
  Region region;
  return read(text, region);
}

std::string verify_text(std::string_view text) { return verify(read_ok(text)); }

// A block that ends well, after `ops`.
std::string verify_ops(const std::string& ops) {
  return verify_text("block 0x1000 entry next=0x1001\n" + ops + "\n Jump.0 imm=0x2000\n");
}

constexpr const char* kExample =
    "region 0x401000\n"
    "block 0x401000 entry live_in=nz next=0x401006\n"
    "  @0x401000+3\n"
    "      %1 = GetGpr.64 aux=1 uses=2\n"
    "    ~ SetAf.64 %1 _ imm=0x5 aux2=1 def=a live=a\n"
    "      %3 = Add.32 %1 _ imm=0x5 def=nzcv live=nzcva home=8 uses=2\n"
    "    - SetPf.0 %3 def=p\n"
    "      SetGpr.64 %3\n"
    "      %6 = Load.64 %1 _ to=2 uses=1\n"
    "  @0x401003+3\n"
    "      Branch.0 imm=0x401020 aux=4 use=z live=nzcvpa\n"
    "block 0x401006 next=0x401007\n"
    "  @0x401006+1\n"
    "      Return.64 live=nzcvpa\n";

TEST(Ir, TextIsReadBack) {
  const Region region = read_ok(kExample);
  EXPECT_EQ(print(region), kExample);
  EXPECT_EQ(region.entry, 0x401000u);
  ASSERT_EQ(region.blocks.size(), 2u);
  EXPECT_TRUE(region.blocks[0].is_entry);
  EXPECT_FALSE(region.blocks[1].is_entry);
  EXPECT_EQ(region.blocks[0].live_in, kN | kZ);
  ASSERT_EQ(region.instructions.size(), 3u);
  const Op& add = region.ops[3];
  EXPECT_EQ(add.code, Opcode::kAdd);
  EXPECT_EQ(add.width, 32);
  EXPECT_EQ(add.a, 1);
  EXPECT_EQ(add.b, kNoValue);
  EXPECT_EQ(add.imm, 5);
  EXPECT_EQ(add.flags_def, kNzcv);
  EXPECT_EQ(add.home, 8);
  EXPECT_TRUE(region.ops[6].writes_home);
  EXPECT_EQ(region.ops[6].home, 2);
  EXPECT_EQ(region.ops[7].instruction, 1);
  EXPECT_TRUE(region.ops[2].sunk);
  EXPECT_TRUE(region.ops[4].dead);
  EXPECT_EQ(verify(region), "");
}

TEST(Ir, TextMayBeWrittenFreely) {
  const Region region = read_ok(R"(
    block 0x1000 entry next=0x1005   # no region, no guest instructions
      %rax = GetGpr.64
      %sum = Add.64 %rax %rax def=nzcv

      SetGpr.64 %sum aux=3
      Jump.0 imm=4096
  )");
  EXPECT_EQ(region.entry, 0x1000u);
  EXPECT_EQ(region.ops[2].b, 1);
  EXPECT_EQ(region.ops[4].imm, 4096);
  EXPECT_EQ(verify(region), "");
}

TEST(Ir, ReaderNamesTheLine) {
  EXPECT_EQ(read_error("block 0x1000 entry\n  Frobnicate.64\n"), "line 2: no opcode Frobnicate");
  EXPECT_EQ(read_error("  Jump.0\n"), "line 1: an operation before the first block");
  EXPECT_EQ(read_error("block\n"), "line 1: block needs an address");
  EXPECT_EQ(read_error("block 0x10 exit\n"), "line 1: block: cannot read exit");
  EXPECT_EQ(read_error("block 0x10\n Jump\n"), "line 2: the width is missing");
  EXPECT_EQ(read_error("block 0x10\n GetGpr.64\n"), "line 2: GetGpr defines a value");
  EXPECT_EQ(read_error("block 0x10\n %1 = SetGpr.64 _\n"), "line 2: SetGpr defines no value");
  EXPECT_EQ(read_error("block 0x10\n %1 = Add.64 %1\n"), "line 2: Add: an operand is missing");
  EXPECT_EQ(read_error("block 0x10\n %1 = Add.64 %1 %2\n"), "line 2: nothing defines %2");
  EXPECT_EQ(read_error("block 0x10\n %1 = Const.64 imm=zz\n"), "line 2: cannot read imm=zz");
  EXPECT_EQ(read_error("block 0x10\n %1 = GetGpr.64 aux=256\n"), "line 2: cannot read aux=256");
  EXPECT_EQ(read_error("block 0x10\n %1 = Const.64 def=x\n"), "line 2: cannot read def=x");
  EXPECT_EQ(read_error("block 0x10\n @0x10\n"), "line 2: a guest instruction is @address+length");
}

TEST(Ir, VerifierRejectsValuesOutOfPlace) {
  EXPECT_EQ(verify_ops("%1 = GetGpr.64\n SetGpr.64 %1"), "");
  EXPECT_EQ(verify_ops("%2 = Add.64 %1 _\n %1 = GetGpr.64"), "%1 Add: an operand before its definition");
  EXPECT_EQ(verify_ops("%1 = Add.64 %1 _"), "%1 Add: an operand before its definition");
  EXPECT_EQ(verify_text(R"(
      block 0x1000 entry next=0x1001
        %a = GetGpr.64
        Jump.0 imm=0x1001
      block 0x1001 next=0x1002
        SetGpr.64 %a
        Jump.0 imm=0x1002)"),
            "%3 SetGpr: an operand from another block");
}

TEST(Ir, VerifierRejectsWrongOperands) {
  EXPECT_EQ(verify_ops("%1 = GetVec.128\n %2 = Add.64 %1 _"), "%2 Add: an operand of the wrong class");
  EXPECT_EQ(verify_ops("%1 = GetGpr.64\n SetVec.128 %1"), "%2 SetVec: an operand of the wrong class");
  EXPECT_EQ(verify_ops("%1 = Add.64 _ _ imm=1"), "%1 Add: an operand is absent");
  EXPECT_EQ(verify_ops("%1 = GetVec.128\n %2 = VecAdd.128 %1 _"), "%2 VecAdd: an operand is absent");
  EXPECT_EQ(verify_ops("%1 = Load.64 _ _ imm=0x1000"), "");
  Region region = read_ok("block 0x1000 entry\n %1 = GetGpr.64\n %2 = GetGpr.64\n Jump.0\n");
  region.ops[2].a = 1;
  EXPECT_EQ(verify(region), "%2 GetGpr: an operand too many");
  region = read_ok("block 0x1000 entry\n SetGpr.64 _\n Jump.0\n");
  region.ops[1].a = 9;
  EXPECT_EQ(verify(region), "%1 SetGpr: an operand that does not exist");
  region.ops[1].a = 1;
  EXPECT_EQ(verify(region), "%1 SetGpr: an operand before its definition");
}

TEST(Ir, VerifierRejectsWrongFlags) {
  EXPECT_EQ(verify_ops("%1 = SetCc.32 aux=4 use=z"), "");
  EXPECT_EQ(verify_ops("%1 = SetCc.32 aux=4"), "%1 SetCc: reads flags and does not say which");
  EXPECT_EQ(verify_ops("%1 = SetCc.32 aux=4 use=c"), "%1 SetCc: does not read the flags of its condition");
  EXPECT_EQ(verify_ops("%1 = SetCc.32 aux=16 use=v"), "%1 SetCc: no such condition");
  EXPECT_EQ(verify_ops("%1 = GetGpr.64\n %2 = Add.64 %1 %1 use=c"), "%2 Add: says that it reads flags");
  EXPECT_EQ(verify_ops("SetCarry.0 imm=2 use=c def=c"), "");
  EXPECT_EQ(verify_ops("SetCarry.0 imm=1 use=c def=c"), "%1 SetCarry: says that it reads flags");
  EXPECT_EQ(verify_ops("%1 = GetGpr.64\n SetPf.0 %1"), "%2 SetPf: does not define PF");
  EXPECT_EQ(verify_ops("%1 = GetGpr.64\n SetAf.64 %1 _ def=p"), "%2 SetAf: does not define AF");
}

TEST(Ir, VerifierRejectsWrongNumbers) {
  EXPECT_EQ(verify_ops("%1 = GetGpr.64 aux=16"), "%1 GetGpr: no such register");
  EXPECT_EQ(verify_ops("%1 = GetState.64 imm=0x1000000"), "%1 GetState: outside of the guest's state");
  EXPECT_EQ(verify_ops("%1 = GetGpr.0"), "%1 GetGpr: a value without a width");
  EXPECT_EQ(verify_ops("%1 = Const.24"), "%1 Const: no such width");
  EXPECT_EQ(verify_ops("%1 = GetGpr.64\n %2 = Extract.1 %1 aux=63"), "");
  EXPECT_EQ(verify_ops("%1 = GetGpr.64\n %2 = Extract.8 %1 aux=60"), "%2 Extract: no such bits");
  EXPECT_EQ(verify_ops("%1 = HelperResult2.64"), "%1 HelperResult2: does not follow a call of a helper");
}

TEST(Ir, VerifierRejectsWrongBlocks) {
  EXPECT_EQ(verify_text(""), "region: no blocks");
  EXPECT_EQ(verify_text("block 0x1000\n Jump.0\n"), "block 0: is not an entry");
  EXPECT_EQ(verify_text("region 0x2000\nblock 0x1000 entry\n Jump.0\n"),
            "block 0: does not start at the region's entry");
  EXPECT_EQ(verify_text("block 0x1000 entry\n"), "block 0: is empty");
  EXPECT_EQ(verify_text("block 0x1000 entry\n %1 = GetGpr.64\n"), "block 0: does not end in a terminator");
  EXPECT_EQ(verify_text("block 0x1000 entry\n Jump.0\n Jump.0\n"), "%1 Jump: a terminator inside a block");
  EXPECT_EQ(verify_text("block 0x1000 entry\n Jump.0\nblock 0x1000\n Jump.0\n"),
            "block 1: has the address of another one");
  Region region = read_ok("block 0x1000 entry\n Jump.0\nblock 0x1001\n Jump.0\n");
  region.blocks[1].first = 1;
  EXPECT_EQ(verify(region), "block 1: does not follow the block before it");
  region = read_ok("block 0x1000 entry\n Jump.0\n");
  region.ops.emplace_back();
  EXPECT_EQ(verify(region), "region: operations outside of blocks");
}

TEST(Ir, VerifierRejectsWrongLiveness) {
  const auto check = [](std::string_view text) { return verify_liveness(read_ok(text)); };
  EXPECT_EQ(check(R"(
      block 0x1000 entry next=0x1001
        - %1 = GetGpr.64
        SetGpr.64 %1
        Jump.0 imm=0x2000)"),
            "%2 SetGpr: reads a value that is dead");
  EXPECT_EQ(check("block 0x1000 entry\n - Jump.0\n"), "%1 Jump: a dead terminator");
  EXPECT_EQ(check(R"(
      block 0x1000 entry next=0x1001
        %1 = GetGpr.64
        %2 = Add.64 %1 %1 def=nzcv live=nc
        %3 = SetCc.32 aux=4 use=z
        Jump.0 imm=0x2000)"),
            "%2 Add: defines flags that are read and not said to be live");
  EXPECT_EQ(check(R"(
      block 0x1000 entry next=0x1001
        %1 = SetCc.32 aux=4 use=z
        Jump.0 imm=0x2000)"),
            "block at op 1: reads flags not live on entry");
}

// Regions lifted from libc: valid, and the same after a trip through the text form.
TEST(Ir, RegionsOfLibc) {
  const bool full = std::getenv("PHYBIN_TEST_FULL") != nullptr;
  const std::string libc = std::string(test::kLibraryFolder) + "libc.so.6";
  unsigned regions = 0, checked = 0;
  for (const test::CodeSection& section : test::code_sections(libc)) {
    test::for_each_region(section, test::region_input(section, section.address),
                          [&](const TranslateInput& input, TranslateStatus, const RegionCode&) {
                            if (regions++ % (full ? 8 : 64) != 0) return true;
                            ++checked;
                            const std::string text = translate_to_ir_text(input);
                            Region region;
                            EXPECT_EQ(read(text, region), "") << text;
                            EXPECT_EQ(print(region), text);
                            const std::string error = verify_liveness(region);
                            EXPECT_EQ(error, "") << text;
                            return error.empty();
                          });
  }
  EXPECT_GT(checked, 50u);
}

}  // namespace
}  // namespace phybin::ir
