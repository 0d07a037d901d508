// See liveness.h.
#include "worker/translator/passes/liveness.h"

#include <array>

namespace phybin::passes {

using namespace ir;  // NOLINT: the pass is about nothing else

namespace {

// Flags whose old value cannot be seen after `op`. Shifts and rotates by a variable count may leave all as they were.
inline FlagMask killed_flags(const Op& op) {
  if ((traits(op.code) & kMayKeepFlags) == 0) return op.flags_def;
  switch (op.code) {
    case Opcode::kString:
      return 0;
    case Opcode::kShld:
    case Opcode::kShrd:
      return op.c != kNoValue ? FlagMask{0} : op.flags_def;
    default:
      return op.b != kNoValue ? FlagMask{0} : op.flags_def;
  }
}

// Flags that leave a block by its terminator, and those of them that its edges need at once. What only cold paths of
// exits need is not among the latter.
struct EdgeFlags {
  FlagMask live, at_once;
};

EdgeFlags edge_flags(const Region& region, const Block& block, FlagMask exit_flags) {
  const Block* const blocks = region.blocks.data();
  EdgeFlags flags{kAllFlags, exit_flags};
  const auto follow = [&](uint16_t to) -> EdgeFlags {
    if (to == kNoBlock) return {kAllFlags, exit_flags};
    return {blocks[to].live_in, blocks[to].live_in};
  };
  switch (region.ops[block.last - 1].code) {
    case Opcode::kJump:
      flags = follow(block.taken);
      break;
    case Opcode::kCall:
      flags.at_once = follow(block.taken).at_once;
      break;
    case Opcode::kBranch:
    case Opcode::kBranchZero: {
      const EdgeFlags taken = follow(block.taken), next = follow(block.next);
      flags = {static_cast<FlagMask>(taken.live | next.live), static_cast<FlagMask>(taken.at_once | next.at_once)};
      break;
    }
    default:
      break;
  }
  if ((flags.at_once & kA) != 0) flags.at_once |= kP;  // AF is made of PF's value, too
  return flags;
}

// Whether some block is followed by one that stands before it. Otherwise one walk from the last block to the first
// knows all that it needs.
bool goes_back(const Region& region) {
  for (std::size_t i = 0; i < region.blocks.size(); ++i) {
    if (region.blocks[i].taken <= i || region.blocks[i].next <= i) return true;
  }
  return false;
}

void live_on_entry(Region& region) {
  for (Block& block : region.blocks) {
    FlagMask use = 0, kill = 0;
    for (unsigned k = block.last; k-- > block.first;) {
      const Op& op = region.ops[k];
      if ((op.flags_def | op.flags_use) == 0) continue;
      const FlagMask killed = killed_flags(op);
      use = static_cast<FlagMask>((use & ~killed) | op.flags_use);
      kill |= killed;
    }
    block.flags_use = use;
    block.flags_kill = kill;
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = region.blocks.size(); i-- > 0;) {
      Block& block = region.blocks[i];
      const auto live =
          static_cast<FlagMask>((edge_flags(region, block, 0).live & ~block.flags_kill) | block.flags_use);
      changed |= live != block.live_in;
      block.live_in = live;
    }
  }
}

// A branch on ZF that nothing but itself needs, right after TEST or CMP with 0 or TEST of one bit, becomes a branch
// on the value.
void fuse_branch(Region& region, const Block& block) {
  Op& branch = region.ops[block.last - 1];
  if (branch.code != Opcode::kBranch || (branch.aux & 0xe) != 4) return;
  for (unsigned k = block.last - 1; k-- > block.first;) {
    const Op& op = region.ops[k];
    if ((op.flags_use & kNzcv) != 0 || (traits(op.code) & (kStateBarrier | kClobbersNzcv)) != 0) return;
    if ((op.flags_def & kNzcv) == 0) continue;
    uint8_t bit = 0;
    if (op.b != kNoValue || (op.flags_def & kNzcv) != kNzcv) return;
    if (op.code == Opcode::kSub && op.imm == 0) {
      if (op.width < 32 && !ir::is_narrow(region, op.a, op.width)) return;
    } else if (op.code == Opcode::kAnd) {
      const uint64_t mask = static_cast<uint64_t>(op.imm) & (~uint64_t{0} >> (64 - op.width));
      if (mask == 0 || (mask & (mask - 1)) != 0) return;
      bit = static_cast<uint8_t>(__builtin_ctzll(mask) + 1);
    } else {
      return;
    }
    const ValueId value = op.a;
    branch.code = Opcode::kBranchZero;
    branch.width = op.width == 64 ? 64 : 32;
    branch.a = value;
    branch.aux = branch.aux & 1;
    branch.aux2 = bit;
    branch.flags_use = 0;
    return;
  }
}

// PF and AF of an operation that names them: when they are needed, and the reads that this means. An operand of AF
// that only edges would want is a hint (AfKind).
void need_raw_flags(Op* ops, Op& op, unsigned live, unsigned at_once) {
  const auto need = [&](FlagMask flag) { return (at_once & flag) != 0 ? RawNeed::kAtOnce : RawNeed::kAtEdges; };
  if ((live & kP) != 0) {
    op.pf = need(kP);
    ++ops[pf_value(op, static_cast<ValueId>(&op - ops))].uses;
  }
  const AfSource af = af_source(op);
  if ((live & kA) == 0 || af.kind == AfKind::kUndefined) return;
  op.af = need(kA);
  if (af.a != kNoValue && (op.af == RawNeed::kAtOnce || af.kind == AfKind::kPlain)) ++ops[af.a].uses;
  if (af.b != kNoValue) ++ops[af.b].uses;
}

// A value may be computed into the home of register r early if, from its definition to the write of r, nobody can
// see the old value of r: no read of r, nothing that can fault, no other write. Walking backward, a write of r makes
// a wish for its value, which anything else that touches r cancels before the definition is met.
struct Wishes {
  uint32_t wanted = 0;  // bit per guest register
  std::array<ValueId, 16> value;

  void add(Op* ops, const Op& write) {
    const uint8_t reg = write.aux;
    const ValueId written = write.a;
    wanted |= 1u << reg;
    value[reg] = written;
    if (!ops[written].writes_home) ops[written].home = reg;
    ++ops[written].uses;
  }
  void cancel(uint8_t reg) { wanted &= ~(1u << reg); }
  bool hold(uint8_t reg, ValueId id) const { return (wanted >> reg & 1) != 0 && value[reg] == id; }
};

// Returns the flags that are live on entry of the block.
FlagMask walk_block(Region& region, const Block& block, FlagMask exit_flags) {
  const EdgeFlags edges = edge_flags(region, block, exit_flags);
  unsigned live = edges.live;
  if ((live & kNzcv) == 0) fuse_branch(region, block);
  unsigned read_inside = 0;  // flags that an operation after the current one reads before they are redefined
  Wishes gprs, vectors;
  Op* const ops = region.ops.data();
  Op* const first = ops + block.first;
  for (Op* next = ops + block.last; next != first;) {
    Op& op = *--next;
    const unsigned properties = traits(op.code);
    if ((properties & kGuestRegister) != 0) {
      if (op.code == Opcode::kSetGpr) {
        gprs.add(ops, op);
      } else if (op.code == Opcode::kSetVec) {
        vectors.add(ops, op);
      } else if (op.writes_home) {
        gprs.cancel(op.home);
        ++op.uses;
      } else if (op.uses == 0) {
        op.dead = true;
      } else if (op.code == Opcode::kGetGpr) {
        gprs.cancel(op.aux);
      } else if (op.code == Opcode::kGetVec) {
        vectors.cancel(op.aux);
      } else {
        op.home = 0xff;
      }
      continue;
    }
    if (op.writes_home) {
      gprs.cancel(op.home);
      ++op.uses;
    }
    op.flags_live = static_cast<FlagMask>(live);
    const unsigned defined = op.flags_def;
    ValueId a = op.a;
    bool dead = false;
    if ((properties & (kRawFlags | kOnlyFlags)) != 0) {
      dead = (live & defined) == 0;
      if ((properties & kRawFlags) != 0 && !dead) {
        op.sunk = ((read_inside | edges.at_once) & defined) == 0;
        if (is_hint(op)) a = kNoValue;
      }
    } else if (op.uses == 0 && (properties & (kSideEffect | kCanFault)) == 0) {
      // AF is undefined after operations that do not name it. Where it is named and read, so is PF: what defines PF
      // anew defines AF anew, if only as undefined.
      dead = (live & defined & ~unsigned{kA}) == 0;
    }
    if (dead) {
      op.dead = true;
      if ((defined & kA) != 0) live &= ~unsigned{killed_flags(op)};
      continue;
    }
    if ((defined | op.flags_use) != 0) {
      if (names_raw_flags(op)) need_raw_flags(ops, op, live, read_inside | edges.at_once);
      const unsigned killed = killed_flags(op);
      // What may stay as it was is read, as far as it is live.
      const unsigned use = op.flags_use | (defined & ~killed & live);
      live = (live & ~killed) | use;
      read_inside = (read_inside & ~killed) | use;
    }
    if (a != kNoValue) ++ops[a].uses;
    if (op.b != kNoValue) ++ops[op.b].uses;
    if (op.c != kNoValue) ++ops[op.c].uses;
    if (op.home != 0xff && !op.writes_home) {
      const bool is_vector = (properties & kDefinesInt) == 0;
      const auto id = static_cast<ValueId>(next - ops);
      if (is_vector ? !vectors.hold(op.home, id) : !gprs.hold(op.home, id)) {
        op.home = 0xff;
      } else if (is_vector && (properties & kTied) != 0) {
        // What becomes a tied result is best there from the start.
        vectors.value[op.home] = op.a;
        ops[op.a].home = op.home;
      }
    }
    if ((properties & (kCanFault | kStateBarrier | kMovesRsp)) != 0) {
      if ((properties & (kCanFault | kStateBarrier)) != 0) gprs.wanted = vectors.wanted = 0;
      if ((properties & kMovesRsp) != 0) gprs.cancel(4);
    }
  }
  return static_cast<FlagMask>(live);
}

}  // namespace

void analyse_liveness(Region& region, FlagMask exit_flags) {
  if (goes_back(region)) {
    live_on_entry(region);
    for (const Block& block : region.blocks) walk_block(region, block, exit_flags);
    return;
  }
  for (std::size_t i = region.blocks.size(); i-- > 0;) {
    Block& block = region.blocks[i];
    block.live_in = walk_block(region, block, exit_flags);
  }
}

}  // namespace phybin::passes
