// passes::remove_overtaken_vector_writes, on regions written as text.
#include "worker/translator/passes/vector_writes.h"

#include <gtest/gtest.h>

#include <string_view>

#include "worker/translator/ir/printer.h"
#include "worker/translator/ir/reader.h"
#include "worker/translator/ir/verifier.h"

namespace phybin::passes {
namespace {

using ir::Opcode;

class VectorWrites : public testing::Test {
 protected:
  void run(std::string_view text) {
    ASSERT_EQ(ir::read(text, region_), "");
    ASSERT_EQ(ir::verify(region_), "");
    region_.writes_vectors = true;  // the builder says so
    remove_overtaken_vector_writes(region_);
    ASSERT_EQ(ir::verify(region_), "") << ir::print(region_);
  }
  bool is_write(unsigned index) const { return region_.ops[index].code == Opcode::kSetVec; }

  ir::Region region_;
};

TEST_F(VectorWrites, ChainOfScalarArithmeticMergesOnce) {
  run(R"(
    block 0x1000 entry next=0x1008
      %1 = GetVec.128 aux=0
      %2 = GetVec.128 aux=1
      %3 = FMul.64 %1 %2 aux=3
      %4 = VecInsert.128 %1 %3 aux=3
      SetVec.128 %4 aux=0
      %6 = FAdd.64 %3 %2 aux=3
      %7 = VecInsert.128 %4 %6 aux=3
      SetVec.128 %7 aux=0
      Jump.0 imm=0x2000
  )");
  EXPECT_FALSE(is_write(5));
  EXPECT_TRUE(is_write(8));
  EXPECT_EQ(region_.ops[7].a, 1) << "merges into what the first merge started from";
}

TEST_F(VectorWrites, WhatAFaultCanShowStays) {
  run(R"(
    block 0x1000 entry next=0x1008
      %1 = GetVec.128 aux=1
      %2 = GetGpr.64 aux=0
      SetVec.128 %1 aux=0
      %4 = LoadVec.128 %2 _
      SetVec.128 %4 aux=0
      Jump.0 imm=0x2000
  )");
  EXPECT_TRUE(is_write(3));
  EXPECT_TRUE(is_write(5));
}

TEST_F(VectorWrites, OtherRegistersAreNotMixedUp) {
  run(R"(
    block 0x1000 entry next=0x1008
      %1 = GetVec.128 aux=1
      SetVec.128 %1 aux=0
      SetVec.128 %1 aux=2
      SetVec.128 %1 aux=0
      Jump.0 imm=0x2000
  )");
  EXPECT_FALSE(is_write(2));
  EXPECT_TRUE(is_write(3));
  EXPECT_TRUE(is_write(4));
}

TEST_F(VectorWrites, MergesOfDifferentPlacesStay) {
  run(R"(
    block 0x1000 entry next=0x1008
      %1 = GetVec.128 aux=0
      %2 = GetVec.128 aux=1
      %3 = VecInsert.128 %1 %2 aux=3
      SetVec.128 %3 aux=0
      %5 = VecInsert.128 %3 %2 imm=0x1 aux=3
      SetVec.128 %5 aux=0
      Jump.0 imm=0x2000
  )");
  EXPECT_FALSE(is_write(4));
  EXPECT_EQ(region_.ops[5].a, 3);
}

}  // namespace
}  // namespace phybin::passes
