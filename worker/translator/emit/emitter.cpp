// The walk over the blocks, cold code and location tables of the emitter; see emitter.h.
#include "worker/translator/emit/emitter.h"

namespace phybin::emit {

using ir::kNoValue;
using ir::Op;
using ir::Opcode;
using ir::ValueId;

constexpr EmitFunction kEmit[static_cast<unsigned>(Opcode::kCount)] = {
#define OP(name, result, operands, properties) emit_##name,
    PHYBIN_IR_OPCODES(OP)
#undef OP
};

void EmitterMemory::clear() {
  cold.clear();
  deferred_edges.clear();
  cold_exits.clear();
  cold_indirects.clear();
  again_windows.clear();
  again_values.clear();
}

Emitter::Emitter(EmitterMemory& memory, ir::Region& region_in, const TranslateInput& input, RegionCode& out)
    : a(memory.assembler, out.words),
      region(region_in),
      options(input.options),
      host(input.host),
      deferred_edges(memory.deferred_edges),
      cold_exits(memory.cold_exits),
      cold_indirects(memory.cold_indirects),
      out_(out),
      input_(input),
      ops_(region_in.ops.data()),
      cold_(memory.cold),
      again_windows_(memory.again_windows),
      again_values_(memory.again_values) {
  memory.clear();
  a.new_labels(region.blocks.size());
}

bool Emitter::run() {
  for (int i = 0; i < static_cast<int>(region.blocks.size()); ++i) emit_block(i);
  if (input_.note_instructions) out_.cold_offset = a.offset();
  flush_cold();
  a.emit_literals();
  emit_entry_tables();
  a.finish();
  return !a.failed() && !exhausted_;
}

void Emitter::note_instruction(uint16_t instruction) {
  if (!out_.starts.empty() && out_.starts.back().instruction == instruction) return;
  out_.starts.push_back({a.offset(), instruction});
}

[[gnu::always_inline]] inline void Emitter::finish_op(const Op& op) {
  if (!op.sunk) {
    drop_read(op.a);
    drop_read(op.b);
    drop_read(op.c);
  }
  if ((borrowed_int_ | borrowed_vec_) != 0) {
    free_int_ |= borrowed_int_;
    free_vec_ |= borrowed_vec_;
    borrowed_int_ = borrowed_vec_ = 0;
  }
}

void Emitter::absorb(uint16_t index) {
  Op& op = ops_[index];
  if (input_.note_instructions) note_instruction(op.instruction);
  drop_read(op.a);
  if (op.writes_home) drop_read(index);
  op.dead = true;
}

void Emitter::emit_block(int index) {
  block_ = index;
  const ir::Block& block = this_block();
  a.bind(block_label(static_cast<unsigned>(index)));
  flag_form_ = FlagForm::kCanonical;
  logic_value_ = kNoValue;
  sunk_pf_ = kNoValue;
  sunk_af_ = 0;
  static_cast<IntegerTables&>(*this) = IntegerTables{};
  if (vec_touched_) static_cast<VectorTables&>(*this) = VectorTables{};
  Op* const ops = ops_;
  const bool note = input_.note_instructions;
  const unsigned last = block.last;
  for (unsigned i = block.first; i < last; ++i) {
    Op& op = ops[i];
    if (op.dead) continue;
    if (note) note_instruction(op.instruction);
    // The most frequent ones are nothing but bookkeeping.
    if (op.code <= Opcode::kGuestAddress) {
      if (op.code == Opcode::kGetGpr) {
        op.where = Where::kHome;
        op.reg = op.aux;
        home_[op.aux] = static_cast<ValueId>(i);
        continue;
      }
      if (op.code == Opcode::kSetGpr) {
        if (ops[op.a].where == Where::kHome && ops[op.a].reg == op.aux) {
          drop_read(op.a);
          continue;
        }
      } else if (op.code == Opcode::kConst || op.code == Opcode::kGuestAddress) {
        op.where = Where::kConst;
        if (op.writes_home) {
          current_ = static_cast<uint16_t>(i);
          pinned_int_ = 0;
          move_to_home(static_cast<ValueId>(i), op.home);
          drop_read(static_cast<ValueId>(i));
        }
        continue;
      }
    }
    current_ = static_cast<uint16_t>(i);
    pinned_int_ = pinned_vec_ = 0;
    a.make_room();
    const ir::RawNeed pf = op.pf, af = op.af;
    const bool raw = pf != ir::RawNeed::kNone || af != ir::RawNeed::kNone;
    if (flag_form_ == FlagForm::kFloat) [[unlikely]]
      before_float_form_goes(op, raw);
    if (!raw) {
      kEmit[static_cast<unsigned>(op.code)](*this, op);
      finish_op(op);
    } else {
      if (af == ir::RawNeed::kAtOnce) load_af_before(op);
      // Neither the result nor NZCV may be wanted when PF is that of an operand.
      if (op.uses != 0 || (wanted(op) & ir::kNzcv) != 0) kEmit[static_cast<unsigned>(op.code)](*this, op);
      finish_op(op);
      if (pf == ir::RawNeed::kAtOnce) load_pf_after(op);
      if (pf == ir::RawNeed::kAtEdges) sunk_pf_ = pf_value(op, static_cast<ValueId>(i));
      if (af == ir::RawNeed::kAtEdges) sunk_af_ = static_cast<uint16_t>(i);
    }
    if (op.writes_home) {
      if (op.where != Where::kHome || op.reg != op.home) {
        pinned_int_ = 0;
        move_to_home(static_cast<ValueId>(i), op.home);
      }
      drop_read(static_cast<ValueId>(i));
    }
  }
}

// The next operation of the block that is emitted, 0 if there is none.
uint16_t Emitter::next_living(uint16_t index) const {
  const uint16_t last = this_block().last;
  for (++index; index < last; ++index) {
    if (!ops_[index].dead) return index;
  }
  return 0;
}

ColdPath& Emitter::add_cold(ColdEmitter emit) {
  ColdPath& path = *cold_.add();
  path = {emit, a.new_label(), a.new_label(), current_, {}, 0};
  return path;
}

void Emitter::flush_cold() {
  // Cold code of edges may add cold exits, so those come last.
  for (const DeferredEdge& e : deferred_edges) {
    a.make_room();
    a.bind(e.label);
    edge(e.target, e.block, e.pending, e.from_block, false);
  }
  for (std::size_t i = 0; i < cold_.size(); ++i) {
    const ColdPath cold = cold_[i];
    current_ = cold.op;
    a.make_room();
    a.bind(cold.entry);
    cold.emit(*this, cold);
  }
  flush_exits();
}

LocationEntry Emitter::location(bool is_poll) {
  LocationEntry entry{};
  entry.instruction = ops_[current_].instruction;
  entry.flag_form = flag_form_;
  entry.pf = kPfHome;
  entry.af_a = kAfHome;
  entry.af_b = 31;
  entry.is_poll = is_poll;
  // PF and AF that wait for an edge: described when registers hold them; else they are stale, which only a frame can
  // show, since every path that goes on redefines or rebuilds them.
  if (sunk_pf_ != kNoValue) {
    const Source pf = source_of(sunk_pf_);
    if (pf.kind == Source::Kind::kRegister) entry.pf = pf.reg;
  }
  if (sunk_af_ != 0) {
    const ir::AfSource af = af_source(ops_[sunk_af_]);
    if (af.kind == ir::AfKind::kPlain && af.b != kNoValue) {
      const Source x = source_of(af.a), y = source_of(af.b);
      if (x.kind == Source::Kind::kRegister && y.kind == Source::Kind::kRegister) {
        entry.af_a = x.reg;
        entry.af_b = y.reg;
      }
    }
  }
  return entry;
}

void Emitter::add_location(LocationEntry entry) {
  entry.code_offset = a.offset();
  out_.locations.push_back(entry);
}

void Emitter::fault_point() {
  if (sunk_pf_ == kNoValue && sunk_af_ == 0) {
    LocationEntry& entry = *out_.locations.add();
    entry = {a.offset(), flag_form_, kPfHome, kAfHome, a64::kZr, ops_[current_].instruction, false, 0};
  } else {
    add_location(location(false));
  }
}

void Emitter::go_back_by(unsigned instructions) {
  LocationEntry& entry = out_.locations.back();
  entry.instruction = static_cast<uint16_t>(entry.instruction - instructions);
  entry.pf |= kGoesBack;
}

}  // namespace phybin::emit
