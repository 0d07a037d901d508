// From guest bytes to a region: which blocks belong to it, then lift, passes, emission. See translate.h.
//
// Discovery decodes along fall-through paths first and remembers taken targets, until `prefetch_depth` branches have
// been followed along a path or the instruction budget is spent. Only then is lifted: by that time all jump targets
// inside the region are known, so blocks need not be split afterwards.
#include "worker/translator/translate.h"

#include <algorithm>
#include <array>
#include <bit>

#include "worker/translator/decode/decoder.h"
#include "worker/translator/emit/emitter.h"
#include "worker/translator/ir/builder.h"
#include "worker/translator/ir/printer.h"
#include "worker/translator/lift/alignment.h"
#include "worker/translator/lift/lift_functions.h"
#include "worker/translator/passes/liveness.h"
#include "worker/translator/passes/nan_windows.h"
#include "worker/translator/passes/vector_writes.h"

namespace phybin {

namespace {

using decode::DecodeStatus;
using decode::Instruction;
using decode::Mnemonic;

using lift::Flow;

enum Marks : uint8_t {
  kLeader = 1,   // starts a block
  kEntry = 2,    // is reached from outside: region start, return site
  kThrough = 4,  // CALL of a stub that jumps through a pointer (PLT)
};

struct Decoded {
  Instruction in;
  lift::LiftFunction lift;
  uint64_t address;
  uint64_t pointer, jump;  // kThrough: where the pointer is, and where the stub's jump is
  uint8_t marks;
};

class Discovery {
 public:
  // False when there is no code at the start.
  bool run(const TranslateInput& input) {
    input_ = input;
    if (input_.max_instructions > kMostInstructions) input_.max_instructions = kMostInstructions;
    instructions_.clear();
    instructions_.make_room(input_.max_instructions + std::size_t{1});
    pending_.clear();
    ranges_.clear();
    slot_mask_ = std::bit_ceil(2 * input_.max_instructions) - 1;
    std::fill_n(slots_.begin(), slot_mask_ + 1, uint16_t{0});
    push({input_.pc, 0, true, false});
    while (!pending_.empty() && instructions_.size() < input_.max_instructions) {
      const Pending p = pending_.back();
      pending_.set_size(pending_.size() - 1);
      walk(p);
    }
    // What ends the last block.
    instructions_.data()[instructions_.size()].marks = kLeader;
    return !instructions_.empty();
  }

  // In each block without a gap; one more leader stands behind the last one.
  const FlatArray<Decoded>& instructions() const { return instructions_; }
  FlatArray<GuestRange>& ranges() { return ranges_; }

 private:
  struct Pending {
    uint64_t pc;
    unsigned depth;
    bool entry;
    bool backward;
  };
  static constexpr unsigned kMostInstructions = 512;
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

  // Finds the slot for an instruction at `pc`. False if there is one: it becomes a leader then, and `marks` are its
  // marks besides.
  bool find_free_slot(uint64_t pc, uint8_t marks, std::size_t& slot) {
    for (uint64_t i = pc;; ++i) {
      slot = i & slot_mask_;
      if (slots_[slot] == 0) return true;
      Decoded& known = instructions_[slots_[slot] - std::size_t{1}];
      if (known.address != pc) continue;
      known.marks |= kLeader | marks;
      return false;
    }
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
    call.marks |= kThrough;
    ranges_.push_back({target, end});
  }

  // Decodes from `pc` on, whose slot is free, until control may go elsewhere: Flow::kEnd if it does not go on from
  // there, or goes on in what has been decoded. `pc` is behind the last instruction then.
  Flow decode_block(uint64_t& pc, std::size_t slot, uint8_t marks) {
    const CodeWindow window = input_.window;
    const uint64_t end = window.start + window.size;
    std::size_t count = instructions_.size();
    Decoded* d = instructions_.data() + count;
    uint64_t at = pc;
    Flow flow = Flow::kEnd;
    for (;;) {
      d->address = at;
      d->marks = marks;
      const DecodeStatus status = decode::decode_inline(window.bytes + (at - window.start), end - at, at, d->in);
      if (status != DecodeStatus::kOk) [[unlikely]] {
        flow = Flow::kEnd;  // at the end of the window, too
        if (status == DecodeStatus::kOutOfBytes && at != input_.pc) break;
        d->in = Instruction{};
        d->in.length = 1;
      }
      slots_[slot] = static_cast<uint16_t>(++count);
      at += d->in.length;
      const lift::Lifting lifting = lift::lifting_of(d->in.mnemonic);
      d->lift = lifting.function;
      flow = lifting.flow;
      if (flow != Flow::kNext) break;
      ++d;
      marks = 0;
      if (count == input_.max_instructions || !find_free_slot(at, 0, slot)) {
        flow = Flow::kEnd;
        break;
      }
    }
    instructions_.set_size(count);
    pc = at;
    return flow;
  }

  void walk(const Pending& p) {
    uint64_t pc = p.pc;
    unsigned depth = p.depth;
    bool entry = p.entry, backward = p.backward;
    const auto may_follow = [&](unsigned cost) { return depth + cost <= input_.prefetch_depth; };
    while (instructions_.size() < input_.max_instructions) {
      const uint8_t marks = entry ? kLeader | kEntry : kLeader;
      std::size_t slot;
      if (!find_free_slot(pc, marks, slot)) break;
      if (depth >= kKnownDepth && !backward && !entry && is_known(pc)) break;
      backward = false;
      const Flow flow = decode_block(pc, slot, marks);
      if (flow == Flow::kEnd || input_.single_block) break;
      Decoded& last = instructions_.back();
      const auto target = static_cast<uint64_t>(last.in.imm);
      if (flow == Flow::kJump) {
        if (may_follow(kStepCost)) push({target, depth + kStepCost, false, target < pc});
        break;
      }
      if (last.in.mnemonic == Mnemonic::kCall) look_through(last);
      if (flow == Flow::kBranch) {
        const unsigned cost = target < pc ? kStepCost : kForwardTakenCost;
        if (may_follow(cost)) push({target, depth + cost, false, target < pc});
      }
      if (!may_follow(kStepCost)) break;
      depth += kStepCost;
      entry = flow != Flow::kBranch;
    }
    if (pc != p.pc) ranges_.push_back({p.pc, pc});
  }

  TranslateInput input_;
  FlatArray<Decoded> instructions_;
  FlatArray<Pending> pending_;
  FlatArray<GuestRange> ranges_;
  // By address, open addressing: index of the instruction + 1, or 0.
  std::array<uint16_t, std::size_t{2} * kMostInstructions> slots_;
  std::size_t slot_mask_ = 0;
};

// Lifts the instructions from `first` on to the end of their block, and returns the index of what stands behind it.
std::size_t lift_block(const TranslateInput& input, const Decoded* decoded, std::size_t first, ir::Region& region,
                       ir::Builder& builder, lift::AlignmentFacts& alignment) {
  std::size_t i = first;
  const Decoded* d = decoded + i;
  ir::GuestInstruction* instruction = region.instructions.data() + i;
  do {
    *instruction++ = {d->address, d->in.length};
    builder.begin_instruction(static_cast<uint16_t>(i++));
    lift::Lifter lifter{builder, alignment, d->in, d->address, input.options, input.host};
    if ((d->marks & kThrough) != 0) {
      lift::lift_call_through(lifter, d->pointer, d->jump);
    } else {
      d->lift(lifter);
    }
    ++d;
  } while (!builder.block_ended() && (d->marks & kLeader) == 0);
  const uint64_t next = d[-1].address + d[-1].in.length;
  if (!builder.block_ended())
    builder.op(ir::Opcode::kJump, 0, ir::kNoValue, ir::kNoValue, ir::kNoValue, static_cast<int64_t>(next));
  builder.end_block(next);
  return i;
}

// The block of the instructions from `first` to before `end` once more, if it is a loop that has proved something for
// its next round (lift/alignment.h). Returns of how many instructions.
[[gnu::noinline]] std::size_t repeat_if_that_pays(const TranslateInput& input, const Decoded* decoded,
                                                  std::size_t first, std::size_t end, std::size_t most,
                                                  ir::Region& region, ir::Builder& builder,
                                                  lift::AlignmentFacts& alignment) {
  const Decoded& branch = decoded[end - 1];
  const uint64_t start = decoded[first].address;
  if (branch.in.mnemonic != Mnemonic::kJcc || static_cast<uint64_t>(branch.in.imm) != start) return 0;
  const std::size_t length = end - first;
  const lift::AlignmentFacts::Carried carried = alignment.carried(builder);
  if (carried.count == 0 || length > most) return 0;
  builder.begin_block(start);
  region.blocks.back().is_repeat = true;
  builder.begin_instruction(static_cast<uint16_t>(first));
  alignment.begin(builder, carried);
  lift_block(input, decoded, first, region, builder, alignment);
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
  region.instructions.set_size(count);
  for (std::size_t i = 0; i < count;) {
    const std::size_t first = i;
    builder.begin_block(decoded[first].address);
    region.blocks.back().is_entry = (decoded[first].marks & kEntry) != 0;
    i = lift_block(input, decoded, first, region, builder, alignment);
    if (alignment.is_empty()) continue;
    may_repeat -= repeat_if_that_pays(input, decoded, first, i, may_repeat, region, builder, alignment);
    alignment.forget();
  }
}

bool build(const TranslateInput& input, Discovery& discovery, ir::Region& region, passes::NanWindowsMemory& windows) {
  if (!discovery.run(input)) return false;
  lift_region(input, discovery.instructions(), region);
  ir::index_blocks(region);
  passes::gather_nan_checks(region, windows);
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
  passes::NanWindowsMemory nan_windows;
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
    if (!build(attempt, m.discovery, m.region, m.nan_windows)) return TranslateStatus::kNoCode;
    out.guest_ranges.swap(m.discovery.ranges());
    out.instructions.swap(m.region.instructions);
    if (emit::Emitter(m.emitter, m.region, attempt, out).run()) return TranslateStatus::kOk;
    attempt.max_instructions /= 2;
  }
}

TranslateStatus translate(const TranslateInput& input, RegionCode& out) { return Translator().translate(input, out); }

std::string translate_to_ir_text(const TranslateInput& input) {
  Discovery discovery;
  ir::Region region;
  passes::NanWindowsMemory windows;
  if (!build(input, discovery, region, windows)) return {};
  return ir::print(region);
}

}  // namespace phybin
