// Decides what of a region's IR is needed, in two backward walks.
//
// First, over the region: which flags are live on entry of each block (a fixed point; edges that leave the region
// need all flags). Then, per block: which operations are dead, how often each value is read, which writes of PF and
// AF can wait for cold paths of exits, and which values can be computed straight into the home of the guest
// register that they are written to.
#pragma once

#include "worker/translator/ir/ir.h"

namespace phybin::passes {

// Comes after index_blocks(). Fills Block::live_in and Op::{flags_live, sunk, dead, uses, home}.
// `exit_flags`: flags that edges out of the region need at once. Normally none: exits make flags canonical on their
// cold paths (emit/exits.cpp).
void analyse_liveness(ir::Region& region, ir::FlagMask exit_flags = 0);

// True of a SetAf that waits for an edge and does not keep its operand `a` alive (ir.h, AfKind).
inline bool is_hint(const ir::Op& op) {
  return op.code == ir::Opcode::kSetAf && op.sunk && static_cast<ir::AfKind>(op.aux2) != ir::AfKind::kPlain;
}

}  // namespace phybin::passes
