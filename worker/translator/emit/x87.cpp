// x87 instructions: what is done inline.
//
// TOP, the byte of occupied registers, control and status word lie in one 64-bit word, which an instruction loads
// once, changes and stores once.
#include "worker/translator/emit/emitter.h"
#include "worker/translator/x87_interface.h"

namespace phybin::emit {

using a64::Gpr;
using a64::Label;
using ir::Op;

namespace {

using namespace x87;  // NOLINT: the file is about nothing else

// UDF tells the signal handler to raise #MF; the location is that of the check.
void raise_pending(Emitter& e, const ColdPath& cold) {
  LocationEntry entry{};
  entry.instruction = e.region.ops[cold.op].instruction;
  entry.flag_form = static_cast<FlagForm>(cold.regs[0]);
  entry.pf = cold.regs[1];
  entry.af_a = cold.regs[2];
  entry.af_b = cold.regs[3];
  e.add_location(entry);
  e.a.udf(static_cast<uint32_t>(ir::TrapKind::kX87));
}

// Marks ST(0) empty and adds 1 to TOP, in the control block in `block`.
void pop(Emitter& e, Gpr block, Gpr t, Gpr u) {
  e.a.ubfx(true, t, block, kTopBit, 3);
  e.a.mov_imm(true, u, uint64_t{1} << kOccupiedBit);
  e.a.lslv(true, u, u, t);
  e.a.bic(true, block, block, u);
  e.a.add_imm(true, t, t, 1);
  e.a.bfi(true, block, t, kTopBit, 3);
}

}  // namespace

void emit_X87Check(Emitter& e, const Op&) {
  e.a.mem(a64::MemOp::LDRH, kScratch0, kState, kStatusWordOffset);
  const LocationEntry here = e.location(false);
  ColdPath& cold = e.add_cold(raise_pending);
  cold.regs[0] = static_cast<uint8_t>(here.flag_form);
  cold.regs[1] = here.pf;
  cold.regs[2] = here.af_a;
  cold.regs[3] = here.af_b;
  e.a.tbnz(kScratch0, kErrorSummaryBit - kStatusBit, cold.entry);
}

void emit_X87Store(Emitter& e, const Op& op) {
  const Label done = e.a.new_label();
  // Operands that have no register yet get one on either path.
  for (const ir::ValueId v : {op.a, op.b, op.c}) {
    if (v != ir::kNoValue) e.use(v);
  }
  e.a.mem(a64::MemOp::LDRB, kScratch0, kState, kSuppressedOffset);
  e.a.cbnz(false, kScratch0, done);
  emit_Store(e, op);
  if (op.aux2 != 0) {
    e.a.ldr(true, kScratch0, kState, kControlWordOffset);
    pop(e, kScratch0, kScratch1, kScratch2);
    e.a.str(true, kScratch0, kState, kControlWordOffset);
  }
  e.a.bind(done);
}

}  // namespace phybin::emit
