// PCMPESTRI, PCMPESTRM, PCMPISTRI, PCMPISTRM: by a helper, which sees the whole guest state.
#include "worker/translator/lift/sse.h"

namespace phybin::lift {

// The helper's first argument packs the instruction: kind (bit 0: mask and not index, bit 1: implicit lengths), the
// first operand's register from bit 8, the second's from bit 16 (16: memory, whose address is the second argument),
// the immediate from bit 24, REX.W (64-bit lengths) in bit 32. See runtime/string_compare.cpp.
void lift_pcmpstr(Lifter& l) {
  using decode::Mnemonic;
  const Mnemonic m = l.in.mnemonic;
  const bool mask = m == Mnemonic::kPcmpestrm || m == Mnemonic::kPcmpistrm;
  const bool implicit = m == Mnemonic::kPcmpistri || m == Mnemonic::kPcmpistrm;
  const bool memory = l.is_memory(1);
  const uint64_t second = memory ? 16 : l.operand(1).reg;
  const uint64_t packed = uint64_t{mask} | uint64_t{implicit} << 1 | uint64_t{l.operand(0).reg} << 8 | second << 16 |
                          static_cast<uint64_t>(l.in.imm & 0xff) << 24 | uint64_t{l.in.operand_size == 8} << 32;
  const ValueId address = memory ? l.address_value(l.memory_address()) : kNoValue;
  l.b.op(Opcode::kCallState, 64, l.b.constant(static_cast<int64_t>(packed)), address, kNoValue,
         static_cast<int64_t>(StateHelper::k_string_compare), 0, 0, ir::kAllFlags);
}

}  // namespace phybin::lift
