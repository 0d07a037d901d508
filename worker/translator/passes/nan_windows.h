// One check for the NaNs of many floating-point operations.
//
// x86 and A64 choose differently among NaNs (emit/vector_nan.cpp), so each result that may be one has to be looked
// at. But arithmetic hands a NaN on: in a chain of operations the last result is a NaN if any other is. So this pass
// gathers operations into windows, which end in one check of the results that show all others' NaNs. If it finds one,
// everything that the window has computed from inexact NaNs is computed again, exactly, out of line. What that starts
// from is kept until the check.
//
// Nobody may see anything of a window before its end:
//   - Writes of vector registers wait for it, those that others overtake go.
//   - Only arithmetic, which hands NaNs on, and moves of elements may use its values. Everything else ends it: it
//   could
//     tell one NaN from another (bitwise operations), or has effects (stores, comparisons, exits).
//   - Loads may fault. They may stand in a window as long as no guest state has changed since its beginning: then
//   that
//     state is what it was there, and a load that faults sends the guest back to the window's first instruction
//     (LoadVec's aux2). From there it goes on by single steps until the fault comes again, exactly.
// Exception flags are right all the same: a NaN made by arithmetic is quiet, whatever its sign and payload, and quiet
// NaNs raise nothing. The second time, operations raise what they have raised already.
#pragma once

#include <vector>

#include "worker/translator/flat_array.h"
#include "worker/translator/ir/ir.h"

namespace phybin::passes {

struct NanWindow {
  uint16_t first, end;  // operations
  uint16_t first_kept;  // in `kept`: the values to check, then those that the window starts from
  uint8_t checked, kept;
};

// Kept from one translation to the next.
struct NanWindowsMemory {
  FlatArray<ir::Op> ops;
  FlatArray<ir::ValueId> renamed, kept;
  FlatArray<uint8_t> marks, covered;
  std::vector<NanWindow> windows;
};

// Comes after index_blocks and before the other passes: a write of a register that one in a window overtakes is still
// there, since a load in the window may have to start from it. Renames values.
void gather_nan_checks(ir::Region& region, NanWindowsMemory& memory);

}  // namespace phybin::passes
