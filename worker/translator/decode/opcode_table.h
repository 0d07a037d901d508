// The compiled opcode table: what decode() walks.
//
// One array of 8-byte entries. It begins with the seven opcode maps of 256 roots each; a root is either the
// instruction itself or selects, by one property of the encoding, among a few entries further on. There are no
// pointers in it, so it needs no relocation and its pages stay shared.
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

// Bytes of the one-byte and 0F maps that are no opcodes; kept in Entry::value.
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
  kEntryNoSegment = 1 << 11,           // memory is not accessed, a segment prefix means nothing
  kEntryPrivilegedRegister = 1 << 10,  // a CR or DR operand: not every number exists
};
inline constexpr unsigned kEntrySizeModeShift = 12;

struct Entry {
  uint16_t value = 0;  // a Mnemonic, a Special, or the index of the first entry to select from
  uint16_t flags = 0;
  std::array<uint8_t, 4> operands{};  // indices into kOperandTypes; operands[0] is the Selector of a select entry
};
static_assert(sizeof(Entry) == 8);

inline constexpr std::size_t kRootCount = 256 * static_cast<std::size_t>(OpcodeMap::kCount);
inline constexpr std::size_t kEntryCapacity = 5120;

extern const std::array<Entry, kEntryCapacity> kOpcodeTable;

}  // namespace phybin::decode
