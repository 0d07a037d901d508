// See builder.h.
#include "worker/translator/ir/builder.h"

#include <algorithm>

namespace phybin::ir {

const OpcodeInfo kOpcodeInfo[static_cast<unsigned>(Opcode::kCount)] = {
#define OP(name, result, operands, properties) {#name, ResultClass::k##result, operands, properties},
    PHYBIN_IR_OPCODES(OP)
#undef OP
};

FlagMask condition_flags(uint8_t cc) {
  // O, C, Z, BE, S, P, L, LE; the odd codes are the negations and read the same flags.
  static constexpr FlagMask kReads[8] = {kV, kC, kZ, kC | kZ, kN, kP, kN | kV, kZ | kN | kV};
  return kReads[(cc >> 1) & 7];
}

bool is_narrow(const Region& region, ValueId value, unsigned width) {
  const Op& op = region.ops[value];
  switch (op.code) {
    case Opcode::kLoad:
    case Opcode::kMov:
    case Opcode::kExtract:
    case Opcode::kGetState:
      return op.width <= width;
    case Opcode::kConst:
      return (static_cast<uint64_t>(op.imm) >> width) == 0;
    case Opcode::kSetCc:
      return true;
    default:
      return false;
  }
}

void index_blocks(Region& region) {
  Block* const blocks = region.blocks.data();
  const std::size_t count = region.blocks.size();
  // Open addressing by guest address: block + 1, 0 = free.
  constexpr std::size_t kFewest = 16;
  std::size_t slots = kFewest;
  while (slots < count * 2) slots *= 2;
  region.block_table.set_size(slots);
  uint16_t* const table = region.block_table.data();
  std::fill_n(table, kFewest, uint16_t{0});
  std::fill(table + kFewest, table + slots, uint16_t{0});
  const auto first_slot = [&](uint64_t address) { return (address * 0x9e3779b97f4a7c15u) >> 40 & (slots - 1); };
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t slot = first_slot(blocks[i].address);
    while (table[slot] != 0) slot = (slot + 1) & (slots - 1);
    table[slot] = static_cast<uint16_t>(i + 1);
  }
  const auto find = [&](uint64_t address) {
    for (std::size_t slot = first_slot(address); table[slot] != 0; slot = (slot + 1) & (slots - 1)) {
      if (blocks[table[slot] - 1].address == address) return static_cast<uint16_t>(table[slot] - 1);
    }
    return kNoBlock;
  };
  for (std::size_t i = 0; i < count; ++i) {
    Block& block = blocks[i];
    const Op& end = region.ops[block.last - 1];
    switch (end.code) {
      case Opcode::kJump:
        block.taken = find(static_cast<uint64_t>(end.imm));
        break;
      case Opcode::kBranch:
      case Opcode::kBranchZero:
      case Opcode::kCall:
        // Of a loop's two blocks the first one is found.
        block.taken = find(static_cast<uint64_t>(end.imm));
        if (block.is_repeat) block.taken = blocks[i - 1].taken = static_cast<uint16_t>(i);
        [[fallthrough]];
      case Opcode::kCallThrough:
      case Opcode::kCallIndirect:
        // Mostly the next one.
        block.next = i + 1 < count && blocks[i + 1].address == block.fallthrough ? static_cast<uint16_t>(i + 1)
                                                                                 : find(block.fallthrough);
        break;
      default:
        break;
    }
  }
}

void Builder::begin_block(uint64_t address) {
  Block& block = region_.blocks.emplace_back();
  block.address = address;
  block.first = static_cast<uint16_t>(size_);
  forget_registers();
  unseen_ = 0;
  ended_ = false;
}

void Builder::end_block(uint64_t fallthrough) {
  region_.blocks.back().fallthrough = fallthrough;
  region_.blocks.back().last = static_cast<uint16_t>(size_);
  ended_ = true;
}

void Builder::make_room() {
  region_.ops.set_size(size_);
  region_.ops.make_room(kMostOps);
  ops_ = region_.ops.data();
  most_ = region_.ops.capacity() - kMostOps;
}

void Builder::forget_registers() {
  gpr_.fill(kNoValue);
  vec_.fill(kNoValue);
}

ValueId Builder::read_gpr(unsigned reg) {
  return gpr_[reg] = op(Opcode::kGetGpr, 64, kNoValue, kNoValue, kNoValue, 0, static_cast<uint8_t>(reg));
}

void Builder::set_gpr(unsigned reg, ValueId value) {
  const uint32_t bit = 1u << reg;
  if ((unseen_ & bit) != 0) {
    Op& overtaken = ops_[unseen_write_[reg]];
    if (overtaken.code == Opcode::kSetGpr) {
      overtaken.code = Opcode::kNothing;
      overtaken.a = kNoValue;
    } else {
      overtaken.writes_home = false;
      overtaken.home = 0xff;
    }
  }
  unseen_ |= bit;
  gpr_[reg] = value;
  const std::size_t next = size_;
  if (Op& last = ops_[next - 1]; value == next - 1 && !last.writes_home && last.code != Opcode::kGetGpr) {
    last.writes_home = true;
    last.home = static_cast<uint8_t>(reg);
    unseen_write_[reg] = value;
    return;
  }
  unseen_write_[reg] = static_cast<uint16_t>(next);
  op(Opcode::kSetGpr, 64, value, kNoValue, kNoValue, 0, static_cast<uint8_t>(reg));
}

ValueId Builder::get_vec(unsigned reg) {
  if (vec_[reg] == kNoValue) {
    vec_[reg] = op(Opcode::kGetVec, 128, kNoValue, kNoValue, kNoValue, 0, static_cast<uint8_t>(reg));
  }
  return vec_[reg];
}

void Builder::set_vec(unsigned reg, ValueId value) {
  region_.writes_vectors = true;
  op(Opcode::kSetVec, 128, value, kNoValue, kNoValue, 0, static_cast<uint8_t>(reg));
  vec_[reg] = value;
}

ValueId Builder::find(Opcode code, ValueId a, ValueId b, int64_t imm, uint8_t aux) const {
  constexpr std::size_t kReach = 48;  // a value that is kept longer costs more in registers than it saves
  std::size_t i = size_;
  const std::size_t stop = i > a + kReach ? i - kReach : std::size_t{a} + 1;
  while (i-- > stop) {
    const Op& o = ops_[i];
    if (o.code == code && o.a == a && o.b == b && o.imm == imm && o.aux == aux) return static_cast<ValueId>(i);
    if ((traits(o.code) & kClobbersTemps) != 0) break;
  }
  return kNoValue;
}

ValueId Builder::op_condition(Opcode code, uint8_t width, uint8_t cc, ValueId a, ValueId b) {
  const ValueId value = op(code, width, a, b, kNoValue, 0, cc);
  last_op().flags_use = condition_flags(cc);
  return value;
}

bool Builder::is_zero_extended(ValueId value) const {
  const Op& o = at(value);
  switch (o.code) {
    case Opcode::kGetGpr:
      return false;
    case Opcode::kConst:
      return (o.imm >> 32) == 0;
    case Opcode::kLoad:
    case Opcode::kMov:
    case Opcode::kGetState:
    case Opcode::kExtract:
      return o.width <= 32;
    case Opcode::kLoadSigned:
      return o.aux2 == 32;
    case Opcode::kSignExtend:
      return o.aux == 32;
    case Opcode::kSetCc:
    case Opcode::kGetRflags:
    case Opcode::kVecMoveMask:
      return true;
    case Opcode::kInsert:
    case Opcode::kCallHelper:
    case Opcode::kHelperResult2:
    case Opcode::kReadCounter:
      return false;
    case Opcode::kAtomicRmw:
    case Opcode::kAtomicCas:
      return o.width <= 32;
    default:
      return o.width == 32;
  }
}

}  // namespace phybin::ir
