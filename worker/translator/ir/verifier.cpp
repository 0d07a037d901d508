// See verifier.h.
#include "worker/translator/ir/verifier.h"

#include <array>
#include <cstdio>

#include "worker/translator/guest_state.h"
#include "worker/translator/ir/builder.h"

namespace phybin::ir {

namespace {

constexpr unsigned kOperandA = 1, kOperandB = 2, kOperandC = 4;

// Operands that may be absent.
unsigned optional_operands(Opcode code) {
  switch (code) {
    case Opcode::kLea:
    case Opcode::kLoad:
    case Opcode::kLoadSigned:
    case Opcode::kLoadVec:
    case Opcode::kStore:
    case Opcode::kStoreVec:
    case Opcode::kX87Store:
    case Opcode::kPrefetch:
    case Opcode::kX87StoreExtended:
    case Opcode::kSetAf:
      return kOperandA | kOperandB;
    case Opcode::kAdd:
    case Opcode::kSub:
    case Opcode::kAdc:
    case Opcode::kSbb:
    case Opcode::kAnd:
    case Opcode::kOr:
    case Opcode::kXor:
    case Opcode::kMul:
    case Opcode::kShl:
    case Opcode::kShr:
    case Opcode::kSar:
    case Opcode::kRol:
    case Opcode::kRor:
    case Opcode::kRcl:
    case Opcode::kRcr:
    case Opcode::kShiftLeft:
    case Opcode::kShiftRight:
    case Opcode::kShiftRightSigned:
    case Opcode::kRotateRight:
    case Opcode::kBitTest:
    case Opcode::kMulOverflow:
    case Opcode::kAtomicRmw:
      return kOperandB;
    case Opcode::kShld:
    case Opcode::kShrd:
    case Opcode::kFFixNan:
      return kOperandC;
    case Opcode::kFKeep:
      return kOperandB | kOperandC;
    case Opcode::kCallHelper:
    case Opcode::kCallState:
      return kOperandA | kOperandB | kOperandC;
    default:
      return 0;
  }
}

bool has_condition(Opcode code) {
  return code == Opcode::kSetCc || code == Opcode::kSelect || code == Opcode::kBranch;
}

bool names_register(Opcode code) {
  return code == Opcode::kGetGpr || code == Opcode::kSetGpr || code == Opcode::kGetVec || code == Opcode::kSetVec;
}

bool names_state(Opcode code) {
  return code == Opcode::kGetState || code == Opcode::kSetState || code == Opcode::kGetStateVec ||
         code == Opcode::kSetStateVec;
}

class Verifier {
 public:
  explicit Verifier(const Region& region) : region_(region) {}

  std::string run() {
    check_blocks();
    for (std::size_t i = 0; i < region_.blocks.size() && error_.empty(); ++i) {
      const Block& block = region_.blocks[i];
      for (unsigned k = block.first; k < block.last && error_.empty(); ++k) check_op(block, k);
    }
    return error_;
  }

  std::string run_liveness() {
    if (!run().empty()) return error_;
    for (const Block& block : region_.blocks) {
      check_values_live(block);
      check_flags_live(block);
    }
    return error_;
  }

 private:
  // Keeps the first error.
  void fail(const std::string& where, const char* what) {
    if (error_.empty()) error_ = where + ": " + what;
  }
  void fail_block(std::size_t index, const char* what) { fail("block " + std::to_string(index), what); }
  void fail_op(unsigned index, const char* what) {
    fail("%" + std::to_string(index) + " " + info(region_.ops[index].code).name, what);
  }

  void check_blocks() {
    if (region_.ops.empty() || region_.ops[0].code != Opcode::kInvalid) return fail("region", "ops[0] is reserved");
    if (region_.blocks.empty()) return fail("region", "no blocks");
    if (region_.blocks[0].address != region_.entry) return fail_block(0, "does not start at the region's entry");
    if (!region_.blocks[0].is_entry) return fail_block(0, "is not an entry");
    unsigned next = 1;
    for (std::size_t i = 0; i < region_.blocks.size(); ++i) {
      const Block& block = region_.blocks[i];
      if (block.first != next) return fail_block(i, "does not follow the block before it");
      if (block.last <= block.first || block.last > region_.ops.size()) return fail_block(i, "is empty");
      if ((properties(block.last - 1) & kTerminator) == 0) return fail_block(i, "does not end in a terminator");
      if (block.is_repeat && (i == 0 || block.is_entry || region_.blocks[i - 1].address != block.address)) {
        return fail_block(i, "does not repeat the block before it");
      }
      for (std::size_t k = 0; k + (block.is_repeat ? 1 : 0) < i; ++k) {
        if (region_.blocks[k].address == block.address) return fail_block(i, "has the address of another one");
      }
      next = block.last;
    }
    if (next != region_.ops.size()) return fail("region", "operations outside of blocks");
  }

  void check_op(const Block& block, unsigned index) {
    const Op& op = region_.ops[index];
    const OpcodeInfo& op_info = info(op.code);
    if (op.code == Opcode::kInvalid) return fail_op(index, "is not an operation");
    if ((op_info.properties & kTerminator) != 0 && index + 1 != block.last) {
      return fail_op(index, "a terminator inside a block");
    }
    check_operands(block, index);
    check_width(index);
    check_flags(index);
    if (has_condition(op.code) && op.aux >= 16) return fail_op(index, "no such condition");
    if (names_register(op.code) && op.aux >= 16) return fail_op(index, "no such register");
    if (op.writes_home && (op.home >= 16 || op_info.result != ResultClass::kInt || names_register(op.code))) {
      return fail_op(index, "writes no register that there is");
    }
    if (names_state(op.code) && (op.imm < 0 || op.imm + op.width / 8 > static_cast<int64_t>(sizeof(GuestState)))) {
      return fail_op(index, "outside of the guest's state");
    }
    if (op.code == Opcode::kHelperResult2 &&
        (index == block.first || region_.ops[index - 1].code != Opcode::kCallHelper)) {
      return fail_op(index, "does not follow a call of a helper");
    }
    if (!region_.instructions.empty() && op.instruction >= region_.instructions.size()) {
      return fail_op(index, "no such guest instruction");
    }
    if (index > (block.is_repeat ? block.first : 1) && op.instruction < region_.ops[index - 1].instruction) {
      return fail_op(index, "guest instructions out of order");
    }
  }

  void check_operands(const Block& block, unsigned index) {
    const Op& op = region_.ops[index];
    const OpcodeInfo& op_info = info(op.code);
    const unsigned optional = optional_operands(op.code);
    const std::array<ValueId, 3> operands = {op.a, op.b, op.c};
    for (unsigned k = 0; k < operands.size(); ++k) {
      const ValueId value = operands[k];
      const char wanted = op_info.operands[k];
      if (value == kNoValue) {
        if (wanted != '-' && (optional & (1u << k)) == 0) return fail_op(index, "an operand is absent");
        continue;
      }
      if (wanted == '-') return fail_op(index, "an operand too many");
      if (value >= region_.ops.size()) return fail_op(index, "an operand that does not exist");
      if (value < block.first || value >= block.last) return fail_op(index, "an operand from another block");
      if (value >= index) return fail_op(index, "an operand before its definition");
      const ResultClass found = info(region_.ops[value].code).result;
      if (found != (wanted == 'v' ? ResultClass::kVec : ResultClass::kInt)) {
        return fail_op(index,
                       found == ResultClass::kNone ? "an operand without a value" : "an operand of the wrong class");
      }
    }
  }

  void check_width(unsigned index) {
    const Op& op = region_.ops[index];
    if (op.code == Opcode::kExtract) {  // the only one that is not of a width that operands have
      if (op.width == 0 || op.aux + op.width > 64) fail_op(index, "no such bits");
      return;
    }
    switch (op.width) {
      case 0:
        if (info(op.code).result != ResultClass::kNone) fail_op(index, "a value without a width");
        return;
      case 8:
      case 16:
      case 32:
      case 64:
      case 128:
        return;
      default:
        fail_op(index, "no such width");
    }
  }

  void check_flags(unsigned index) {
    const Op& op = region_.ops[index];
    const bool complements = op.code == Opcode::kSetCarry && op.imm == 2;
    const bool reads = complements || (properties(index) & kReadsNzcv) != 0;
    if (reads != (op.flags_use != 0)) {
      return fail_op(index, reads ? "reads flags and does not say which" : "says that it reads flags");
    }
    if (has_condition(op.code) && op.flags_use != condition_flags(op.aux)) {
      return fail_op(index, "does not read the flags of its condition");
    }
    if (((op.flags_def | op.flags_use | op.flags_live) & ~kAllFlags) != 0) return fail_op(index, "no such flag");
    if (op.flags_def == 0 && (op.pf != RawNeed::kNone || op.af != RawNeed::kNone))
      return fail_op(index, "names no raw flags and is said to");
    if (op.code == Opcode::kSetPf && op.flags_def != kP) return fail_op(index, "does not define PF");
    if (op.code == Opcode::kSetAf && op.flags_def != kA) return fail_op(index, "does not define AF");
  }

  void check_values_live(const Block& block) {
    for (unsigned k = block.first; k < block.last; ++k) {
      const Op& op = region_.ops[k];
      if (op.dead) {
        if ((properties(k) & kTerminator) != 0) fail_op(k, "a dead terminator");
        continue;
      }
      for (const ValueId value : {op.a, op.b, op.c}) {
        if (value != kNoValue && region_.ops[value].dead && op.code != Opcode::kSetAf) {
          fail_op(k, "reads a value that is dead");
        }
      }
    }
  }

  // Backward: flags that a living operation reads must be live at the living operations in front of it that define
  // them; those without any must be live on entry.
  void check_flags_live(const Block& block) {
    FlagMask read = 0;
    for (unsigned k = block.last; k-- > block.first;) {
      const Op& op = region_.ops[k];
      if ((read & op.flags_def & ~op.flags_live) != 0)
        fail_op(k, "defines flags that are read and not said to be live");
      if (op.dead) {
        const bool names_af =
            op.code == Opcode::kSetAf || (names_raw_flags(op) && af_source(op).kind != AfKind::kUndefined);
        const FlagMask undefined = names_af ? 0 : kA;
        if ((read & op.flags_def & ~undefined) != 0) fail_op(k, "is dead and defines flags that are read");
        continue;
      }
      read = static_cast<FlagMask>((read & ~op.flags_def) | op.flags_use);
    }
    if ((read & ~block.live_in) != 0)
      fail("block at op " + std::to_string(block.first), "reads flags not live on entry");
  }

  uint16_t properties(unsigned index) const { return info(region_.ops[index].code).properties; }

  const Region& region_;
  std::string error_;
};

}  // namespace

std::string verify(const Region& region) { return Verifier(region).run(); }

std::string verify_liveness(const Region& region) { return Verifier(region).run_liveness(); }

}  // namespace phybin::ir
