// C++ helpers that translated code calls, by number: translations hold no host address.
//
// Light helpers keep guest registers (the stub saves them) and are compiled without vector registers; they take up to
// three integers and return one or two: `phybin::HelperResult NAME(GuestState*, uint64_t a, uint64_t b, uint64_t c)`.
// State helpers see and change the whole guest state in memory: `void NAME(GuestState*, uint64_t a, uint64_t b)`.
// The functions stand in worker/runtime/helpers/ (light) and worker/runtime/ (state), all extern "C" with the prefix
// phybin_helper_.
#pragma once

#include <cstdint>

namespace phybin {

struct HelperResult {
  uint64_t first, second;
};

#define PHYBIN_LIGHT_HELPERS(HELPER)     \
  HELPER(pdep) /* a = value, b = mask */ \
  HELPER(pext)                           \
  HELPER(random)

// Light helpers of the x87: phybin_x87_NAME(X87State*, a, b) of runtime/helpers/x87_ops.h. They have one result.
// clang-format off
#define PHYBIN_X87_HELPERS(HELPER)                                                                         \
  HELPER(fld_m32) HELPER(fld_m64) HELPER(fld_m80) HELPER(fld_i64) HELPER(fld_sti) HELPER(fld_constant)     \
  HELPER(fbld) HELPER(fbst_low) HELPER(fst_sti) HELPER(fxch)                   \
  HELPER(fcmov) HELPER(fadd) HELPER(fsub) HELPER(fmul) HELPER(fdiv) HELPER(arithmetic_memory) HELPER(fcom) \
  HELPER(fcomi) HELPER(fchs) HELPER(fabs) HELPER(operation) HELPER(fincstp) HELPER(fdecstp) HELPER(ffree)  \
  HELPER(fninit) HELPER(fnclex) HELPER(fldcw)
// Those that return what is to be stored in memory: the state changes only with the operation X87Store.
#define PHYBIN_X87_STORE_HELPERS(HELPER) \
  HELPER(fst_m32) HELPER(fst_m64) HELPER(fist) HELPER(fbst_high)
// clang-format on

#define PHYBIN_STATE_HELPERS(HELPER)                              \
  HELPER(string_compare)                                          \
  HELPER(fxsave)                                                  \
  HELPER(fxrstor)                                                 \
  HELPER(x87_fstp_m80) /* a = guest address */                    \
  /* a = guest address of the image, b = 1 for its 16-bit form */ \
  HELPER(x87_fnstenv)                                             \
  HELPER(x87_fldenv)                                              \
  HELPER(x87_fnsave)                                              \
  HELPER(x87_frstor)                                              \
  HELPER(cpuid)                                                   \
  HELPER(rdtscp)                                                  \
  HELPER(xgetbv)                                                  \
  HELPER(divide) /* a = divisor, b = width | signed << 8; #DE as x86 raises it */

enum class LightHelper : uint16_t {
#define HELPER(name) k_##name,
  PHYBIN_LIGHT_HELPERS(HELPER)
#undef HELPER
#define HELPER(name) k_x87_##name,
      PHYBIN_X87_HELPERS(HELPER) PHYBIN_X87_STORE_HELPERS(HELPER)
#undef HELPER
          kCount
};

enum class StateHelper : uint16_t {
#define HELPER(name) k_##name,
  PHYBIN_STATE_HELPERS(HELPER)
#undef HELPER
      kCount
};

}  // namespace phybin
