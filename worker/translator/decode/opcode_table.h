// The compiled opcode table: what decode() walks.
//
// One array of 8-byte entries. It begins with the seven opcode maps of 256 roots each; a root is either the
// instruction itself or selects, by one property of the encoding, among a few entries further on. An instruction's
// entry names the forms of its operands (form.h). There are no pointers in it, so it needs no relocation and its
// pages stay shared.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "worker/translator/decode/mnemonic.h"

namespace phybin::decode {

enum class OpcodeMap : uint8_t { kOneByte, k0F, k0F38, k0F3A, kVex0F, kVex0F38, kVex0F3A, kCount };

// What can tell apart instructions that share an opcode, in the order in which it is asked.
enum class Selector : uint8_t {
  kPrefix,     // 0 none, 1 66, 2 F3, 3 F2
  kModrmReg,   // 0..7
  kModrmMode,  // 0 memory, 1 register
  kModrmRm,    // 0..7
  kW,          // REX.W or VEX.W
  kL,          // VEX.L
  kRexB,
  kCount
};

inline constexpr std::array<uint8_t, static_cast<std::size_t>(Selector::kCount)> kSelectorValues = {4, 8, 2, 8,
                                                                                                    2, 2, 2};

// Where decode() finds a selector: a field of the word that holds ModRM in bits 0 to 7, REX (or what stands for it in
// VEX) in bits 8 to 15, the value of kPrefix in bits 16 and 17, and VEX.L in bit 18.
inline constexpr unsigned kKeyRexShift = 8, kKeyPrefixShift = 16, kKeyLShift = 18;
struct SelectorField {
  uint8_t shift;
  uint8_t mask;
};
inline constexpr std::array<SelectorField, static_cast<std::size_t>(Selector::kCount)> kSelectorFields = {
    {{kKeyPrefixShift, 3}, {3, 7}, {6, 3}, {0, 7}, {kKeyRexShift + 3, 1}, {kKeyLShift, 1}, {kKeyRexShift, 1}}};
// The selector's value when its field holds `field`: all of ModRM.mod but 11b is memory.
constexpr unsigned selector_value(std::size_t selector, unsigned field) {
  return selector == static_cast<std::size_t>(Selector::kModrmMode) ? field == 3 : field;
}

// Bytes of the one-byte and 0F maps that are no opcodes; kept in Entry::value().
enum class Special : uint8_t {
  kRex,
  kOperandSize,
  kAddressSize,
  kSegmentIgnored,
  kSegmentFs,
  kSegmentGs,
  kLock,
  kRep,
  kRepne,
  kEscape0F,
  kEscape0F38,
  kEscape0F3A,
  kVex2,
  kVex3,
  kEvex,
};

// How the effective operand size comes about (Intel SDM vol. 1, 3.6.1).
enum class SizeMode : uint8_t {
  kNone,        // the instruction has none
  kByte,        // 1
  kVariable,    // 2, 4, 8 by 66 and REX.W
  kVariable32,  // the same, at most 4
  kDefault64,   // 8, or 2 with 66
  kForce64,     // 8
  kByW,         // 4, or 8 with REX.W/VEX.W
  kCount
};

enum EntryFlags : uint16_t {
  kEntrySpecial = 1 << 0,
  kEntrySelect = 1 << 1,
  kEntryModrm = 1 << 2,
  kEntryLock = 1 << 3,                 // LOCK is allowed with a memory destination
  kEntryOwns66 = 1 << 4,               // the prefix is part of the opcode
  kEntryOwnsRep = 1 << 5,              // F2 or F3, likewise
  kEntryCondition = 1 << 6,            // condition code in the opcode's low four bits
  kEntryVvvv = 1 << 7,                 // VEX.vvvv names an operand; otherwise it must be 1111b
  kEntryVsib = 1 << 8,                 // the memory operand has a vector index
  kEntryModeIgnored = 1 << 9,          // ModRM.mod is taken as 11b (MOV to and from CR, DR)
  kEntryPrivilegedRegister = 1 << 10,  // a CR or DR operand: not every number exists
  kEntryNoSegment = 1 << 11,           // memory is not accessed, a segment prefix means nothing
  kEntryRare = 1 << 12,                // needs checks or steps that decode() makes for these alone
  kEntryImmediate = 1 << 13,
  kEntryByteRegisters = 1 << 14,  // some operand is one; numbers 4 to 7 without REX are AH to BH
};

enum class ImmediateKind : uint8_t {
  kSigned,
  kRelative,  // signed, from the end of the instruction
  kUnsigned,
  kOne,           // the constant, no byte of the encoding
  kMemoryOffset,  // not an immediate but Memory::disp: 8 bytes, or 4 with an address-size prefix
  kRegister,      // /is4
  kEnter,         // 2 bytes and 1 byte, unsigned
};

// In bits 0 to 15 a Mnemonic, a Special, or the index of the first entry to select from; in bits 16 to 31 EntryFlags.
// The upper half of an instruction: its first form, the variant bits that make a difference to the form (from bit
// 48), ImmediateKind (from 52), condition (from 56); of a select: shift and mask of the field.
class Entry {
 public:
  constexpr Entry() = default;
  static constexpr Entry instruction(Mnemonic mnemonic, unsigned flags, std::size_t form, unsigned variants,
                                     ImmediateKind immediate, unsigned condition) {
    return Entry(static_cast<uint64_t>(mnemonic) | uint64_t{flags} << 16 | uint64_t{form} << 32 |
                 uint64_t{variants} << 48 | uint64_t{static_cast<uint8_t>(immediate)} << 52 |
                 uint64_t{condition} << 56);
  }
  static constexpr Entry invalid(unsigned flags) {
    return instruction(Mnemonic::kInvalid, flags | kEntryRare, 0, 0, ImmediateKind::kSigned, 0);
  }
  static constexpr Entry special(Special special) {
    return Entry(static_cast<uint64_t>(special) | uint64_t{kEntrySpecial | kEntryRare} << 16);
  }
  // Goes on at value() + the selector's field.
  static constexpr Entry select(std::size_t first, SelectorField field) {
    return Entry(uint64_t{first} | uint64_t{kEntrySelect} << 16 | uint64_t{field.shift} << 32 |
                 uint64_t{field.mask} << 40);
  }

  constexpr unsigned value() const { return bits_ & 0xffff; }
  constexpr bool has(EntryFlags flag) const { return (bits_ & uint64_t{flag} << 16) != 0; }

  constexpr unsigned form(unsigned variant) const {
    return (bits_ >> 32 & 0xffff) + (variant & static_cast<unsigned>(bits_ >> 48) & 7);
  }
  constexpr ImmediateKind immediate() const { return static_cast<ImmediateKind>(bits_ >> 52 & 7); }
  constexpr unsigned condition() const { return static_cast<unsigned>(bits_ >> 56); }

  constexpr unsigned field_of(unsigned key) const { return key >> (bits_ >> 32 & 0xff) & (bits_ >> 40 & 0xff); }
  constexpr unsigned field_count() const { return (bits_ >> 40 & 0xff) + 1; }

 private:
  explicit constexpr Entry(uint64_t bits) : bits_(bits) {}
  uint64_t bits_ = uint64_t{kEntryRare} << 16;  // invalid
};
static_assert(sizeof(Entry) == 8);

inline constexpr std::size_t kRootCount = 256 * static_cast<std::size_t>(OpcodeMap::kCount);
inline constexpr std::size_t kEntryCapacity = 5632;
inline constexpr std::size_t kFormCapacity = 896;

struct Form;

// Hidden, so that they are addressed directly.
[[gnu::visibility("hidden")]] extern const std::array<Entry, kEntryCapacity> kOpcodeTable;
[[gnu::visibility("hidden")]] extern const std::array<Form, kFormCapacity> kForms;

// Called only when a table is wrong: not being constexpr, it stops the compilation there.
void error_in_opcode_table(const char* message);

}  // namespace phybin::decode
