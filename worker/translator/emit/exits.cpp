// Terminators: how control leaves a block, a region, and the translated code.
//
// Flags at exits. Almost no code reads flags across a call, a return or a jump out of a region, so exits do not make
// them canonical on their hot path. An entry whose code needs flags (RegionEntry::live_in) can be reached only
// through paths that have done so: the second slot of a pair, table and shadow stack keys with kNeedsFlags. The first
// slot and plain keys lead to entries that take no flags. Where the hot path finds nothing, the cold path makes the
// flags canonical and looks in the other place. (docs/design.md, "Flags at exits".)
//
// Registers at exits: x16 guest target or guest return address, x17 and x30 scratch; all else is guest state.
#include "worker/translator/emit/emitter.h"

namespace phybin::emit {

using a64::Cond;
using a64::Gpr;
using a64::Label;
using ir::Op;

namespace {

constexpr unsigned kGuestRsp = 4;
constexpr auto kLookupOffset = static_cast<int32_t>(offsetof(GuestState, lookup));

// Jumps (or calls) to the guest address in `target` through the thread's table.
void probe_table(Emitter& e, Gpr target, bool call) {
  e.a.ubfiz(true, kScratch1, target, 4, kLookupBits);
  e.a.add(true, kScratch1, kState, kScratch1);
  e.a.ldp(true, kScratch1, kScratch2, kScratch1, kLookupOffset);
  e.a.sub(true, kScratch1, kScratch1, target);
  const a64::Assembler::Ahead to_cold = e.a.cbnz_ahead(true, kScratch1);
  call ? e.a.blr(kScratch2) : e.a.br(kScratch2);
  *e.cold_indirects.add() = {e.pending_flags(), to_cold, target, false};
}

// The guest's return address onto the guest stack, and with the host's onto the shadow stack. Ends with the flags
// that are pending behind the call.
Label push_return(Emitter& e) {
  const uint64_t return_address = e.this_block().fallthrough;
  const uint16_t return_block = e.this_block().next;
  const ir::FlagMask needs = return_block == ir::kNoBlock ? ir::kAllFlags : e.region.blocks[return_block].live_in;
  e.load_guest_address(kScratch0, return_address);
  if (e.ordered()) {
    e.a.sub_imm(true, kScratch1, gpr_home(kGuestRsp), 8);
    e.fault_point();
    e.a.stlr(a64::kD, kScratch0, kScratch1);
    e.shift_home(kGuestRsp, -8);
    e.a.mov(true, gpr_home(kGuestRsp), kScratch1);
  } else {
    e.shift_home(kGuestRsp, -8);  // may emit a move, so before the place that faults
    e.fault_point();
    e.a.str_pre(true, kScratch0, gpr_home(kGuestRsp), -8);
  }
  if (needs != 0) e.a.orr_imm(true, kScratch0, kScratch0, kNeedsFlags);
  const bool next = return_block == e.current_block() + 1;
  const Label site = next ? e.block_label(return_block) : e.a.new_label();
  e.a.adr(kScratch1, site);
  e.a.pair_pre(a64::PairOp::STP_X, kScratch0, kScratch1, kShadowStack, -16);
  return site;
}

// Behind a call: where its return site is not the next block, a jump to it. Returns come here with flags as `needs`
// says.
void place_return_site(Emitter& e, Label site) {
  const uint16_t return_block = e.this_block().next;
  if (return_block == e.current_block() + 1) return;
  e.a.bind(site);
  if (return_block != ir::kNoBlock) {
    e.a.b(e.block_label(return_block));
  } else {
    e.exit_direct(e.this_block().fallthrough, PendingFlags{}, -1);
  }
}

bool in_registers(const PendingFlags& p) {
  if (p.has_pf && p.pf.kind != Source::Kind::kRegister) return false;
  if (p.has_af && (p.af_a.kind != Source::Kind::kRegister || p.af_b.kind != Source::Kind::kRegister)) return false;
  return true;
}

}  // namespace

uint16_t Emitter::add_resume_point(uint64_t address) {
  out_.instructions.push_back({address, 0});
  return static_cast<uint16_t>(out_.instructions.size() - 1);
}

void Emitter::poll(uint16_t instruction, FlagForm form) {
  if (!options.safepoints) return;
  LocationEntry entry{};
  entry.instruction = instruction;
  entry.flag_form = form;
  entry.pf = kPfHome;
  entry.af_a = kAfHome;
  entry.af_b = a64::kZr;
  entry.is_poll = true;
  add_location(entry);
  a.ldur(false, a64::kZr, kState, kPollDisplacement);
}

void Emitter::edge(uint64_t target, uint16_t block, const PendingFlags& pending, int from_block,
                   bool may_fall_through) {
  if (block == ir::kNoBlock) {
    exit_direct(target, pending, from_block);
    return;
  }
  const ir::Block& to = region.blocks[block];
  materialise(pending, to.live_in);
  if (block <= from_block) {
    poll(region.ops[to.first].instruction, FlagForm::kCanonical);
  } else if (may_fall_through && block == from_block + 1) {
    return;
  }
  a.b(block_label(block));
}

void Emitter::exit_direct(uint64_t target, const PendingFlags& pending, int from_block) {
  PendingFlags rest = pending;
  if (input_.all_flags_at_exit) {
    materialise(rest, ir::kAllFlags);
    rest = PendingFlags{};
    out_.body_words = a.offset() / 4;
  }
  if (from_block >= 0 && options.safepoints &&
      target <= region.blocks[static_cast<std::size_t>(from_block)].address) {
    if (!in_registers(rest)) {
      materialise(rest, ir::kAllFlags);
      rest = PendingFlags{};
    }
    poll(add_resume_point(target), rest.form);
    LocationEntry& entry = out_.locations.back();
    if (rest.has_pf) entry.pf = rest.pf.reg;
    if (rest.has_af) {
      entry.af_a = rest.af_a.reg;
      entry.af_b = rest.af_b.reg;
    }
  }
  leave_region(target, false, rest);
}

inline uint16_t Emitter::new_slot_pair(uint64_t target) {
  const SlotPair* const pairs = out_.slot_pairs.begin();
  const std::size_t count = out_.slot_pairs.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (pairs[i].target == target) return static_cast<uint16_t>(i);
  }
  *out_.slot_pairs.add() = {target};
  return static_cast<uint16_t>(count);
}

void Emitter::leave_region(uint64_t target, bool call, const PendingFlags& pending) {
  ColdExit& cold = *cold_exits.add();
  cold.pending = pending;
  if (input_.open_exits) {
    cold.pair = static_cast<uint16_t>(out_.exits.size());
    out_.exits.push_back({a.offset(), 0, 0, target});
    call ? a.bl_offset(0) : a.b_offset(0);
    return;
  }
  cold.pair = new_slot_pair(target);
  load_slot(kScratch1, cold.pair, false);
  cold.branch = a.cbz_ahead(true, kScratch1);
  call ? a.blr(kScratch1) : a.br(kScratch1);
}

// The cold halves of exits: flags canonical, then the second slot, then the runtime.
void Emitter::flush_exits() {
  for (const ColdExit& x : cold_exits) {
    a.make_room();
    if (input_.open_exits) {
      out_.exits[x.pair].cold = a.offset();
      materialise(x.pending, ir::kAllFlags);
      out_.exits[x.pair].cold_branch = a.offset();
      a.b_offset(0);
      continue;
    }
    a.arrive(x.branch);
    materialise(x.pending, ir::kAllFlags);
    load_slot(kScratch1, x.pair, true);
    go_to_stub(Stub::kResolveSlot, false);
  }
  for (const ColdIndirect& x : cold_indirects) {
    a.make_room();
    a.arrive(x.branch);
    if (x.is_return) {
      // x17 = key - target, x30 = host address of the entry popped: it may have been right, for code that needs
      // flags. The stub wants x16, x17 and x30.
      materialise(x.pending, ir::kAllFlags);
      a.eor_imm(true, 0, kScratch1, kNeedsFlags);
      const a64::Assembler::Ahead miss = a.cbnz_ahead(true, 0);
      a.ret(kScratch2);
      a.arrive(miss);
      constexpr auto kOffset = offsetof(GuestState, stubs) + static_cast<unsigned>(Stub::kReturnMiss) * 8;
      a.ldr(true, 0, kState, static_cast<uint32_t>(kOffset));
      a.br(0);
    } else {
      if (x.target != kScratch0) a.mov(true, kScratch0, x.target);
      materialise(x.pending, ir::kAllFlags);
      go_to_stub(Stub::kLookup, false);
    }
  }
}

void Emitter::emit_entry_tables() {
  out_.entries.set_size(region.blocks.size());
  RegionEntry* entry = out_.entries.begin();
  unsigned number = 0;
  for (const ir::Block& block : region.blocks) {
    const Label label = block_label(number++);
    if (block.is_repeat) continue;
    if (block.is_entry || (input_.enter_anywhere && block.live_in == 0))
      *entry++ = {block.address, a.offset_of(label), block.live_in};
  }
  out_.entries.set_size(static_cast<std::size_t>(entry - out_.entries.begin()));
}

void emit_Jump(Emitter& e, const Op& op) {
  e.edge(static_cast<uint64_t>(op.imm), e.this_block().taken, e.pending_flags(), e.current_block(), true);
}

namespace {

bool nothing_to_do(const PendingFlags& pending, ir::FlagMask needs) {
  if (pending.form == FlagForm::kFloat) return needs == 0;
  if ((needs & ir::kC) != 0 && pending.form != FlagForm::kCanonical) return false;
  if ((needs & (ir::kP | ir::kA)) != 0 && pending.has_pf) return false;
  return (needs & ir::kA) == 0 || !pending.has_af;
}

// The taken side of a conditional branch: straight to its block when nothing is left to do on the way there. A
// backward branch then polls before it, if the guest can go on at the branch itself (`repeatable`): what it tests is
// guest state, and it has changed none.
Label taken_label(Emitter& e, uint64_t target, const PendingFlags& pending, bool repeatable) {
  const uint16_t block = e.this_block().taken;
  if (block != ir::kNoBlock && nothing_to_do(pending, e.region.blocks[block].live_in)) {
    if (block > e.current_block()) return e.block_label(block);
    if (!e.options.safepoints) return e.block_label(block);
    if (repeatable && in_registers(pending)) {
      e.add_location(e.location(true));
      e.a.ldur(false, a64::kZr, kState, kPollDisplacement);
      return e.block_label(block);
    }
  }
  DeferredEdge& edge = *e.deferred_edges.add();
  edge = {pending, target, e.a.new_label(), block, static_cast<uint16_t>(e.current_block())};
  return edge.label;
}

}  // namespace

void emit_Branch(Emitter& e, const Op& op) {
  const auto target = static_cast<uint64_t>(op.imm);
  const uint64_t fallthrough = e.this_block().fallthrough;
  if ((op.aux & 0xe) == 10 && e.flag_form() != FlagForm::kFloat) {
    e.parity(kScratch0);
    const PendingFlags pending = e.pending_flags();
    const Label taken = taken_label(e, target, pending, true);
    if (op.aux == 10) {
      e.a.cbnz(false, kScratch0, taken);
    } else {
      e.a.cbz(false, kScratch0, taken);
    }
    e.edge(fallthrough, e.this_block().next, pending, e.current_block(), true);
    return;
  }
  Cond second;
  const Cond cond = e.condition(op.aux, second);
  const PendingFlags pending = e.pending_flags();
  const Label taken = taken_label(e, target, pending, true);
  if (second == Cond::AL) {
    e.a.b_cond(cond, taken);
  } else if (cond == Cond::EQ) {
    e.a.b_cond(cond, taken);
    e.a.b_cond(second, taken);
  } else {
    // NE holds only for ordered operands: skip when equal, taken when the second one holds as well.
    const Label skip = e.a.new_label();
    e.a.b_cond(a64::invert(cond), skip);
    e.a.b_cond(second, taken);
    e.a.bind(skip);
  }
  e.edge(fallthrough, e.this_block().next, pending, e.current_block(), true);
}

void emit_BranchZero(Emitter& e, const Op& op) {
  const Gpr x = e.use(op.a);
  const PendingFlags pending = e.pending_flags();
  // LOOP has counted already; a fused TEST has not left flags.
  const Label taken = taken_label(e, static_cast<uint64_t>(op.imm), pending, false);
  if (op.aux2 != 0) {
    const unsigned bit = op.aux2 - 1u;
    op.aux == 0 ? e.a.tbz(x, bit, taken) : e.a.tbnz(x, bit, taken);
  } else {
    op.aux == 0 ? e.a.cbz(op.width == 64, x, taken) : e.a.cbnz(op.width == 64, x, taken);
  }
  e.edge(e.this_block().fallthrough, e.this_block().next, pending, e.current_block(), true);
}

void emit_JumpIndirect(Emitter& e, const Op& op) {
  const Gpr target = e.use(op.a);
  if (e.options.safepoints) {
    e.add_location(e.location(true));
    e.a.ldur(false, a64::kZr, kState, kPollDisplacement);
  }
  probe_table(e, target, false);
}

void emit_Call(Emitter& e, const Op& op) {
  const auto target = static_cast<uint64_t>(op.imm);
  const Label site = push_return(e);
  const PendingFlags pending = e.pending_flags();
  if (const uint16_t target_block = e.this_block().taken; target_block != ir::kNoBlock) {
    e.materialise(pending, e.region.blocks[target_block].live_in);
    e.a.bl(e.block_label(target_block));
  } else {
    e.leave_region(target, true, pending);
  }
  place_return_site(e, site);
}

void emit_CallIndirect(Emitter& e, const Op& op) {
  Gpr target = e.use(op.a);
  if (target == gpr_home(kGuestRsp)) {  // the push moves it
    target = e.temporary();
    e.a.mov(true, target, gpr_home(kGuestRsp));
  }
  const Label site = push_return(e);
  probe_table(e, target, true);
  place_return_site(e, site);
}

void emit_CallThrough(Emitter& e, const Op& op) {
  const Label site = push_return(e);
  const auto pointer = static_cast<uint64_t>(op.imm);
  const uint32_t in_page = pointer & 0xfff;
  const bool folds = e.relative_addresses() && !e.ordered() && in_page % 8 == 0;
  folds ? e.load_guest_page(kScratch0, pointer) : e.load_guest_address(kScratch0, pointer);
  // Should the pointer not be readable, the guest has arrived in the stub.
  LocationEntry entry = e.location(false);
  entry.instruction = e.add_resume_point(static_cast<uint64_t>(e.constant(op.a)));
  e.add_location(entry);
  if (e.ordered()) {
    e.a.ldar(a64::kD, kScratch0, kScratch0);
  } else {
    e.a.ldr(true, kScratch0, kScratch0, folds ? in_page : 0);
  }
  probe_table(e, kScratch0, true);
  place_return_site(e, site);
}

void emit_Return(Emitter& e, const Op& op) {
  const Gpr rsp = gpr_home(kGuestRsp);
  if (e.ordered()) {
    e.fault_point();
    e.a.ldar(a64::kD, kScratch0, rsp);
    e.shift_home(kGuestRsp, 8 + op.imm);
    e.a.add_imm(true, rsp, rsp, 8);
  } else {
    e.shift_home(kGuestRsp, 8 + op.imm);
    e.fault_point();
    e.a.ldr_post(true, kScratch0, rsp, 8);
  }
  if (op.imm != 0) {
    e.a.mov_imm(true, kScratch1, static_cast<uint64_t>(op.imm));
    e.a.add(true, rsp, rsp, kScratch1);
  }
  e.a.pair_post(a64::PairOp::LDP_X, kScratch1, kScratch2, kShadowStack, 16);
  e.a.sub(true, kScratch1, kScratch1, kScratch0);
  const a64::Assembler::Ahead to_cold = e.a.cbnz_ahead(true, kScratch1);
  e.a.ret(kScratch2);
  *e.cold_indirects.add() = {e.pending_flags(), to_cold, kScratch0, true};
}

void emit_Syscall(Emitter& e, const Op&) {
  e.materialise(e.pending_flags(), ir::kAllFlags);
  e.load_guest_address(kScratch0, e.this_block().fallthrough);
  e.go_to_stub(Stub::kSyscall, false);
}

void emit_Trap(Emitter& e, const Op& op) {
  e.materialise(e.pending_flags(), ir::kAllFlags);
  e.load_guest_address(kScratch0, e.instruction_address());
  e.a.mov_imm(false, kScratch1, static_cast<uint32_t>(op.aux) | static_cast<uint32_t>(op.imm & 0xff) << 8);
  e.go_to_stub(Stub::kTrap, false);
}

}  // namespace phybin::emit
