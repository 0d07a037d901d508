// passes::analyse_liveness, on regions written as text: what it finds dead, where it lets PF and AF wait, which
// values it computes straight into the home of a guest register.
#include "worker/translator/passes/liveness.h"

#include <gtest/gtest.h>

#include <string_view>

#include "worker/translator/ir/printer.h"
#include "worker/translator/ir/reader.h"
#include "worker/translator/ir/verifier.h"

namespace phybin::passes {
namespace {

using ir::kNzcv;
using ir::Op;
using ir::Region;

class Liveness : public testing::Test {
 protected:
  void analyse(std::string_view text) {
    ASSERT_EQ(ir::read(text, region_), "");
    ASSERT_EQ(ir::verify(region_), "");
    ir::index_blocks(region_);
    analyse_liveness(region_);
    EXPECT_EQ(ir::verify_liveness(region_), "") << ir::print(region_);
  }
  const Op& op(unsigned index) const { return region_.ops[index]; }

  Region region_;
};

TEST_F(Liveness, FlagsThatAreOverwrittenAreDead) {
  analyse(R"(
    block 0x1000 entry next=0x1006
      %1 = GetGpr.64 aux=0
      %2 = GetGpr.64 aux=1
      %3 = Add.64 %1 %2 def=nzcv
      SetPf.0 %3 def=p
      %5 = Sub.64 %3 %2 def=nzcv
      SetPf.0 %5 def=p
      SetGpr.64 %5 aux=0
      Jump.0 imm=0x2000
  )");
  EXPECT_EQ(op(3).flags_live & kNzcv, 0);
  EXPECT_FALSE(op(3).dead) << "its value is read";
  EXPECT_TRUE(op(4).dead);
  EXPECT_EQ(op(5).flags_live & kNzcv, kNzcv);
  EXPECT_FALSE(op(6).dead);
  EXPECT_TRUE(op(6).sunk) << "only the exit reads it";
}

TEST_F(Liveness, ComparisonWithoutReaderIsDead) {
  analyse(R"(
    block 0x1000 entry next=0x1006
      %1 = GetGpr.64 aux=0
      %2 = Sub.64 %1 _ imm=0x5 def=nzcv
      %3 = And.64 %1 %1 def=nzcv
      SetPf.0 %3 def=p
      SetAf.64 _ _ def=a
      Jump.0 imm=0x2000
  )");
  EXPECT_TRUE(op(2).dead);
  EXPECT_FALSE(op(3).dead);
}

TEST_F(Liveness, ReaderInTheBlockKeepsPf) {
  analyse(R"(
    block 0x1000 entry next=0x1006
      %1 = GetGpr.64 aux=0
      %2 = And.64 %1 %1 def=nzcv
      SetPf.0 %2 def=p
      %4 = SetCc.32 aux=10 use=p
      SetGpr.64 %4 aux=0
      %6 = Sub.64 %1 _ imm=0x5 def=nzcv
      SetPf.0 %6 def=p
      Jump.0 imm=0x2000
  )");
  EXPECT_FALSE(op(3).dead);
  EXPECT_FALSE(op(3).sunk) << "the flags are read before the block ends";
  EXPECT_TRUE(op(7).sunk);
}

// PF of the result (16) and AF of a sum (1), as additions name them: aux2=17; of operand a alone, as TEST does: 37.
TEST_F(Liveness, FlagsThatArithmeticNamesWaitForTheEdges) {
  analyse(R"(
    block 0x1000 entry next=0x1006
      %1 = GetGpr.64 aux=0
      %2 = GetGpr.64 aux=1
      %3 = Add.64 %1 %2 aux2=17 def=nzcvpa
      Jump.0 imm=0x2000
  )");
  EXPECT_EQ(op(3).pf, ir::RawNeed::kAtEdges);
  EXPECT_EQ(op(3).af, ir::RawNeed::kAtEdges);
  EXPECT_EQ(op(3).uses, 1) << "PF is its result's";
  EXPECT_EQ(op(1).uses, 1) << "AF follows from the sum and the other operand";
  EXPECT_EQ(op(2).uses, 2);
}

TEST_F(Liveness, FlagsThatArithmeticNamesAreWantedByAReader) {
  analyse(R"(
    block 0x1000 entry next=0x1006
      %1 = GetGpr.64 aux=0
      %2 = GetGpr.64 aux=1
      %3 = Add.64 %1 %2 aux2=17 def=nzcvpa
      %4 = GetRflags.64 use=nzcvpa
      SetGpr.64 %4 aux=0
      %6 = Sub.64 %1 _ aux2=37 def=nzcvpa
      Jump.0 imm=0x2000
  )");
  EXPECT_EQ(op(3).pf, ir::RawNeed::kAtOnce);
  EXPECT_EQ(op(3).af, ir::RawNeed::kAtOnce);
  EXPECT_EQ(op(1).uses, 4) << "read by the sum, for its AF, by the difference and for its PF";
  EXPECT_EQ(op(6).pf, ir::RawNeed::kAtEdges);
  EXPECT_EQ(op(6).af, ir::RawNeed::kNone) << "it names none";
  EXPECT_EQ(op(6).uses, 0);
}

TEST_F(Liveness, FlagsThatArithmeticNamesAreDeadWhenRedefined) {
  analyse(R"(
    block 0x1000 entry next=0x1006
      %1 = GetGpr.64 aux=0
      %2 = GetGpr.64 aux=1
      %3 = Add.64 %1 %2 aux2=17 def=nzcvpa
      %4 = And.64 %1 %2 aux2=21 def=nzcvpa
      Jump.0 imm=0x2000
  )");
  EXPECT_TRUE(op(3).dead);
  EXPECT_EQ(op(3).pf, ir::RawNeed::kNone);
  EXPECT_EQ(op(3).af, ir::RawNeed::kNone);
}

TEST_F(Liveness, VariableShiftKeepsOlderFlagsAlive) {
  analyse(R"(
    block 0x1000 entry next=0x1006
      %1 = GetGpr.64 aux=0
      %2 = GetGpr.64 aux=1
      %3 = Add.64 %1 %2 def=nzcv
      %4 = Shl.64 %3 %2 def=nzcv
      SetGpr.64 %4 aux=0
      Jump.0 imm=0x2000
  )");
  EXPECT_EQ(op(3).flags_live & kNzcv, kNzcv) << "a count of 0 leaves the flags";
}

TEST_F(Liveness, ConstantShiftDoesNot) {
  analyse(R"(
    block 0x1000 entry next=0x1006
      %1 = GetGpr.64 aux=0
      %2 = Add.64 %1 %1 def=nzcv
      %3 = Shl.64 %2 _ imm=0x3 def=nzcv
      SetGpr.64 %3 aux=0
      Jump.0 imm=0x2000
  )");
  EXPECT_EQ(op(2).flags_live & kNzcv, 0);
}

TEST_F(Liveness, BlocksOfTheRegionSayWhatTheyNeed) {
  analyse(R"(
    block 0x1000 entry next=0x1004
      %1 = GetGpr.64 aux=0
      %2 = Sub.64 %1 _ imm=0x1 def=nzcv
      Branch.0 imm=0x1008 aux=4 use=z
    block 0x1004 next=0x1008
      %4 = GetGpr.64 aux=0
      %5 = Add.64 %4 %4 def=nzcv
      SetPf.0 %5 def=p
      SetAf.64 %4 %4 def=a
      SetGpr.64 %5 aux=0
      Jump.0 imm=0x2000
    block 0x1008 next=0x100c
      %10 = SetCc.32 aux=2 use=c
      SetGpr.64 %10 aux=0
      %12 = Xor.32 %10 %10 def=nzcv
      SetPf.0 %12 def=p
      SetAf.64 _ _ def=a
      Jump.0 imm=0x2000
  )");
  EXPECT_EQ(region_.blocks[1].live_in, 0);
  EXPECT_EQ(region_.blocks[2].live_in, ir::kC);
  EXPECT_EQ(op(2).flags_live & kNzcv, ir::kZ | ir::kC) << "Z for the branch, C for the block that it jumps to";
  EXPECT_EQ(region_.blocks[0].taken, 2);
  EXPECT_EQ(region_.blocks[0].next, 1);
  EXPECT_EQ(op(5).flags_live, kNzcv) << "who knows what stands outside";
}

TEST_F(Liveness, LoopsReachAFixedPoint) {
  analyse(R"(
    block 0x1000 entry next=0x1004
      %1 = GetGpr.64 aux=0
      SetGpr.64 %1 aux=1
      Jump.0 imm=0x1004
    block 0x1004 next=0x1008
      %4 = GetGpr.64 aux=2
      %5 = Adc.64 %4 _ use=c def=nzcv
      SetGpr.64 %5 aux=2
      Branch.0 imm=0x1004 aux=5 use=z
    block 0x1008 next=0x100c
      %8 = GetGpr.64 aux=2
      %9 = And.64 %8 %8 def=nzcv
      SetPf.0 %9 def=p
      SetAf.64 _ _ def=a
      Jump.0 imm=0x2000
  )");
  EXPECT_EQ(region_.blocks[1].live_in & ir::kC, ir::kC);
  EXPECT_EQ(region_.blocks[0].live_in & ir::kC, ir::kC) << "through the first block, which defines no flags";
  EXPECT_EQ(region_.blocks[2].live_in, 0);
}

TEST_F(Liveness, ResultsGoToTheirHomes) {
  analyse(R"(
    block 0x1000 entry next=0x1004
      %1 = GetGpr.64 aux=3
      %2 = Add.64 %1 _ imm=0x1
      SetGpr.64 %2 aux=3
      %4 = GetVec.128 aux=2
      %5 = VecAdd.128 %4 %4 aux=2
      SetVec.128 %5 aux=1
      Jump.0 imm=0x2000
  )");
  EXPECT_EQ(op(2).home, 3);
  EXPECT_EQ(op(5).home, 1);
  EXPECT_EQ(op(1).home, 0xff);
}

TEST_F(Liveness, WrittenResultsStayAtTheirHomes) {
  analyse(R"(
    block 0x1000 entry next=0x1004
      %1 = GetGpr.64 aux=3
      %2 = Add.64 %1 _ imm=0x1 to=5
      %3 = Sub.64 %1 _ imm=0x2 to=5
      SetGpr.64 %2 aux=6
      Jump.0 imm=0x2000
  )");
  EXPECT_EQ(op(2).home, 5) << "which the later write to another register does not change";
  EXPECT_EQ(op(2).uses, 2);
  EXPECT_FALSE(op(3).dead) << "writing the register is a use";
  EXPECT_EQ(op(3).uses, 1);
}

TEST_F(Liveness, HomesKeepTheirOldValueWhereItCanBeSeen) {
  analyse(R"(
    block 0x1000 entry next=0x1004
      %1 = GetGpr.64 aux=3
      %2 = Add.64 %1 _ imm=0x1
      %3 = Load.64 %1 _
      SetGpr.64 %2 aux=3
      SetGpr.64 %3 aux=4
      Jump.0 imm=0x2000
  )");
  EXPECT_EQ(op(2).home, 0xff) << "the load can fault, and the frame shows the register as it was";
}

TEST_F(Liveness, ReadsAreCounted) {
  analyse(R"(
    block 0x1000 entry next=0x1004
      %1 = GetGpr.64 aux=0
      %2 = Mul.64 %1 %1
      %3 = Not.64 %2
      SetGpr.64 %2 aux=0
      Jump.0 imm=0x2000
  )");
  EXPECT_EQ(op(1).uses, 2);
  EXPECT_EQ(op(2).uses, 1) << "what is dead reads nothing";
  EXPECT_TRUE(op(3).dead);
}

}  // namespace
}  // namespace phybin::passes
