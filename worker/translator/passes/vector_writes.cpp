// See vector_writes.h.
//
// Chains of scalar arithmetic (MULSD, ADDSD ...) write the same register again and again, and each write merges the
// result into the upper part of the register. When the earlier write goes, the later merge can start from what the
// earlier one started from, and the earlier merge goes as well.
#include "worker/translator/passes/vector_writes.h"

#include <array>

namespace phybin::passes {

using namespace ir;  // NOLINT: the pass is about nothing else

namespace {

// b was inserted where c is inserted now: b is not seen in c's result.
bool same_place(const Op& b, const Op& c) {
  return b.code == Opcode::kVecInsert && c.code == Opcode::kVecInsert && b.imm == c.imm && b.aux == c.aux;
}

}  // namespace

void remove_overtaken_vector_writes(Region& region) {
  if (!region.writes_vectors) return;
  std::array<uint16_t, 16> last_write;  // index of a SetVec that nobody has seen yet, or 0
  for (const Block& block : region.blocks) {
    last_write.fill(0);
    for (uint16_t i = block.first; i < block.last; ++i) {
      Op& op = region.ops[i];
      if (op.code == Opcode::kGetVec) {
        last_write[op.aux] = 0;
      } else if (op.code == Opcode::kSetVec) {
        if (const uint16_t earlier = last_write[op.aux]; earlier != 0) {
          Op& overtaken = region.ops[earlier];
          Op& merge = region.ops[op.a];
          // What a window of NaNs starts from is fixed already.
          if (merge.a == overtaken.a && !merge.again && same_place(region.ops[overtaken.a], merge)) {
            merge.a = region.ops[overtaken.a].a;
          }
          overtaken.code = Opcode::kVecZero;  // a value without users: not emitted
          overtaken.a = kNoValue;
        }
        last_write[op.aux] = i;
      } else if ((traits(op.code) & (kCanFault | kStateBarrier | kTerminator)) != 0) {
        last_write.fill(0);
      }
    }
  }
}

}  // namespace phybin::passes
