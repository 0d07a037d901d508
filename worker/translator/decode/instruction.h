// The decoded form of one x86_64 instruction: what the lifters read.
//
// A plain value without pointers: the decoder fills it, nothing owns anything, and two decodes of the same bytes
// compare equal. Operand order is Intel's (destination first). Implicit operands (RAX of MUL, the flags, the stack of
// PUSH, XMM0 of BLENDVPS, the memory of string operations) are not listed: a lifter knows the instruction it
// implements. What Intel's syntax shows is listed, though: CL and the constant 1 of shifts, AL of `add al, imm8`,
// both registers of `fadd st0, st1`. For the string operations, XLAT and MASKMOVDQU, Memory::segment and
// Memory::address32 hold the prefixes' effect on the implicit operand, as they do for LOOP and JRCXZ (ECX with
// address32).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "worker/translator/decode/mnemonic.h"

namespace phybin::decode {

// Longest legal instruction, in bytes (Intel SDM vol. 2, 2.3.11).
inline constexpr unsigned kMaxInstructionLength = 15;

inline constexpr uint8_t kNoRegister = 0xff;
// Value of Memory::base for RIP-relative addressing; Memory::disp then holds the absolute address, already computed.
inline constexpr uint8_t kRipBase = 16;

enum class OperandKind : uint8_t {
  kNone,
  kGpr,        // reg 0..15 = RAX..R15, the low `size` bytes
  kGprHigh8,   // reg 0..3 = AH, CH, DH, BH
  kVector,     // reg 0..15 = XMM/YMM, `size` 16 or 32, or less for a scalar in its low bytes
  kMmx,        // reg 0..7
  kX87,        // reg 0..7 = ST(i)
  kSegment,    // reg 0..5 = ES CS SS DS FS GS
  kControl,    // reg 0..15 = CRn (privileged: decoded only so that the length is right)
  kDebug,      // reg 0..15 = DRn
  kMemory,     // Instruction::memory; `size` bytes are accessed (0: none, as for LEA, or not fixed, as for XSAVE)
  kImmediate,  // Instruction::imm (imm2 for a second one): a value is sign-extended to 64 bits whatever `size` is; a
               // count, selector or port, and the immediates of RET and ENTER are zero-extended
  kTarget,     // direct branch target, absolute guest address in Instruction::imm
};

struct alignas(4) Operand {
  OperandKind kind = OperandKind::kNone;
  uint8_t reg = kNoRegister;
  uint8_t size = 0;  // bytes

  bool operator==(const Operand&) const = default;
};

struct Memory {
  uint8_t base = kNoRegister;   // 0..15, kRipBase or kNoRegister
  uint8_t index = kNoRegister;  // 0..15 or kNoRegister; for VSIB a vector register
  uint8_t scale_log2 = 0;
  uint8_t segment = kNoRegister;  // 4 = FS, 5 = GS; others have base 0 in 64-bit mode and are not recorded
  bool address32 = false;         // 67 prefix: the sum is truncated to 32 bits (before a segment base is added)
  bool vsib = false;
  int64_t disp = 0;  // sign-extended; for kRipBase the absolute guest address; for MOV moffs the 64-bit address

  bool operator==(const Memory&) const = default;
};

enum PrefixBits : uint8_t {
  kPrefixLock = 1,
  kPrefixRep = 2,          // F3 where it is a repeat prefix or an HLE/BND hint, not where it selects the opcode
  kPrefixRepne = 4,        // F2, likewise
  kPrefixOperandSize = 8,  // 66 present and not part of the opcode
};

enum class Encoding : uint8_t { kLegacy, kVex128, kVex256, kEvex };

struct Instruction {
  Mnemonic mnemonic = Mnemonic::kInvalid;
  uint8_t length = 0;        // bytes; of an instruction that is not supported too, when it could be determined
  uint8_t operand_size = 0;  // bytes: effective integer operand size (1, 2, 4, 8); 0 where it has no meaning
  uint8_t prefixes = 0;      // PrefixBits
  uint8_t condition = 0;     // x86 condition code (0 = O ... 15 = G) of Jcc, SETcc, CMOVcc, FCMOVcc
  uint8_t operand_count = 0;
  Encoding encoding = Encoding::kLegacy;
  std::array<Operand, 4> operands{};
  Memory memory{};
  int64_t imm = 0;
  int64_t imm2 = 0;  // second immediate (ENTER), or the register selector of an /is4 operand

  bool has_prefix(PrefixBits bit) const { return (prefixes & bit) != 0; }
  bool operator==(const Instruction&) const = default;
};

enum class DecodeStatus : uint8_t {
  kOk,
  kInvalid,     // #UD on every CPU, or an instruction this decoder does not know: mnemonic is kInvalid
  kTooLong,     // over 15 bytes: #GP
  kOutOfBytes,  // more bytes are needed than `available`
};

// Decodes the instruction at `bytes`, of which `available` may be read, as if it stood at guest address `address`.
// Pure; never reads past `available`; a result other than kOk leaves length 0 unless it is known.
DecodeStatus decode(const uint8_t* bytes, std::size_t available, uint64_t address, Instruction& out);

}  // namespace phybin::decode
