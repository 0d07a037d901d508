// The x87 helpers as translated code calls them: with the state of the whole thread.
#include "worker/runtime/helpers/x87_ops.h"
#include "worker/translator/helper_ids.h"

#define HELPER(name)                                                                     \
  extern "C" uint64_t phybin_helper_x87_##name(phybin::GuestState*, uint64_t, uint64_t); \
  uint64_t phybin_helper_x87_##name(phybin::GuestState* state, uint64_t a, uint64_t b) { \
    return phybin_x87_##name(reinterpret_cast<PhybinX87State*>(state->x87), a, b);       \
  }
PHYBIN_X87_HELPERS(HELPER)
#undef HELPER
