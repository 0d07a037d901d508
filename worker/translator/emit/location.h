// Location tables: from which places in translated code guest state can be rebuilt, and how.
#pragma once

#include <cstdint>

namespace phybin::emit {

// How the x86 flags SF, ZF, CF, OF are held in NZCV.
enum class FlagForm : uint8_t {
  kCanonical,  // C = !CF (as A64 subtractions leave it); the form on all edges that carry flags
  kDirect,     // C = CF (as additions leave it)
  kLogic,      // as kDirect with C = V = 0, so CF = OF = 0: after ANDS
  kFloat,      // as FCMP leaves it: ZF = Z|V, CF = (N != V), PF = V, SF = OF = AF = 0
};

// Bit of LocationEntry::pf: a load that has been moved together with operations before it (passes/nan_windows). The
// state is that before `instruction`, an earlier one than the load's. Should the load fault, the guest goes on from
// there by a single step.
inline constexpr uint8_t kGoesBack = 0x80;

// An instruction that can fault, or a safepoint poll. All guest registers are at home there.
struct LocationEntry {
  uint32_t code_offset;  // bytes from the region's start
  FlagForm flag_form;
  uint8_t pf;            // host register that holds raw PF, 29 = at home; kGoesBack
  uint8_t af_a, af_b;    // raw AF is the exclusive or of these two host registers; 18 and 31 = at home
  uint16_t instruction;  // index into the region's guest instructions: RIP of the frame
  bool is_poll;
  uint8_t reserved;
};
static_assert(sizeof(LocationEntry) == 12);

}  // namespace phybin::emit
