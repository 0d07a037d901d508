// What lifters, emitter and runtime agree on about the x87: where its state lies in GuestState::x87 and how the words
// that the helpers take (runtime/helpers/x87_ops.h) are made up.
#pragma once

#include <cstddef>
#include <cstdint>

#include "worker/translator/guest_state.h"

namespace phybin::x87 {

// Offsets in GuestState of the fields of X87State (runtime/helpers/x87_state.h, which checks them). The eight
// registers have 16 bytes each: significand, then sign and exponent in the low bits of the next word.
inline constexpr uint32_t kRegistersOffset = offsetof(GuestState, x87);
inline constexpr uint32_t kControlWordOffset = kRegistersOffset + 128;
inline constexpr uint32_t kStatusWordOffset = kRegistersOffset + 130;  // without TOP
inline constexpr uint32_t kTopOffset = kRegistersOffset + 132;
inline constexpr uint32_t kOccupiedOffset = kRegistersOffset + 133;
inline constexpr uint32_t kSuppressedOffset = kRegistersOffset + 134;
inline constexpr uint32_t kAfterStoreOffset = kRegistersOffset + 160;

// Places of those in the word at kControlWordOffset, which translated code loads and stores as one.
inline constexpr unsigned kStatusBit = 16;
inline constexpr unsigned kTopBit = 32;
inline constexpr unsigned kOccupiedBit = 40;
inline constexpr unsigned kSuppressedBit = 48;
inline constexpr unsigned kOrdinaryBit = 56;
inline constexpr unsigned kC1Bit = kStatusBit + 9;
inline constexpr unsigned kErrorSummaryBit = kStatusBit + 7;

// The operations that are done inline.
enum class ArithmeticKind : uint8_t { kAdd, kSubtract, kMultiply };

// Word `a` of register arithmetic: ST(destination) = ST(destination) op ST(source), or source op destination.
inline constexpr uint64_t kReversed = 0x40;
inline constexpr uint64_t kArithmeticPop = 0x80;
constexpr uint64_t arithmetic_operands(unsigned destination, unsigned source, bool reversed, bool pops) {
  return destination | source << 3 | (reversed ? kReversed : 0) | (pops ? kArithmeticPop : 0);
}

// Word `a` of arithmetic with a memory operand: the ModRM reg field of D8, DA, DC and DE, and what the operand is.
enum MemoryOperation : uint64_t {
  kMemoryAdd,
  kMemoryMultiply,
  kMemoryCompare,
  kMemoryComparePop,
  kMemorySubtract,
  kMemorySubtractReversed,
  kMemoryDivide,
  kMemoryDivideReversed,
};
enum MemoryKind : uint64_t { kMemoryFloat32, kMemoryFloat64, kMemoryInteger };  // integers sign-extended to 64 bits
constexpr uint64_t memory_arithmetic(MemoryOperation operation, MemoryKind kind) { return operation | kind << 3; }

// Word `a` of the integer stores: the size in bits, and these.
inline constexpr uint64_t kStorePop = 0x80;
inline constexpr uint64_t kStoreTruncate = 0x100;

// Word `a` of comparisons: i of ST(i), and these.
inline constexpr uint64_t kCompareQuiet = 0x08;
inline constexpr uint64_t kComparePop = 0x10;
inline constexpr uint64_t kComparePopTwice = 0x20;

// Instructions without an explicit operand that have no function of their own.
enum Operation : uint64_t {
  kFtst,
  kFxam,
  kFsqrt,
  kFrndint,
  kFscale,
  kFxtract,
  kFprem,
  kFprem1,
  kF2xm1,
  kFyl2x,
  kFyl2xp1,
  kFptan,
  kFpatan,
  kFsin,
  kFcos,
  kFsincos,
  kOperationCount,
};

// In the order of their opcodes, D9 E8 to D9 EE.
enum Constant : uint64_t { kOne, kLog2Of10, kLog2OfE, kPi, kLog10Of2, kLogOf2, kZero };

// EFLAGS bits returned by FCOMI.
inline constexpr uint64_t kCarryFlag = 0x01;
inline constexpr uint64_t kParityFlag = 0x04;
inline constexpr uint64_t kZeroFlag = 0x40;

}  // namespace phybin::x87
