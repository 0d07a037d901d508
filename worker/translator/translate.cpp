// From guest bytes to a region: which blocks belong to it, then lift, passes, emission. See translate.h.
//
// Discovery decodes along fall-through paths first and remembers taken targets, until `prefetch_depth` branches have
// been followed along a path or the instruction budget is spent. Only then is lifted: by that time all jump targets
// inside the region are known, so blocks need not be split afterwards.
#include "worker/translator/translate.h"

#include <array>
#include <initializer_list>

#include "worker/translator/decode/instruction.h"
#include "worker/translator/emit/emitter.h"
#include "worker/translator/ir/builder.h"
#include "worker/translator/ir/printer.h"
#include "worker/translator/lift/alignment.h"
#include "worker/translator/lift/lift_functions.h"
#include "worker/translator/passes/liveness.h"
#include "worker/translator/passes/vector_writes.h"

namespace phybin {

namespace {

using decode::DecodeStatus;
using decode::Instruction;
using decode::Mnemonic;

enum class Flow : uint8_t { kNext, kBranch, kJump, kCall, kEnd, kNextBlock };

constexpr auto kFlows = [] {
  std::array<Flow, decode::kMnemonicCount> flows{};
  const auto set = [&](Flow flow, std::initializer_list<Mnemonic> mnemonics) {
    for (const Mnemonic mnemonic : mnemonics) flows[static_cast<std::size_t>(mnemonic)] = flow;
  };
  set(Flow::kBranch, {Mnemonic::kJcc, Mnemonic::kLoop, Mnemonic::kLoope, Mnemonic::kLoopne, Mnemonic::kJrcxz});
  set(Flow::kJump, {Mnemonic::kJmp});
  set(Flow::kCall, {Mnemonic::kCall, Mnemonic::kCallIndirect});
  set(Flow::kNextBlock, {Mnemonic::kSyscall});
  set(Flow::kEnd, {Mnemonic::kJmpIndirect, Mnemonic::kRet, Mnemonic::kInvalid, Mnemonic::kUd0, Mnemonic::kUd1,
                   Mnemonic::kUd2, Mnemonic::kInt, Mnemonic::kInt1, Mnemonic::kInt3, Mnemonic::kHlt});
  return flows;
}();

struct Decoded {
  Instruction in;
  lift::LiftFunction lift;  // null: not implemented
  uint64_t address;
  uint64_t pointer;  // CALL of a stub that jumps through a pointer (PLT): where the pointer is, else 0
  uint64_t jump;     // and where the stub's jump is
  bool leader;       // starts a block
  bool entry;        // is reached from outside: region start, return site
};

class Discovery {
 public:
  // False when there is no code at the start.
  bool run(const TranslateInput& input) {
    input_ = input;
    instructions_.clear();
    instructions_.make_room(input_.max_instructions);
    pending_.clear();
    ranges_.clear();
    table_.fill(kFree);
    push({input_.pc, 0, true, false});
    while (!pending_.empty() && instructions_.size() < input_.max_instructions) {
      const Pending p = pending_.back();
      pending_.pop_back();
      walk(p);
    }
    return !instructions_.empty();
  }

  const FlatArray<Decoded>& instructions() const { return instructions_; }
  const std::vector<GuestRange>& ranges() const { return ranges_; }

 private:
  struct Pending {
    uint64_t pc;
    unsigned depth;
    bool entry;
    bool backward;
  };
  static constexpr uint16_t kFree = 0xffff;
  // How much of the depth a step uses up. Forward branches are rarely taken, and what is translated for nothing costs
  // more than translating it later: with these figures an empty dynamic program translates a fifth less code than
  // with 1 and 1.
  static constexpr unsigned kStepCost = 1, kForwardTakenCost = 4;
  // From which depth on a path ends where there is code already. Nearer, and where a loop may close, the way from one
  // region to another would be taken often. Return sites are always part of the region: elsewhere, nothing is known
  // about the flags that they need.
  static constexpr unsigned kKnownDepth = 3;

  void push(const Pending& p) {
    if (p.pc - input_.window.start < input_.window.size) pending_.push_back(p);
  }

  bool is_known(uint64_t pc) const { return input_.is_known != nullptr && input_.is_known(input_.known_context, pc); }

  uint16_t& lookup(uint64_t pc) {
    std::size_t i = (pc * 0x9e3779b97f4a7c15u) >> 54;
    while (table_[i] != kFree && instructions_[table_[i]].address != pc) i = (i + 1) & (table_.size() - 1);
    return table_[i];
  }

  // Calls of PLT stubs, `[endbr64] [bnd] jmp *pointer(%rip)`, go through the pointer themselves.
  void look_through(Decoded& call) {
    const auto target = static_cast<uint64_t>(call.in.imm);
    constexpr uint64_t kLongest = 11;
    const CodeWindow& w = input_.window;
    if (target < w.start || target - w.start >= w.size || w.size - (target - w.start) < kLongest) return;
    const uint8_t* bytes = w.bytes + (target - w.start);
    uint64_t at = 0;
    if (bytes[0] == 0xf3 && bytes[1] == 0x0f && bytes[2] == 0x1e && bytes[3] == 0xfa) at = 4;
    call.jump = target + at;
    if (bytes[at] == 0xf2) ++at;
    if (bytes[at] != 0xff || bytes[at + 1] != 0x25) return;
    const uint32_t displacement =
        bytes[at + 2] | uint32_t{bytes[at + 3]} << 8 | uint32_t{bytes[at + 4]} << 16 | uint32_t{bytes[at + 5]} << 24;
    const uint64_t end = target + at + 6;
    call.pointer = end + static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(displacement)));
    ranges_.push_back({target, end});
  }

  void walk(const Pending& p) {
    uint64_t pc = p.pc;
    unsigned depth = p.depth;
    bool leader = true, entry = p.entry, backward = p.backward;
    const uint64_t start = pc;
    while (instructions_.size() < input_.max_instructions) {
      uint16_t& known = lookup(pc);
      if (known != kFree) {
        instructions_[known].leader = true;
        instructions_[known].entry |= entry;
        break;
      }
      if (leader && depth >= kKnownDepth && !backward && !entry && is_known(pc)) break;
      backward = false;
      const uint64_t offset = pc - input_.window.start;
      if (offset >= input_.window.size) break;
      Decoded& d = *instructions_.add_in_room();
      d.address = pc;
      d.pointer = d.jump = 0;
      d.leader = leader;
      d.entry = entry;
      const DecodeStatus status = decode::decode(input_.window.bytes + offset, input_.window.size - offset, pc, d.in);
      if (status != DecodeStatus::kOk) {
        if (status == DecodeStatus::kOutOfBytes && pc != input_.pc) {
          instructions_.set_size(instructions_.size() - 1);
          break;
        }
        d.in = Instruction{};
        d.in.length = 1;
      }
      known = static_cast<uint16_t>(instructions_.size() - 1);
      leader = entry = false;
      const Instruction& in = d.in;
      pc += in.length;
      d.lift = lift::lift_function(in.mnemonic);
      Flow flow = kFlows[static_cast<std::size_t>(in.mnemonic)];
      if (flow == Flow::kNext) {
        if (d.lift != nullptr) continue;
        flow = Flow::kEnd;
      }
      if (flow == Flow::kEnd || input_.single_block) break;
      const auto may_follow = [&](unsigned cost) { return depth + cost <= input_.prefetch_depth; };
      if (flow == Flow::kJump) {
        const auto target = static_cast<uint64_t>(in.imm);
        if (may_follow(kStepCost)) push({target, depth + kStepCost, false, target < pc});
        break;
      }
      if (in.mnemonic == Mnemonic::kCall) look_through(d);
      if (flow == Flow::kBranch) {
        const auto target = static_cast<uint64_t>(in.imm);
        const unsigned cost = target < pc ? kStepCost : kForwardTakenCost;
        if (may_follow(cost)) push({target, depth + cost, false, target < pc});
      }
      if (!may_follow(kStepCost)) break;
      depth += kStepCost;
      leader = true;
      entry = flow != Flow::kBranch;
    }
    if (pc != start) ranges_.push_back({start, pc});
  }

  TranslateInput input_;
  FlatArray<Decoded> instructions_;
  std::vector<Pending> pending_;
  std::vector<GuestRange> ranges_;
  std::array<uint16_t, 1024> table_;
};

// Lifts an instruction, and ends the block if it or what stands behind it does.
[[gnu::always_inline]] inline void lift_instruction(const TranslateInput& input, const Decoded* decoded,
                                                    std::size_t count, std::size_t i, ir::Builder& builder,
                                                    lift::AlignmentFacts& alignment) {
  const Decoded& d = decoded[i];
  builder.begin_instruction(static_cast<uint16_t>(i));
  lift::Lifter lifter{builder, alignment, d.in, d.address, input.options, input.host};
  if (d.pointer != 0) {
    lift::lift_call_through(lifter, d.pointer, d.jump);
  } else if (d.lift != nullptr) {
    d.lift(lifter);
  } else {
    lifter.trap(ir::TrapKind::kInvalidOpcode);
  }
  const uint64_t next = d.address + d.in.length;
  if (!builder.block_ended()) {
    const bool goes_on = i + 1 < count && decoded[i + 1].address == next && !decoded[i + 1].leader;
    if (goes_on) return;
    builder.op(ir::Opcode::kJump, 0, ir::kNoValue, ir::kNoValue, ir::kNoValue, static_cast<int64_t>(next));
  }
  builder.end_block(next);
}

// The block that ends with instruction `last` once more, if it is a loop that has proved something for its next round
// (lift/alignment.h). Returns of how many instructions.
[[gnu::noinline]] std::size_t repeat_if_that_pays(const TranslateInput& input, const Decoded* decoded,
                                                  std::size_t count, std::size_t last, std::size_t most,
                                                  ir::Region& region, ir::Builder& builder,
                                                  lift::AlignmentFacts& alignment) {
  const Decoded& branch = decoded[last];
  const uint64_t start = region.blocks.back().address;
  if (branch.in.mnemonic != Mnemonic::kJcc || static_cast<uint64_t>(branch.in.imm) != start) return 0;
  std::size_t first = last;
  while (decoded[first].address != start) --first;
  const std::size_t length = last + 1 - first;
  const lift::AlignmentFacts::Carried carried = alignment.carried(builder);
  if (carried.count == 0 || length > most) return 0;
  builder.begin_block(start);
  region.blocks.back().is_repeat = true;
  builder.begin_instruction(static_cast<uint16_t>(first));
  alignment.begin(builder, carried);
  for (std::size_t i = first; i <= last; ++i) lift_instruction(input, decoded, count, i, builder, alignment);
  return length;
}

void lift_region(const TranslateInput& input, const FlatArray<Decoded>& instructions, ir::Region& region) {
  region.entry = input.pc;
  region.clear();
  ir::Builder builder(region);
  lift::AlignmentFacts alignment;
  std::size_t may_repeat = 128;  // instructions
  const std::size_t count = instructions.size();
  const Decoded* const decoded = instructions.data();
  region.instructions.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Decoded& d = decoded[i];
    region.instructions[i] = {d.address, d.in.length};
    if (builder.block_ended()) {
      builder.begin_block(d.address);
      region.blocks.back().is_entry = d.entry;
    }
    lift_instruction(input, decoded, count, i, builder, alignment);
    if (!builder.block_ended() || alignment.is_empty()) continue;
    may_repeat -= repeat_if_that_pays(input, decoded, count, i, may_repeat, region, builder, alignment);
    alignment.forget();
  }
}

bool build(const TranslateInput& input, Discovery& discovery, ir::Region& region) {
  if (!discovery.run(input)) return false;
  lift_region(input, discovery.instructions(), region);
  ir::index_blocks(region);
  passes::remove_overtaken_vector_writes(region);
  passes::analyse_liveness(region, input.all_flags_at_exit ? ir::kAllFlags : ir::FlagMask{0});
  return true;
}

}  // namespace

void RegionCode::clear() {
  words.clear();
  entries.clear();
  slots.clear();
  slot_pairs.clear();
  address_uses.clear();
  exits.clear();
  locations.clear();
  instructions.clear();
  guest_ranges.clear();
  starts.clear();
  cold_offset = 0;
  body_words = 0;
}

struct Translator::Memory {
  Discovery discovery;
  ir::Region region;
  emit::EmitterMemory emitter;
};

Translator::Translator() : memory_(std::make_unique<Memory>()) {}
Translator::~Translator() = default;

TranslateStatus Translator::translate(const TranslateInput& input, RegionCode& out) {
  Memory& m = *memory_;
  TranslateInput attempt = input;
  if (attempt.max_instructions > 512) attempt.max_instructions = 512;
  for (;;) {
    out.clear();
    if (!build(attempt, m.discovery, m.region)) return TranslateStatus::kNoCode;
    out.guest_ranges = m.discovery.ranges();
    out.instructions.swap(m.region.instructions);
    if (emit::Emitter(m.emitter, m.region, attempt, out).run()) {
      const auto words = m.emitter.buffer.words();
      out.words.assign(words.begin(), words.end());
      return TranslateStatus::kOk;
    }
    attempt.max_instructions /= 2;
  }
}

TranslateStatus translate(const TranslateInput& input, RegionCode& out) { return Translator().translate(input, out); }

std::string translate_to_ir_text(const TranslateInput& input) {
  Discovery discovery;
  ir::Region region;
  if (!build(input, discovery, region)) return {};
  return ir::print(region);
}

}  // namespace phybin
