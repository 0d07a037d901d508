// The operand notations that the opcode tables use, and what each means to the decoder.
//
// The names follow the Intel SDM's appendix A.2: a letter for where the operand is encoded, then its size. A rule
// holds an operand as one byte, the index into kOperandTypes.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "worker/translator/decode/instruction.h"

namespace phybin::decode {

enum class OperandSource : uint8_t {
  kModrmReg,
  kModrmRm,  // register or memory
  kVvvv,
  kOpcode,         // low three bits of the opcode
  kFixed,          // register number in OperandType::memory_size
  kImmediateS8,    // sign-extended byte
  kImmediateU8,    // zero-extended byte
  kImmediateU16,   // zero-extended
  kImmediateS32,   // sign-extended, 2 bytes with a 16-bit operand size, else 4
  kImmediateFull,  // 2, 4 or 8 bytes, sign-extended
  kImmediateOne,   // the constant 1
  kRelative8,
  kRelative32,
  kMemoryOffset,    // absolute address of 8 bytes, or 4 with an address-size prefix
  kRegisterInImm8,  // bits 7:4 of a byte (/is4)
  kCondition,       // no operand: sets Instruction::condition to OperandType::size
};

// Sizes that depend on prefixes; smaller values are plain byte counts.
inline constexpr uint8_t kVariableSize = 0x80;
enum SizeCode : uint8_t {
  kSizeV = kVariableSize | 1,  // effective operand size
  kSizeZ = kVariableSize | 2,  // the same, at most 4
  kSizeY = kVariableSize | 3,  // 8 with REX.W/VEX.W, else 4
  kSizeX = kVariableSize | 4,  // 32 with VEX.L, else 16
  kSizeXHalf = kVariableSize | 5,
  kSizeXQuarter = kVariableSize | 6,
  kSizeXEighth = kVariableSize | 7,
};

struct OperandType {
  std::string_view name;
  OperandSource source;
  OperandKind kind;
  uint8_t size;         // of a register or immediate
  uint8_t memory_size;  // when ModRM names memory instead
};

// Which forms of ModRM an operand letter allows.
constexpr bool needs_memory(std::string_view name) { return name[0] == 'M'; }
constexpr bool needs_register(std::string_view name) {
  return name[0] == 'R' || name[0] == 'U' || name[0] == 'N' || name == "STi";
}

namespace operand_types {

using enum OperandSource;
using enum OperandKind;

constexpr OperandType general(std::string_view name, uint8_t size, uint8_t memory_size) {
  return {name, kModrmRm, kGpr, size, memory_size};
}
constexpr OperandType general(std::string_view name, uint8_t size) { return general(name, size, size); }
constexpr OperandType memory(std::string_view name, uint8_t size) { return {name, kModrmRm, kMemory, 0, size}; }
constexpr OperandType reg(std::string_view name, OperandKind kind, uint8_t size) {
  return {name, kModrmReg, kind, size, 0};
}
constexpr OperandType vector_rm(std::string_view name, uint8_t size, uint8_t memory_size) {
  return {name, kModrmRm, kVector, size, memory_size};
}
constexpr OperandType vector_rm(std::string_view name, uint8_t size) { return vector_rm(name, size, size); }
constexpr OperandType fixed(std::string_view name, OperandKind kind, uint8_t size, uint8_t number) {
  return {name, kFixed, kind, size, number};
}

}  // namespace operand_types

inline constexpr auto kOperandTypes = [] {
  using namespace operand_types;
  return std::to_array<OperandType>({
      {"", kFixed, kNone, 0, 0},
      // E: general register or memory; R: register only; G: ModRM.reg; B: VEX.vvvv; Z: opcode bits
      general("Eb", 1),
      general("Ew", 2),
      general("Ed", 4),
      general("Eq", 8),
      general("Ev", kSizeV),
      general("Ez", kSizeZ),
      general("Ey", kSizeY),
      general("Evw", kSizeV, 2),  // a register of operand size or a word in memory
      general("Edb", 4, 1),
      general("Edw", 4, 2),
      general("Rv", kSizeV),
      general("Ry", kSizeY),
      general("Rq", 8),
      reg("Gb", kGpr, 1),
      reg("Gd", kGpr, 4),
      reg("Gv", kGpr, kSizeV),
      reg("Gz", kGpr, kSizeZ),
      reg("Gy", kGpr, kSizeY),
      reg("Gq", kGpr, 8),
      {"By", kVvvv, kGpr, kSizeY, 0},
      {"Zb", kOpcode, kGpr, 1, 0},
      {"Zv", kOpcode, kGpr, kSizeV, 0},
      // M: memory only; M alone has no fixed size; MV: vector-indexed (VSIB), the size is an element's
      memory("M", 0),
      memory("Mb", 1),
      memory("Mw", 2),
      memory("Md", 4),
      memory("Mq", 8),
      memory("Mt", 10),
      memory("Mdq", 16),
      memory("Mx", kSizeX),
      memory("My", kSizeY),
      memory("Mv", kSizeV),
      memory("MVd", 4),
      memory("MVq", 8),
      // V: ModRM.reg; H: VEX.vvvv; W: ModRM.rm, register or memory; U: register only; L: the immediate's high half
      reg("Vx", kVector, kSizeX),
      reg("Vdq", kVector, 16),
      reg("Vq", kVector, 8),
      reg("Vd", kVector, 4),
      {"Hx", kVvvv, kVector, kSizeX, 0},
      {"Hdq", kVvvv, kVector, 16, 0},
      vector_rm("Wx", kSizeX),
      vector_rm("Wdq", 16),
      vector_rm("Wq", 8),
      vector_rm("Wd", 4),
      vector_rm("Ww", 2),
      vector_rm("Wb", 1),
      vector_rm("Wh", kSizeXHalf),
      vector_rm("Wf", kSizeXQuarter),
      vector_rm("We", kSizeXEighth),
      vector_rm("Wdqd", 16, 4),  // a whole register or a doubleword in memory
      vector_rm("Ux", kSizeX),
      vector_rm("Udq", 16),
      vector_rm("Uq", 8),
      vector_rm("Ud", 4),
      {"Lx", kRegisterInImm8, kVector, kSizeX, 0},
      // P, Q, N: the same for MMX
      reg("Pq", kMmx, 8),
      reg("Pd", kMmx, 4),
      {"Qq", kModrmRm, kMmx, 8, 8},
      {"Qd", kModrmRm, kMmx, 4, 4},
      {"Nq", kModrmRm, kMmx, 8, 0},
      reg("Sw", kSegment, 2),
      reg("Cq", kControl, 8),
      reg("Dq", kDebug, 8),
      {"STi", kModrmRm, kX87, 10, 0},
      fixed("ST0", kX87, 10, 0),
      fixed("AL", kGpr, 1, 0),
      fixed("CL", kGpr, 1, 1),
      fixed("AX", kGpr, 2, 0),
      fixed("DX", kGpr, 2, 2),
      fixed("zAX", kGpr, kSizeZ, 0),
      fixed("rAX", kGpr, kSizeV, 0),
      fixed("FS", kSegment, kSizeV, 4),
      fixed("GS", kSegment, kSizeV, 5),
      // Immediates. A value is sign-extended and has the size it is extended to; a count or selector is
      // zero-extended.
      {"Ib", kImmediateU8, kImmediate, 1, 0},
      {"bIb", kImmediateS8, kImmediate, 1, 0},
      {"sIb", kImmediateS8, kImmediate, kSizeV, 0},
      {"Iw", kImmediateU16, kImmediate, 2, 0},
      {"Iz", kImmediateS32, kImmediate, kSizeV, 0},
      {"Iv", kImmediateFull, kImmediate, kSizeV, 0},
      {"1", kImmediateOne, kImmediate, 1, 0},
      {"Jb", kRelative8, kTarget, 8, 0},
      {"Jz", kRelative32, kTarget, 8, 0},
      {"Ob", kMemoryOffset, kMemory, 0, 1},
      {"Ov", kMemoryOffset, kMemory, 0, kSizeV},
      // Not operands: the condition code of FCMOVcc
      {"cc=B", kCondition, kNone, 2, 0},
      {"cc=NB", kCondition, kNone, 3, 0},
      {"cc=E", kCondition, kNone, 4, 0},
      {"cc=NE", kCondition, kNone, 5, 0},
      {"cc=BE", kCondition, kNone, 6, 0},
      {"cc=NBE", kCondition, kNone, 7, 0},
      {"cc=P", kCondition, kNone, 10, 0},
      {"cc=NP", kCondition, kNone, 11, 0},
  });
}();

}  // namespace phybin::decode
