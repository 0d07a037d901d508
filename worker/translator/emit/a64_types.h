// Names for the operands of A64 instructions, and the tests whether a constant fits an immediate field.
//
// Registers are plain numbers: the register allocator computes them, and 31 is the zero register or the stack pointer
// as the manual says for each form. Sizes are a type of their own, because a `bool is64` taken for a size (or the
// other way round) would silently encode another access.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>

namespace phybin::a64 {

using Gpr = uint8_t;
using Vec = uint8_t;
constexpr Gpr kZr = 31;
constexpr Gpr kSp = 31;
constexpr Gpr kLr = 30;

enum Shift : uint8_t { LSL, LSR, ASR, ROR };

enum class Extend : uint8_t { UXTB, UXTH, UXTW, UXTX, SXTB, SXTH, SXTW, SXTX };

enum class Cond : uint8_t { EQ, NE, CS, CC, MI, PL, VS, VC, HI, LS, GE, LT, GT, LE, AL };

constexpr Cond invert(Cond cond) { return static_cast<Cond>(static_cast<uint8_t>(cond) ^ 1); }

enum class Barrier : uint8_t { ISHLD = 9, ISHST = 10, ISH = 11, LD = 13, ST = 14, SY = 15 };

// op0:op1:CRn:CRm:op2 as MRS and MSR hold it (bits 20 to 5).
enum class SystemRegister : uint16_t {
  CTR_EL0 = 0xd801,
  DCZID_EL0 = 0xd807,
  NZCV = 0xda10,
  FPCR = 0xda20,
  FPSR = 0xda21,
  TPIDR_EL0 = 0xde82,
  CNTFRQ_EL0 = 0xdf00,
  CNTVCT_EL0 = 0xdf02,
};

// Prefetch operation: load or store, level 1 to 3, kept or streaming.
enum class Prefetch : uint8_t {
  PLDL1KEEP = 0,
  PLDL1STRM = 1,
  PLDL2KEEP = 2,
  PLDL3KEEP = 4,
  PSTL1KEEP = 16,
  PSTL1STRM = 17
};

// log2 of a size in bytes: of an access, a vector element, or a floating-point format. Made from any integer but
// bool.
struct Size {
  template <typename T>
  requires(std::integral<T> && !std::same_as<T, bool>) constexpr Size(T value)
      : log2(static_cast<uint8_t>(value)) {}  // NOLINT: numbers are meant to convert
  uint8_t log2;
};
constexpr Size kB{0}, kH{1}, kS{2}, kD{3}, kQ{4};

struct Label {
  uint32_t id = UINT32_MAX;
};

// Whether ADD/SUB (immediate) can hold the value, with or without its shift by 12.
constexpr bool is_add_imm(uint64_t value) {
  return (value & ~uint64_t{0xfff}) == 0 || (value & ~uint64_t{0xfff000}) == 0;
}

// Encodes the immediate of AND/ORR/EOR/ANDS: N:immr:imms, to be placed at bit 10. A logical immediate is a run of
// ones in an element of 2 to 64 bits, rotated and repeated over the register. So: rotate the value until a run starts
// at bit 0 and bit 63 is clear; the run and the gap behind it then make one element, and the value must repeat at
// that distance.
constexpr bool encode_bitmask(uint64_t value, bool is64, uint32_t& n_immr_imms) {
  if (!is64) value = (value << 32) | (value & 0xffffffff);
  if (value + 1 <= 1) return false;
  const uint64_t without_low_run = value & (value + 1);
  const int start = without_low_run == 0 ? 0 : std::countr_zero(without_low_run);
  const uint64_t run_first = std::rotr(value, start);
  const int ones = std::countr_one(run_first);
  const int element = ones + std::countl_zero(run_first);
  if (std::rotr(value, element) != value) return false;
  const auto size = static_cast<uint32_t>(element);
  const uint32_t n = size >> 6;
  const uint32_t immr = (size - static_cast<uint32_t>(start)) & (size - 1);
  const uint32_t imms = ((0u - (size << 1)) | (static_cast<uint32_t>(ones) - 1)) & 0x3f;
  n_immr_imms = n << 12 | immr << 6 | imms;
  return true;
}

// Encodes a double as the 8-bit immediate of FMOV; false if it is none of the 256. Works on the bits: the translator
// uses no host floating point.
constexpr bool encode_fp64_imm(uint64_t bits, uint32_t& imm8) {
  const uint64_t exponent_high = (bits >> 54) & 0x1ff;
  if ((bits & 0xffffffffffff) != 0 || (exponent_high != 0x100 && exponent_high != 0x0ff)) return false;
  imm8 = static_cast<uint32_t>((bits >> 56 & 0x80) | ((exponent_high & 1) << 6) | (bits >> 48 & 0x3f));
  return true;
}

constexpr bool encode_fp32_imm(uint32_t bits, uint32_t& imm8) {
  const uint32_t exponent_high = (bits >> 25) & 0x3f;
  if ((bits & 0x7ffff) != 0 || (exponent_high != 0x20 && exponent_high != 0x1f)) return false;
  imm8 = (bits >> 24 & 0x80) | ((exponent_high & 1) << 6) | (bits >> 19 & 0x3f);
  return true;
}

}  // namespace phybin::a64
