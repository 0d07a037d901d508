// Immediate operands of integer operations, as the expansions need them.
#pragma once

#include "worker/translator/emit/emitter.h"

namespace phybin::emit {

// The immediate of `op` as an unsigned number of its width.
inline uint64_t immediate(const ir::Op& op) {
  const auto imm = static_cast<uint64_t>(op.imm);
  return op.width == 64 ? imm : imm & ((uint64_t{1} << op.width) - 1);
}

inline void load_immediate(Emitter& e, a64::Gpr reg, uint64_t value) {
  if (e.a.is_mov_imm(value)) {
    e.a.mov_imm(true, reg, value);
  } else {
    e.a.ldr_literal64(reg, value);
  }
}

}  // namespace phybin::emit
