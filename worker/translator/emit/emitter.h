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
//   - leave NZCV alone unless the operation defines flags (or declares kClobbersNzcv); before defining some of them
//   while
//     others live on, call make_canonical(); after defining them, say in which form they are with set_flags().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "worker/translator/emit/a64.h"
#include "worker/translator/emit/homes.h"
#include "worker/translator/emit/location.h"
#include "worker/translator/guest_state.h"
#include "worker/translator/host_features.h"
#include "worker/translator/ir/ir.h"
#include "worker/translator/translate.h"

namespace phybin::emit {

struct ColdPath;
class Emitter;
using ColdEmitter = void (*)(Emitter&, const ColdPath&);

// Code out of line, written after the last block: entered at `entry`, goes on at `back`. When it is written no value
// has a register any more: what it needs is in `regs` and `data`.
struct ColdPath {
  ColdEmitter emit;
  a64::Label entry, back;
  uint16_t op;      // index in Region::ops
  uint8_t regs[6];  // whatever the emitter of the operation wants to hand over
  uint64_t data;
};

// Where a value can be had at an edge of a block: what PF and AF are made from there.
struct Source {
  enum class Kind : uint8_t { kNone, kRegister, kConstant, kOffset, kSpill } kind = Kind::kNone;
  uint8_t reg = 31;
  int32_t imm = 0;  // the constant's low byte; kOffset: value = reg + imm; kSpill: slot
};

// The flags at the end of a block as far as they are not canonical yet: what an edge that needs them has to do.
struct PendingFlags {
  FlagForm form = FlagForm::kCanonical;
  uint8_t logic_reg = 31;  // kLogic: register that holds the result, 31 = none
  bool logic_64 = false;
  bool has_pf = false, has_af = false;
  ir::AfKind af_kind = ir::AfKind::kPlain;
  Source pf, af_a, af_b;
};

// An edge of a block whose code stands out of line.
struct DeferredEdge {
  PendingFlags pending;
  uint64_t target;
  a64::Label label;
  uint16_t block;  // of the region, at `target`; or kNoBlock
  uint16_t from_block;
};

// The cold half of a direct exit.
struct ColdExit {
  PendingFlags pending;
  a64::Assembler::Ahead branch;  // without open_exits: that leads here
  uint16_t pair;                 // of slots; with open_exits: index into RegionCode::exits
};

// The cold half of an indirect exit.
struct ColdIndirect {
  PendingFlags pending;
  a64::Assembler::Ahead branch;
  HostReg target;  // register with the guest's target
  bool is_return;
};

using ir::Where;

// A window of operations that are computed again when its check, the operation `check`, finds a NaN: where the values
// are that this starts from and those that it has to correct, and which registers are free.
struct AgainWindow {
  uint16_t first, check;
  uint32_t first_value, end_value;  // in EmitterMemory::again_values
  uint32_t free_vec;                // bit per host register
};
struct ValueRegister {
  ir::ValueId value;
  uint8_t reg;
};

// Memory that is kept from one translation to the next, because allocating it would cost as much as using it.
struct EmitterMemory {
  a64::Assembler::Memory assembler;
  FlatArray<ColdPath> cold;
  FlatArray<DeferredEdge> deferred_edges;
  FlatArray<ColdExit> cold_exits;
  FlatArray<ColdIndirect> cold_indirects;
  FlatArray<AgainWindow> again_windows;
  FlatArray<ValueRegister> again_values;

  // For the next translation.
  void clear();
};

// What is where at a point of a block.
struct IntegerTables {
  std::array<ir::ValueId, 16> home_{};  // value that lives in a guest register's home
  std::array<ir::ValueId, kIntTemps> temp_{};
  std::array<ir::ValueId, 8> spill_{};
  uint32_t free_int_ = kAllIntTemps, free_vec_ = kAllVecTemps;  // bit per host register
  uint32_t borrowed_int_ = 0, borrowed_vec_ = 0;                // temporary() of this expansion
  uint32_t pinned_int_ = 0, pinned_vec_ = 0;                    // registers handed out for operands of this expansion
  unsigned offsets_ = 0;                                        // values that live as an offset from a home
};
struct VectorTables {
  std::array<ir::ValueId, 16> vec_home_{};
  std::array<ir::ValueId, 16> vec_copy_{};  // value of another register that this home holds a copy of
  std::array<ir::ValueId, 32> vec_temp_{};
  std::array<ir::ValueId, 16> vec_spill_{};
  bool vec_touched_ = false;  // something stands in these tables
};

class Emitter : private IntegerTables, private VectorTables {
 public:
  // The walk keeps its books in the region's operations: where each value is, how often it is still read.
  Emitter(EmitterMemory& memory, ir::Region& region, const TranslateInput& input, RegionCode& out);

  // Emits the whole region. False when a branch does not reach or registers ran out: translate a smaller region.
  bool run();

  a64::Assembler a;
  const ir::Region& region;
  const CodeOptions& options;
  const HostFeatures& host;

  // ---- Operands and results -----------------------------------------------------------------------------------
  a64::Gpr use(ir::ValueId value) {
    const ir::Op& v = ops_[value];
    return v.where == Where::kHome ? gpr_home(v.reg) : use_elsewhere(value);
  }
  // The same, but register 31 for the constant 0: only where 31 means the zero register.
  a64::Gpr use_or_zero(ir::ValueId value) {
    const ir::Op& v = ops_[value];
    if (v.where == Where::kHome) return gpr_home(v.reg);
    return v.where == Where::kConst && v.imm == 0 && is_constant(value) ? a64::kZr : use_elsewhere(value);
  }
  a64::Vec use_vec(ir::ValueId value);
  bool is_constant(ir::ValueId value) const { return ops_[value].code == ir::Opcode::kConst; }
  int64_t constant(ir::ValueId value) const { return ops_[value].imm; }
  // True for a kGuestAddress that is in no register.
  bool is_unloaded_address(ir::ValueId value) const {
    return ops_[value].code == ir::Opcode::kGuestAddress && ops_[value].where == Where::kConst;
  }
  uint16_t reads_left(ir::ValueId value) const { return ops_[value].uses; }
  a64::Gpr def(const ir::Op& op);
  a64::Vec def_vec(const ir::Op& op);
  // True when nobody reads the value that this operation defines (its flags may be wanted all the same).
  static bool unused(const ir::Op& op) { return op.uses == 0; }
  // True when `value` is not read after the current operation.
  bool dies_here(ir::ValueId value) const { return ops_[value].uses == occurrences(ops_[current_], value); }
  // A temporary for this expansion alone.
  a64::Gpr temporary();
  a64::Vec temporary_vec();
  // Moves what lives in x0-x7 to spill slots: before a helper call.
  void spill_temporaries();
  // Gives the register `reg` (a temporary, not in use: after spill_temporaries) to the result.
  void def_in(const ir::Op& op, a64::Gpr reg);
  // For a result that is PF and is then merged into a register: takes PF's home for it, SetPf included, and is true.
  bool def_in_pf(const ir::Op& op);
  // Makes room before an expansion writes to a guest register's home itself.
  void evict_home(unsigned guest_reg) {
    if (offsets_ != 0 || home_[guest_reg] != ir::kNoValue) move_from_home(guest_reg);
  }
  // The same when the home is about to change by a constant: the old value need not be copied.
  void shift_home(unsigned guest_reg, int64_t delta);

  // ---- Guest memory (memory.cpp) --------------------------------------------------------------------------------
  void fault_point();
  // Should what the last fault_point() was called for fault, the guest goes back by so many instructions.
  void go_back_by(unsigned instructions);
  // Computes a + (b << aux) + imm of a memory operation into one register (a home, a temporary or kScratch0).
  a64::Gpr address(const ir::Op& op);
  // reg = a guest address, which may be one inside the module.
  void load_guest_address(a64::Gpr reg, uint64_t address);
  // reg = the page of a guest address; only with relative addresses.
  void load_guest_page(a64::Gpr reg, uint64_t address);
  bool relative_addresses() const { return input_.relative_addresses; }
  // The value of a kConst or kGuestAddress operation.
  void load_constant(a64::Gpr reg, ir::ValueId value);
  bool ordered() const { return options.memory_model == MemoryModel::kTso; }

  // ---- Flags (flags.cpp) ------------------------------------------------------------------------------------------
  FlagForm flag_form() const { return flag_form_; }
  void set_flags(FlagForm form) {
    flag_form_ = form;
    logic_value_ = ir::kNoValue;
  }
  // After ANDS whose result is the value of the current operation (kept in mind to make the flags canonical cheaply).
  void set_logic_flags(const ir::Op& op);
  // Whether PF of `op` is wanted at once and names its result (or operand a), for an expansion that can leave that in
  // PF's home; if so, it is taken to be there.
  bool take_pf(const ir::Op& op, ir::PfName name) {
    if (op.pf != ir::RawNeed::kAtOnce || (op.aux2 & name) == 0) return false;
    pf_taken_ = true;
    return true;
  }
  // Converts NZCV (and PF, AF from kFloat) in place.
  void make_canonical();
  // The A64 condition for an x86 condition under the current form. May emit code that leaves NZCV in another form.
  // For kFloat and E/NE no single condition exists: `second` is then a further condition: taken if either holds (E)
  // or only if both hold (NE); AL otherwise.
  a64::Cond condition(uint8_t x86_condition, a64::Cond& second);
  // Value 0/1 of x86 PF into `reg` (PF = 1 iff even parity); keeps NZCV.
  void parity(a64::Gpr reg);
  // The same in bit 0, the others undefined.
  void folded_parity(a64::Gpr reg);
  // NZCV flags outside `defined` that must survive the operation.
  static ir::FlagMask kept_nzcv(const ir::Op& op) {
    return static_cast<ir::FlagMask>(op.flags_live & ~op.flags_def & ir::kNzcv);
  }
  static ir::FlagMask wanted(const ir::Op& op) { return static_cast<ir::FlagMask>(op.flags_live & op.flags_def); }
  // Brings the flags in `needs` into canonical form at the end of a block.
  void materialise(const PendingFlags& pending, ir::FlagMask needs) {
    if (needs == 0 || (pending.form == FlagForm::kCanonical && !pending.has_pf && !pending.has_af)) return;
    materialise_all(pending, needs);
  }
  PendingFlags pending_flags();

  // ---- Cold paths and stubs ---------------------------------------------------------------------------------------
  // A cold path of the current operation with fresh labels.
  ColdPath& add_cold(ColdEmitter emit);
  // Loads the stub's address into kScratch2 and jumps there (call = BLR, else BR). Other registers as the stub wants.
  void go_to_stub(Stub stub, bool call) {
    const auto offset = offsetof(GuestState, stubs) + static_cast<unsigned>(stub) * 8;
    a.ldr(true, kScratch2, kState, static_cast<uint32_t>(offset));
    call ? a.blr(kScratch2) : a.br(kScratch2);
  }
  uint16_t current_op() const { return current_; }
  uint64_t instruction_address() const { return instruction_address(ops_[current_]); }
  uint64_t instruction_address(const ir::Op& op) const { return out_.instructions[op.instruction].address; }
  // A location table entry that serves cold code: the current instruction, flags as they are now.
  LocationEntry location(bool is_poll);
  void add_location(LocationEntry entry);

  // ---- Windows of NaNs (vector_nan.cpp) ---------------------------------------------------------------------------
  // While what FCheckNan checks is at hand: notes the registers for compute_again(). Returns its argument.
  uint64_t note_again_window();
  void compute_again(uint64_t window);
  // Whether this is compute_again().
  bool computes_again() const { return computes_again_; }

  // ---- Exits (exits.cpp) ------------------------------------------------------------------------------------------
  // Goes to a guest address: a block of this region or, without `block`, an exit. `from_block` tells backward jumps,
  // which poll.
  void edge(uint64_t target, uint16_t block, const PendingFlags& pending, int from_block, bool may_fall_through);
  void exit_direct(uint64_t target, const PendingFlags& pending, int from_block);
  void emit_entry_tables();
  void flush_exits();

  // What expansions of terminators leave for later.
  FlatArray<DeferredEdge>& deferred_edges;
  FlatArray<ColdExit>& cold_exits;
  FlatArray<ColdIndirect>& cold_indirects;
  // The first labels are those of the blocks.
  static a64::Label block_label(unsigned block) { return {block}; }
  int current_block() const { return block_; }
  uint16_t new_slot_pair(uint64_t target);
  // Goes to (or calls) code of the guest address `target`, which is none of the region's.
  void leave_region(uint64_t target, bool call, const PendingFlags& pending);
  // reg = the first slot of the pair, or the pair's address.
  void load_slot(a64::Gpr reg, uint16_t pair, bool address_only) {
    SlotUse& use = *out_.slots.add();
    use = {a.offset(), pair, address_only};
    a.word((address_only ? 0x10000000u : 0x58000000u) | reg);
  }
  uint16_t add_resume_point(uint64_t address);
  RegionCode& out() { return out_; }
  void poll(uint16_t instruction, FlagForm form);
  const ir::Block& this_block() const { return region.blocks[static_cast<std::size_t>(block_)]; }

 private:
  void emit_block(int index);
  void note_instruction(uint16_t instruction);
  uint16_t next_living(uint16_t index) const;
  static bool gives_pf_alone(const ir::Op& op) {
    return op.uses == 1 && op.pf == ir::RawNeed::kAtOnce && (op.aux2 & ir::kPfOfResult) != 0;
  }
  void before_float_form_goes(const ir::Op& op, bool names_raw);
  void load_af_before(const ir::Op& op);
  void load_pf_after(const ir::Op& op);
  void leave_float_form(const ir::Op& op);
  void load_af(const ir::AfSource& af);
  void load_pf(ir::ValueId value);
  void finish_op(const ir::Op& op);
  // A later operation of the block has been emitted along with the current one.
  void absorb(uint16_t index);
  void drop_read(ir::ValueId value) {
    if (value == ir::kNoValue) return;
    ir::Op& v = ops_[value];
    if (--v.uses == 0 && v.where != Where::kNowhere) release(value, v);
  }
  // Takes the register away from a value that nobody reads any more.
  void release(ir::ValueId value, ir::Op& v) {
    if (v.where == Where::kHome && home_[v.reg] == value) {  // mostly
      home_[v.reg] = ir::kNoValue;
      v.where = Where::kNowhere;
    } else {
      release(value);
    }
  }
  // Reads of `value` that end with the operation. What waits for the edges reads its operands there.
  static unsigned occurrences(const ir::Op& op, ir::ValueId value) {
    return op.sunk ? 0 : unsigned{op.a == value} + unsigned{op.b == value} + unsigned{op.c == value};
  }
  void release(ir::ValueId value);
  a64::Gpr allocate();
  a64::Vec allocate_vec();
  // Temporaries, that is: the result may take one of them.
  void free_dying_operands(const ir::Op& op) {
    const auto free_if_dying = [&](ir::ValueId value) {
      if (ops_[value].where == Where::kTemp && ops_[value].uses == occurrences(op, value)) release(value);
    };
    free_if_dying(op.a);
    free_if_dying(op.b);
    free_if_dying(op.c);
  }
  a64::Gpr use_elsewhere(ir::ValueId value);
  a64::Vec def_vec_again(const ir::Op& op);
  a64::Gpr def_special(const ir::Op& op);
  void hold_in(a64::Gpr reg);
  void leave_home_to(const ir::Op& op);
  void move_to_home(ir::ValueId value, unsigned guest_reg);
  void evict_vec_home(unsigned guest_reg);
  bool leave_home(unsigned guest_reg);
  void move_from_home(unsigned guest_reg);
  bool exchanges_in_place(const ir::Op& op) const;
  void copy_operand_a(const ir::Op& op, a64::Gpr to);
  Source source_of(ir::ValueId value);
  void flush_cold();
  void materialise_all(const PendingFlags& pending, ir::FlagMask needs);
  bool is_vec(ir::ValueId v) const { return (ir::traits(ops_[v].code) & ir::kDefinesVec) != 0; }

  friend void emit_Push(Emitter&, const ir::Op&);
  friend void emit_Pop(Emitter&, const ir::Op&);
  friend void emit_SetGpr(Emitter&, const ir::Op&);
  friend void emit_SetVec(Emitter&, const ir::Op&);
  friend void emit_GetVec(Emitter&, const ir::Op&);
  friend void emit_SetPf(Emitter&, const ir::Op&);
  friend void emit_SetAf(Emitter&, const ir::Op&);

  RegionCode& out_;
  const TranslateInput& input_;
  ir::Op* const ops_;
  FlagForm flag_form_ = FlagForm::kCanonical;
  ir::ValueId logic_value_ = ir::kNoValue;
  // PF and AF that wait for the edges of the block.
  ir::ValueId sunk_pf_ = ir::kNoValue;
  uint16_t sunk_af_ = 0;   // the operation that names AF
  bool pf_taken_ = false;  // the expansion has left PF at home
  uint16_t current_ = 0;
  bool exhausted_ = false;  // an operation wanted more registers than there are
  int block_ = 0;
  bool computes_again_ = false;
  FlatArray<ColdPath>& cold_;
  FlatArray<AgainWindow>& again_windows_;
  FlatArray<ValueRegister>& again_values_;
};

using EmitFunction = void (*)(Emitter&, const ir::Op&);
extern const EmitFunction kEmit[static_cast<unsigned>(ir::Opcode::kCount)];

#define OP(name, result, operands, properties) void emit_##name(Emitter&, const ir::Op&);
PHYBIN_IR_OPCODES(OP)
#undef OP

}  // namespace phybin::emit
