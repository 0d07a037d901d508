// The x87 helpers as translated code calls them: with the state of the whole thread.
#include <cstring>

#include "worker/runtime/helpers/x87_ops.h"
#include "worker/translator/helper_ids.h"

namespace phybin::runtime::x87 {
namespace {

X87State* unit_of(GuestState* state) { return reinterpret_cast<X87State*>(state->x87); }

// The word that begins with control_word: all that instructions change besides registers.
uint64_t control_block(const X87State& state) {
  uint64_t block;
  std::memcpy(&block, &state.control_word, sizeof block);
  return block;
}
void set_control_block(X87State& state, uint64_t block) { std::memcpy(&state.control_word, &block, sizeof block); }

// The store may fault: what the instruction does to the state waits in after_store.
template <uint64_t (*helper)(X87State*, uint64_t, uint64_t)>
[[gnu::always_inline]] inline uint64_t before_store(X87State& state, uint64_t a) {
  const uint64_t before = control_block(state);
  const uint64_t bits = helper(&state, a, 0);
  state.after_store = control_block(state);
  set_control_block(state, before);
  return bits;
}

}  // namespace
}  // namespace phybin::runtime::x87

using namespace phybin::runtime::x87;

#define HELPER(name)                                                                     \
  extern "C" uint64_t phybin_helper_x87_##name(phybin::GuestState*, uint64_t, uint64_t); \
  uint64_t phybin_helper_x87_##name(phybin::GuestState* state, uint64_t a, uint64_t b) { \
    return phybin_x87_##name(unit_of(state), a, b);                                      \
  }
PHYBIN_X87_HELPERS(HELPER)
#undef HELPER

#define HELPER(name)                                                                     \
  extern "C" uint64_t phybin_helper_x87_##name(phybin::GuestState*, uint64_t, uint64_t); \
  uint64_t phybin_helper_x87_##name(phybin::GuestState* state, uint64_t a, uint64_t) {   \
    return before_store<phybin_x87_##name>(*unit_of(state), a);                          \
  }
PHYBIN_X87_STORE_HELPERS(HELPER)
#undef HELPER
