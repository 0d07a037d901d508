// Addresses of the functions that translated code calls by number (translator/helper_ids.h).
#include "worker/translator/guest_state.h"
#include "worker/translator/helper_ids.h"

extern "C" {

#define HELPER(name) phybin::HelperResult phybin_helper_##name(phybin::GuestState*, uint64_t, uint64_t, uint64_t);
PHYBIN_LIGHT_HELPERS(HELPER)
#undef HELPER
#define HELPER(name) void phybin_helper_##name(phybin::GuestState*, uint64_t, uint64_t);
PHYBIN_STATE_HELPERS(HELPER)
#undef HELPER

#define HELPER(name) uint64_t phybin_helper_x87_##name(phybin::GuestState*, uint64_t, uint64_t);
PHYBIN_X87_HELPERS(HELPER)
PHYBIN_X87_STORE_HELPERS(HELPER)
#undef HELPER

// Of several types: only the stub calls them.
using LightHelperFunction = void (*)();
using StateHelperFunction = void (*)(phybin::GuestState*, uint64_t, uint64_t);

extern const LightHelperFunction phybin_light_helpers[];
extern const StateHelperFunction phybin_state_helpers[];

const LightHelperFunction phybin_light_helpers[] = {
#define HELPER(name) reinterpret_cast<LightHelperFunction>(phybin_helper_##name),
    PHYBIN_LIGHT_HELPERS(HELPER)
#undef HELPER
#define HELPER(name) reinterpret_cast<LightHelperFunction>(phybin_helper_x87_##name),
        PHYBIN_X87_HELPERS(HELPER) PHYBIN_X87_STORE_HELPERS(HELPER)
#undef HELPER
};
const StateHelperFunction phybin_state_helpers[] = {
#define HELPER(name) phybin_helper_##name,
    PHYBIN_STATE_HELPERS(HELPER)
#undef HELPER
};

}  // extern "C"
