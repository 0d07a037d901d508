// Guest flags outside translated code: RFLAGS and back, and the forms that translated code leaves them in.
#include <gtest/gtest.h>

#include <memory>

#include "worker/runtime/flags.h"

namespace phybin::runtime {
namespace {

class GuestFlags : public testing::Test {
 protected:
  std::unique_ptr<GuestState> state_ = std::make_unique<GuestState>();

  uint64_t arithmetic(emit::FlagForm form, uint64_t nzcv) {
    state_->nzcv = nzcv;
    state_->pf_raw = 1;
    state_->af_raw = 0;
    make_flags_canonical(*state_, form);
    return rflags_of(*state_) & (kRflagsCf | kRflagsPf | kRflagsAf | kRflagsZf | kRflagsSf | kRflagsOf);
  }
};

TEST_F(GuestFlags, RflagsSurvive) {
  constexpr uint64_t kBits[] = {kRflagsCf, kRflagsPf, kRflagsAf, kRflagsZf, kRflagsSf,
                                kRflagsOf, kRflagsDf, kRflagsAc, kRflagsId};
  for (unsigned choice = 0; choice < 1u << std::size(kBits); ++choice) {
    uint64_t flags = kRflagsIf | 2;
    for (unsigned i = 0; i < std::size(kBits); ++i) flags |= (choice >> i & 1) != 0 ? kBits[i] : 0;
    set_rflags(*state_, flags);
    EXPECT_EQ(rflags_of(*state_), flags);
  }
}

TEST_F(GuestFlags, FormsOfTranslatedCode) {
  using emit::FlagForm;
  EXPECT_EQ(arithmetic(FlagForm::kCanonical, kNzcvC), 0u);
  EXPECT_EQ(arithmetic(FlagForm::kCanonical, kNzcvN | kNzcvV), kRflagsCf | kRflagsSf | kRflagsOf);
  EXPECT_EQ(arithmetic(FlagForm::kDirect, kNzcvC | kNzcvZ), kRflagsCf | kRflagsZf);
  EXPECT_EQ(arithmetic(FlagForm::kDirect, 0), 0u);
  EXPECT_EQ(arithmetic(FlagForm::kLogic, kNzcvN), kRflagsSf);
  EXPECT_EQ(arithmetic(FlagForm::kLogic, kNzcvZ), kRflagsZf);
  // FCMP: less N, equal Z C, greater C, unordered C V; UCOMISD: less CF, equal ZF, unordered ZF PF CF.
  EXPECT_EQ(arithmetic(FlagForm::kFloat, kNzcvN), kRflagsCf);
  EXPECT_EQ(arithmetic(FlagForm::kFloat, kNzcvZ | kNzcvC), kRflagsZf);
  EXPECT_EQ(arithmetic(FlagForm::kFloat, kNzcvC), 0u);
  EXPECT_EQ(arithmetic(FlagForm::kFloat, kNzcvC | kNzcvV), kRflagsZf | kRflagsPf | kRflagsCf);
}

}  // namespace
}  // namespace phybin::runtime
