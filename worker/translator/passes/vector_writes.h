// Removes writes of vector registers that another write overtakes before anybody can see them.
#pragma once

#include "worker/translator/ir/ir.h"

namespace phybin::passes {

// Within each block. Comes before analyse_liveness, which removes what made the values of these writes.
void remove_overtaken_vector_writes(ir::Region& region);

}  // namespace phybin::passes
