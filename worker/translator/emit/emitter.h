// The emitter: IR of one region -> A64 words and the tables that go with them.
//
// One forward walk. Each operation is expanded by its own function `emit_NAME(Emitter&, const ir::Op&)` (one file per
// family), which asks for the registers of its operands with use()/use_vec(), then for the register of its result
// with def()/def_vec(), then writes instructions. Registers are handed out during the walk: a value lives in a guest
// register's home, in a temporary, is a constant that nobody materialised yet, or was spilled. The rules:
//   - ask for all operands before the result: def() gives registers of operands that die here to the result (not if
//   the
//     opcode is kEarlyClobber; kTied: the result register already holds operand a);
//   - never write to a register that use() returned;
//   - kScratch0-2 and kVecScratch0-2 are free within one expansion;
//   - call fault_point() directly before each instruction that can fault on guest memory;
//   - leave NZCV alone unless the operation defines flags (or declares kClobbersNzcv); after defining them, say in
//   which
//     form they are with set_flags().
#pragma once

#include <cstdint>
#include <vector>

#include "worker/translator/emit/a64.h"
#include "worker/translator/emit/homes.h"
#include "worker/translator/emit/location.h"
#include "worker/translator/host_features.h"
#include "worker/translator/ir/ir.h"

namespace phybin::emit {

struct ColdPath;
class Emitter;
using ColdEmitter = void (*)(Emitter&, const ColdPath&);

// Code out of line, written after the last block: entered at `entry`, goes on at `back`.
struct ColdPath {
  ColdEmitter emit;
  a64::Label entry, back;
  uint16_t op;      // index in Region::ops
  uint8_t regs[6];  // whatever the emitter of the operation wants to hand over
  uint64_t data;
};

class Emitter {
 public:
  Emitter(const ir::Region& region, const CodeOptions& options, const HostFeatures& host);

  a64::Assembler a;
  const ir::Region& region;
  const CodeOptions& options;
  const HostFeatures& host;

  // ---- Operands and results -----------------------------------------------------------------------------------
  a64::Gpr use(ir::ValueId value);
  a64::Vec use_vec(ir::ValueId value);
  bool is_constant(ir::ValueId value) const;
  int64_t constant(ir::ValueId value) const;
  a64::Gpr def(const ir::Op& op);
  a64::Vec def_vec(const ir::Op& op);
  // True when nobody reads the value that this operation defines (its flags may be wanted all the same).
  bool unused(const ir::Op& op) const { return op.uses == 0; }
  // True when operand `value` is not read after the current operation.
  bool dies_here(ir::ValueId value) const;

  // ---- Guest memory ---------------------------------------------------------------------------------------------
  void fault_point();
  // Records a safepoint poll (one load) at the current place.
  void poll();

  // ---- Flags ----------------------------------------------------------------------------------------------------
  FlagForm flag_form() const { return flag_form_; }
  // NZCV now holds the flags of `mask` in `form`. `logic_value`: for kLogic, a register that holds the result, or 31.
  void set_flags(FlagForm form);
  void make_canonical();                       // converts NZCV in place
  a64::Cond condition(uint8_t x86_condition);  // A64 condition; may emit code (and then clobbers scratch registers)

  // ---- Cold paths -----------------------------------------------------------------------------------------------
  ColdPath& add_cold(ColdEmitter emit);  // `entry` and `back` are fresh labels, `op` the current operation
  void call_stub_hot(unsigned stub);     // ldr x16/x17 from the state, blr: clobbers kScratch1 and kLink
  uint16_t current_op() const { return current_; }

 private:
  FlagForm flag_form_ = FlagForm::kCanonical;
  uint16_t current_ = 0;
};

using EmitFunction = void (*)(Emitter&, const ir::Op&);

}  // namespace phybin::emit
