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

#define PHYBIN_LIGHT_HELPERS(HELPER)

#define PHYBIN_STATE_HELPERS(HELPER) \
  HELPER(string_compare)             \
  HELPER(fxsave)                     \
  HELPER(fxrstor)                    \
  HELPER(cpuid)                      \
  HELPER(rdtscp)                     \
  HELPER(xgetbv)                     \
  HELPER(divide) /* a = divisor, b = width | signed << 8; #DE as x86 raises it */

enum class LightHelper : uint16_t {
#define HELPER(name) k_##name,
  PHYBIN_LIGHT_HELPERS(HELPER)
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
