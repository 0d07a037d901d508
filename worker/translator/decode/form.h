// What decode() writes for the operands of an instruction, made ready at compile time.
//
// The operands in the table's notation (operand_types.h) and the operand size say which kinds and sizes an
// instruction has, once it is known whether ModRM names a register and which of 66, REX.W and VEX.L are present. So
// there is a Form for each combination of these, a variant: the words of the finished Instruction, in which only the
// register numbers are missing, and what the immediate is. decode() merges the numbers and stores the words.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "worker/translator/decode/instruction.h"
#include "worker/translator/decode/opcode_table.h"
#include "worker/translator/decode/operand_types.h"

namespace phybin::decode {

// The words of an Instruction: header, operands 0 and 1, operands 2 and 3, memory, and the three numbers.
static_assert(std::endian::native == std::endian::little);
static_assert(offsetof(Instruction, length) == 2 && offsetof(Instruction, operand_size) == 3 &&
              offsetof(Instruction, prefixes) == 4 && offsetof(Instruction, condition) == 5 &&
              offsetof(Instruction, operand_count) == 6 && offsetof(Instruction, encoding) == 7);
static_assert(offsetof(Instruction, operands) == 8 && offsetof(Instruction, memory) == 24 &&
              offsetof(Instruction, memory.disp) == 32 && offsetof(Instruction, imm) == 40 &&
              offsetof(Instruction, imm2) == 48 && sizeof(Instruction) == 56);
static_assert(sizeof(Operand) == 4 && offsetof(Operand, kind) == 0 && offsetof(Operand, reg) == 1 &&
              offsetof(Operand, size) == 2);
inline constexpr unsigned kLengthShift = 16, kOperandSizeShift = 24, kPrefixesShift = 32, kConditionShift = 40,
                          kOperandCountShift = 48, kEncodingShift = 56;
inline constexpr unsigned kOperandBits = 32, kRegShift = 8, kSizeShift = 16;

enum VariantBits : unsigned {
  kVariantRegister = 1,
  kVariantNarrow = 2,  // 66
  kVariantLong = 2,    // VEX.L, which 66 excludes
  kVariantWide = 4,    // REX.W or VEX.W
};

struct Form {
  // The first word of the Instruction. Where the mnemonic will stand, it says:
  //   bits 0 to 5    how far register numbers are rotated right
  //   bits 6 to 11   64 - 8 * size of the immediate
  //   bits 12 to 15  size of the immediate, bytes
  uint64_t header = 0;
  // Where register numbers go. A mask for the first two operands, to which ModRM.rm (or nothing) and ModRM.reg 32
  // bits above it are rotated; an opcode that holds a register counts as rm. With VEX, which has up to four
  // registers: the OperandSource of each operand, lowest first.
  uint64_t numbers = 0;
  std::array<uint64_t, 2> operands{};

  constexpr unsigned rotation() const { return header & 63; }
  constexpr unsigned immediate_shift() const { return header >> 6 & 63; }
  constexpr unsigned immediate_size() const { return header >> 12 & 15; }

  bool operator==(const Form&) const = default;
};
static_assert(sizeof(Form) == 32);

// The mask for the number of a register; MMX, x87 and segment registers have no REX extension.
constexpr uint64_t number_mask(OperandKind kind) {
  return kind == OperandKind::kMmx || kind == OperandKind::kX87 || kind == OperandKind::kSegment ? 7 : 15;
}

// Compiles the form of one variant. What is the same for all of them is the entry's.
class FormBuilder {
 public:
  constexpr FormBuilder(SizeMode mode, bool vex, unsigned variant)
      : mode_(mode),
        vex_(vex),
        register_((variant & kVariantRegister) != 0),
        narrow_(!vex && (variant & kVariantNarrow) != 0),
        long_(vex && (variant & kVariantLong) != 0),
        wide_((variant & kVariantWide) != 0) {}

  constexpr Form build(const std::array<uint8_t, 4>& operands) {
    unsigned count = 0;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const OperandType& type = kOperandTypes[operands[i]];
      if (type.source == OperandSource::kCondition) {
        form_.header |= uint64_t{type.size} << kConditionShift;
        add(i, Operand{});
      } else if (operands[i] == 0) {
        add(i, Operand{});
      } else {
        add_operand(i, type);
        ++count;
      }
    }
    form_.header |= uint64_t{reported_size()} << kOperandSizeShift | uint64_t{count} << kOperandCountShift;
    return form_;
  }
  constexpr unsigned flags() const { return flags_; }
  constexpr ImmediateKind immediate() const { return immediate_; }

 private:
  // The effective operand size (Intel SDM vol. 1, 3.6.1).
  constexpr unsigned operand_size() const {
    if (mode_ == SizeMode::kForce64) return 8;
    if (mode_ == SizeMode::kDefault64) return narrow_ && !wide_ ? 2 : 8;
    return wide_ ? 8 : narrow_ ? 2 : 4;
  }
  constexpr unsigned at_most_4() const { return operand_size() < 4 ? operand_size() : 4; }
  constexpr uint8_t reported_size() const {
    switch (mode_) {
      case SizeMode::kNone:
        return 0;
      case SizeMode::kByte:
        return 1;
      case SizeMode::kVariable32:
        return static_cast<uint8_t>(at_most_4());
      case SizeMode::kByW:
        return wide_ ? 8 : 4;
      default:
        return static_cast<uint8_t>(operand_size());
    }
  }
  constexpr uint8_t size_of(unsigned code) const {
    const unsigned vector = long_ ? 32 : 16;
    switch (code) {
      case kSizeV:
        return static_cast<uint8_t>(operand_size());
      case kSizeZ:
        return static_cast<uint8_t>(at_most_4());
      case kSizeY:
        return wide_ ? 8 : 4;
      case kSizeX:
        return static_cast<uint8_t>(vector);
      case kSizeXHalf:
        return static_cast<uint8_t>(vector / 2);
      case kSizeXQuarter:
        return static_cast<uint8_t>(vector / 4);
      case kSizeXEighth:
        return static_cast<uint8_t>(vector / 8);
      default:
        return static_cast<uint8_t>(code);
    }
  }

  constexpr void add(std::size_t i, const Operand& operand) {
    form_.operands[i / 2] |= (uint64_t{static_cast<uint8_t>(operand.kind)} | uint64_t{operand.reg} << kRegShift |
                              uint64_t{operand.size} << kSizeShift)
                             << i % 2 * kOperandBits;
  }

  constexpr void add_operand(std::size_t i, const OperandType& type) {
    using enum OperandSource;
    switch (type.source) {
      case kModrmReg:
        add_register(i, type, i == 0 ? 32 - kRegShift : 64 - kRegShift);
        break;
      case kModrmRm:
        if (needs_memory(type.name) || (!register_ && !needs_register(type.name)))
          add(i, {OperandKind::kMemory, kNoRegister, size_of(type.memory_size)});
        else
          add_register(i, type, i == 0 ? 64 - kRegShift : 32 - kRegShift);
        break;
      case kOpcode:
        add_register(i, type, i == 0 ? 64 - kRegShift : 32 - kRegShift);
        break;
      case kVvvv:
        add_register(i, type, form_.rotation());
        break;
      case kRegisterInImm8:
        add_register(i, type, form_.rotation());
        set_immediate(ImmediateKind::kRegister, 1);
        break;
      case kFixed:
        add(i, {type.kind, type.memory_size, size_of(type.size)});
        break;
      case kMemoryOffset:
        add(i, {OperandKind::kMemory, kNoRegister, size_of(type.memory_size)});
        set_immediate(ImmediateKind::kMemoryOffset, 0);
        break;
      default:
        add(i, {type.kind, kNoRegister, size_of(type.size)});
        add_immediate(type.source);
        break;
    }
  }

  constexpr void add_register(std::size_t i, const OperandType& type, unsigned rotation) {
    add(i, {type.kind, 0, size_of(type.size)});
    if (vex_) {
      form_.numbers |= uint64_t{static_cast<uint8_t>(type.source)} << 8 * i;
      return;
    }
    if (i >= 2 || (form_.rotation() != 0 && form_.rotation() != rotation))
      error_in_opcode_table("a place for a register that decode() does not know");
    form_.header |= rotation;
    form_.numbers |= number_mask(type.kind) << (i * kOperandBits + kRegShift);
    if (type.kind == OperandKind::kGpr && type.size == 1) flags_ |= kEntryByteRegisters;
  }

  constexpr void add_immediate(OperandSource source) {
    using enum OperandSource;
    switch (source) {
      case kImmediateS8:
        return set_immediate(ImmediateKind::kSigned, 1);
      case kImmediateU8:
        return set_immediate(ImmediateKind::kUnsigned, 1);
      case kImmediateU16:
        return set_immediate(ImmediateKind::kUnsigned, 2);
      case kImmediateS32:
        return set_immediate(ImmediateKind::kSigned, at_most_4());
      case kImmediateFull:
        return set_immediate(ImmediateKind::kSigned, operand_size());
      case kImmediateOne:
        return set_immediate(ImmediateKind::kOne, 0);
      case kRelative8:
        return set_immediate(ImmediateKind::kRelative, 1);
      case kRelative32:
        return set_immediate(ImmediateKind::kRelative, 4);
      default:
        error_in_opcode_table("an operand without a source");
    }
  }

  constexpr void set_immediate(ImmediateKind kind, unsigned size) {
    if ((flags_ & kEntryImmediate) != 0) {
      kind = ImmediateKind::kEnter;
      size += form_.immediate_size();
      if (size != 3) error_in_opcode_table("two immediates that decode() does not know");
    }
    flags_ |= kEntryImmediate;
    immediate_ = kind;
    form_.header = (form_.header & ~uint64_t{0xffc0}) | uint64_t{(64 - 8 * size) & 63} << 6 | uint64_t{size} << 12;
  }

  Form form_;
  unsigned flags_ = 0;
  ImmediateKind immediate_ = ImmediateKind::kSigned;
  SizeMode mode_;
  bool vex_, register_, narrow_, long_, wide_;
};

}  // namespace phybin::decode
