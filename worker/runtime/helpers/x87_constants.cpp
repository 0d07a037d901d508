// The constants of FLD1 to FLDZ: their last bit follows the rounding control (SDM vol. 1, 8.3.8).
#include "worker/runtime/helpers/x87_ops.h"

namespace phybin::runtime::x87 {

namespace {

struct ConstantEntry {
  Float80 truncated;
  bool nearest_is_up;
  bool exact;
};

// Indexed by Constant.
constexpr ConstantEntry kConstants[] = {
    {{0x8000000000000000, 0x3fff}, false, true},   // 1
    {{0xd49a784bcd1b8afe, 0x4000}, false, false},  // log2 10
    {{0xb8aa3b295c17f0bb, 0x3fff}, true, false},   // log2 e
    {{0xc90fdaa22168c234, 0x4000}, true, false},   // pi
    {{0x9a209a84fbcff798, 0x3ffd}, true, false},   // log10 2
    {{0xb17217f7d1cf79ab, 0x3ffe}, true, false},   // ln 2
    {{0, 0}, false, true},                         // 0
};

}  // namespace

Float80 constant_value(Constant constant, uint32_t control) {
  const ConstantEntry& entry = kConstants[constant];
  const uint32_t rounding = control & kRoundingControl;
  const bool up = rounding == kRoundUp || (rounding == kRoundNearest && entry.nearest_is_up);
  Float80 v = entry.truncated;
  v.significand += !entry.exact && up;
  return v;
}

}  // namespace phybin::runtime::x87
