// Whether an expansion that does not define flags may use NZCV for itself.
#pragma once

#include "worker/translator/emit/emitter.h"

namespace phybin::emit {

// True if nobody reads afterwards what NZCV holds now. After FCMP it holds PF, too.
inline bool nzcv_is_free(const Emitter& e, const ir::Op& op) {
  const ir::FlagMask held = e.flag_form() == FlagForm::kFloat ? ir::kAllFlags : ir::kNzcv;
  return (op.flags_live & held) == 0;
}

}  // namespace phybin::emit
