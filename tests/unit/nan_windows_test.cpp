// passes::gather_nan_checks, on regions written as text.
#include "worker/translator/passes/nan_windows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "worker/translator/ir/printer.h"
#include "worker/translator/ir/reader.h"
#include "worker/translator/ir/verifier.h"

namespace phybin::passes {
namespace {

using ir::Op;
using ir::Opcode;

class NanWindows : public testing::Test {
 protected:
  // `body` between reads of RDI, XMM0 to XMM3 (%1 to %5) and a jump.
  void run(std::string_view body) {
    const std::string text =
        "block 0x1000 entry next=0x1020\n @0x1000+4\n %1 = GetGpr.64 aux=7\n %2 = GetVec.128 aux=0\n"
        "%3 = GetVec.128 aux=1\n %4 = GetVec.128 aux=2\n %5 = GetVec.128 aux=3\n" +
        std::string(body) + "\n @0x101c+4\n Jump.0 imm=0x2000\n";
    ASSERT_EQ(ir::read(text, region_), "");
    ASSERT_EQ(ir::verify(region_), "");
    region_.has_nan_checks = true;  // the builder says so
    NanWindowsMemory memory;
    gather_nan_checks(region_, memory);
    ASSERT_EQ(ir::verify(region_), "") << ir::print(region_);
  }
  std::vector<const Op*> all(Opcode code) const {
    std::vector<const Op*> found;
    for (std::size_t i = 1; i < region_.ops.size(); ++i) {
      if (region_.ops[i].code == code) found.push_back(&region_.ops[i]);
    }
    return found;
  }
  std::ptrdiff_t index(const Op* op) const { return op - &region_.ops[0]; }

  ir::Region region_;
};

constexpr std::string_view kMulAdd = R"(
  @0x1004+4
  %10 = FMul.128 %2 %3 aux=3
  %11 = FFixNan.128 %10 %2 %3 aux=3
  SetVec.128 %11 aux=0
  @0x1008+4
)";

TEST_F(NanWindows, LastResultShowsAllOthers) {
  run(std::string(kMulAdd) + R"(
    %20 = FAdd.128 %11 %4 aux=3
    %21 = FFixNan.128 %20 %11 %4 aux=3
    SetVec.128 %21 aux=0
  )");
  ASSERT_EQ(all(Opcode::kFCheckNan).size(), 1u);
  EXPECT_EQ(all(Opcode::kFCheckNan)[0]->aux2, 1);
  EXPECT_EQ(region_.ops[all(Opcode::kFKeep)[0]->a].code, Opcode::kFFixNan);
  ASSERT_EQ(all(Opcode::kSetVec).size(), 1u);
  EXPECT_GT(index(all(Opcode::kSetVec)[0]), index(all(Opcode::kFCheckNan)[0]));
}

TEST_F(NanWindows, ScalarDoesNotShowTheUpperElement) {
  run(std::string(kMulAdd) + R"(
    %20 = FAdd.64 %11 %4 aux=3
    %21 = FFixNan.64 %20 %11 %4 aux=3
    %22 = VecInsert.128 %4 %21 aux=3
    SetVec.128 %22 aux=2
  )");
  ASSERT_EQ(all(Opcode::kFCheckNan).size(), 1u);
  EXPECT_EQ(all(Opcode::kFCheckNan)[0]->aux2, 2);
}

TEST_F(NanWindows, OtherFormatIsAnotherWindow) {
  run(std::string(kMulAdd) + R"(
    %20 = FAdd.128 %11 %4 aux=2
    %21 = FFixNan.128 %20 %11 %4 aux=2
    SetVec.128 %21 aux=0
  )");
  EXPECT_TRUE(all(Opcode::kFCheckNan).empty());
  for (const Op* fix : all(Opcode::kFFixNan)) EXPECT_FALSE(fix->again);
}

TEST_F(NanWindows, WhatSeesANanEndsTheWindow) {
  for (const std::string_view seen :
       {"%15 = VecXor.128 %11 %4", "StoreVec.128 %1 _ %11", "FCompare.64 %11 %4 aux=3 def=nzcvpa",
        "%15 = FMax.128 %11 %4 aux=3", "%15 = VecToInt.64 %11", "%15 = FToInt.64 %11 aux=3", "Store.64 %1 _ %1"}) {
    region_ = {};
    run(std::string(kMulAdd) + std::string(seen) + R"(
      %20 = FAdd.128 %11 %4 aux=3
      %21 = FFixNan.128 %20 %11 %4 aux=3
      SetVec.128 %21 aux=0
    )");
    EXPECT_TRUE(all(Opcode::kFCheckNan).empty()) << seen;
  }
}

TEST_F(NanWindows, LoadGoesBackToTheFirstInstruction) {
  run(std::string(kMulAdd) + R"(
    %20 = LoadVec.128 %1 _ imm=0x10
    %21 = FAdd.128 %11 %20 aux=3
    %22 = FFixNan.128 %21 %11 %20 aux=3
    SetVec.128 %22 aux=0
  )");
  ASSERT_EQ(all(Opcode::kFCheckNan).size(), 1u);
  EXPECT_EQ(all(Opcode::kLoadVec)[0]->aux2, 1);
  ASSERT_EQ(all(Opcode::kSetVec).size(), 1u) << "the product's is overtaken";
}

TEST_F(NanWindows, LoadAfterAChangeIsOutside) {
  for (const std::string_view change : {"%15 = Add.64 %1 _ imm=0x10\n SetGpr.64 %15 aux=7",
                                        "%15 = Sub.64 %1 _ imm=0x1 def=nzcv", "Store.64 %1 _ %1"}) {
    region_ = {};
    run(std::string(kMulAdd) + std::string(change) + R"(
      @0x100c+4
      %20 = LoadVec.128 %1 _ imm=0x10
      %21 = FAdd.128 %11 %20 aux=3
      %22 = FFixNan.128 %21 %11 %20 aux=3
      SetVec.128 %22 aux=0
    )");
    EXPECT_EQ(all(Opcode::kLoadVec)[0]->aux2, 0) << change;
    EXPECT_EQ(all(Opcode::kSetVec).size(), 2u) << change;
    EXPECT_LT(index(all(Opcode::kSetVec)[0]), index(all(Opcode::kLoadVec)[0])) << change;
  }
}

TEST_F(NanWindows, BeginsWithALoadThatIsOvertaken) {
  run(R"(
    @0x1004+4
    %10 = LoadVec.128 %1 _
    SetVec.128 %10 aux=0
    @0x1008+4
    %12 = LoadVec.128 %1 _ imm=0x10
    %13 = FMul.128 %10 %12 aux=3
    %14 = FFixNan.128 %13 %10 %12 aux=3
    SetVec.128 %14 aux=0
  )");
  ASSERT_EQ(all(Opcode::kFCheckNan).size(), 1u);
  EXPECT_EQ(all(Opcode::kLoadVec)[0]->aux2, 0);
  EXPECT_EQ(all(Opcode::kLoadVec)[1]->aux2, 1);
  EXPECT_EQ(all(Opcode::kSetVec).size(), 1u);
}

TEST_F(NanWindows, AloneIsLeftAsItWas) {
  run(std::string(kMulAdd));
  EXPECT_TRUE(all(Opcode::kFCheckNan).empty());
  EXPECT_EQ(all(Opcode::kSetVec).size(), 1u);
}

}  // namespace
}  // namespace phybin::passes
