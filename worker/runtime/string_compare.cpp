// PCMPESTRI, PCMPESTRM, PCMPISTRI, PCMPISTRM (SDM vol. 2, 4.1): rare and intricate, so a helper on the guest state.
//
// Follows the manual's steps and names: a comparison of every element of one string with every element of the other
// (BoolRes), its aggregation (IntRes1), polarity (IntRes2), then index or mask, and the flags.
#include <arm_neon.h>

#include <bit>
#include <cstring>

#include "worker/translator/guest_state.h"
#include "worker/translator/helper_ids.h"

namespace phybin::runtime {
namespace {

enum Aggregation : unsigned { kEqualAny, kRanges, kEqualEach, kEqualOrdered };

struct String {
  int elements[8];
  unsigned length;  // valid elements
};

String read_words(const uint8_t* bytes, unsigned imm) {
  String s{};
  for (unsigned i = 0; i < 8; ++i) {
    uint16_t v;
    std::memcpy(&v, bytes + 2 * i, 2);
    s.elements[i] = (imm & 2) != 0 ? static_cast<int16_t>(v) : v;
  }
  return s;
}

unsigned implicit_length(const String& s) {
  unsigned n = 0;
  while (n < 8 && s.elements[n] != 0) ++n;
  return n;
}

unsigned explicit_length(uint64_t reg, bool wide, unsigned count) {
  const int64_t length = wide ? static_cast<int64_t>(reg) : static_cast<int32_t>(reg);
  const uint64_t magnitude = length < 0 ? 0 - static_cast<uint64_t>(length) : static_cast<uint64_t>(length);
  return magnitude < count ? static_cast<unsigned>(magnitude) : count;
}

// Whether element j of the second string matches, given the first one.
bool matches(const String& a, const String& b, Aggregation aggregation, unsigned j, unsigned count) {
  switch (aggregation) {
    case kEqualAny:
      if (j >= b.length) return false;
      for (unsigned i = 0; i < a.length; ++i) {
        if (a.elements[i] == b.elements[j]) return true;
      }
      return false;
    case kRanges:
      if (j >= b.length) return false;
      for (unsigned i = 0; i + 1 < a.length; i += 2) {
        if (a.elements[i] <= b.elements[j] && b.elements[j] <= a.elements[i + 1]) return true;
      }
      return false;
    case kEqualEach:
      if (j >= a.length || j >= b.length) return j >= a.length && j >= b.length;
      return a.elements[j] == b.elements[j];
    case kEqualOrdered:
      for (unsigned i = 0; i < a.length && i + j < count; ++i) {
        if (i + j >= b.length || a.elements[i] != b.elements[i + j]) return false;
      }
      return true;
  }
  return false;
}

// Bit i = the top bit of element i.
unsigned bits_of(uint8x16_t mask) {
  static constexpr uint8_t kWeights[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  const uint8x16_t weighted = vandq_u8(mask, vld1q_u8(kWeights));
  return vaddv_u8(vget_low_u8(weighted)) | static_cast<unsigned>(vaddv_u8(vget_high_u8(weighted))) << 8;
}

unsigned low_bits(unsigned count) { return (1u << count) - 1; }

// IntRes1 for strings of bytes, all elements of the second string at once: what the C library's string functions use.
unsigned compare_bytes(uint8x16_t a, unsigned a_length, uint8x16_t b, unsigned b_length, unsigned imm) {
  uint8_t elements[16];
  vst1q_u8(elements, a);
  const unsigned valid = low_bits(b_length);
  uint8x16_t any = vdupq_n_u8(0);
  switch (static_cast<Aggregation>(imm >> 2 & 3)) {
    case kEqualAny:
      for (unsigned i = 0; i < a_length; ++i) any = vorrq_u8(any, vceqq_u8(b, vdupq_n_u8(elements[i])));
      return bits_of(any) & valid;
    case kRanges:
      for (unsigned i = 0; i + 1 < a_length; i += 2) {
        const uint8x16_t low = vdupq_n_u8(elements[i]), high = vdupq_n_u8(elements[i + 1]);
        const uint8x16_t inside = (imm & 2) != 0
                                      ? vandq_u8(vcgeq_s8(vreinterpretq_s8_u8(b), vreinterpretq_s8_u8(low)),
                                                 vcleq_s8(vreinterpretq_s8_u8(b), vreinterpretq_s8_u8(high)))
                                      : vandq_u8(vcgeq_u8(b, low), vcleq_u8(b, high));
        any = vorrq_u8(any, inside);
      }
      return bits_of(any) & valid;
    case kEqualEach: {
      const unsigned a_valid = low_bits(a_length);
      return (bits_of(vceqq_u8(a, b)) & a_valid & valid) | (~(a_valid | valid) & 0xffff);
    }
    case kEqualOrdered: {
      unsigned result = 0xffff;
      for (unsigned i = 0; i < a_length; ++i) {
        const unsigned equal = bits_of(vceqq_u8(b, vdupq_n_u8(elements[i]))) & valid;
        result &= equal >> i | (0xffff0000u >> i);
      }
      return result & 0xffff;
    }
  }
  return 0;
}

unsigned implicit_byte_length(uint8x16_t s) {
  const unsigned zeros = bits_of(vceqzq_u8(s));
  return zeros == 0 ? 16 : static_cast<unsigned>(std::countr_zero(zeros));
}

// IntRes1 for strings of words, step by step as in the manual.
unsigned compare_words(const String& a, const String& b, unsigned imm) {
  unsigned result = 0;
  for (unsigned j = 0; j < 8; ++j) {
    result |= unsigned{matches(a, b, static_cast<Aggregation>(imm >> 2 & 3), j, 8)} << j;
  }
  return result;
}

void write_mask(GuestState& state, unsigned result, unsigned imm, unsigned count) {
  state.xmm[0][0] = result;
  state.xmm[0][1] = 0;
  if ((imm & 0x40) == 0) return;
  uint8_t bytes[16];
  const unsigned size = 16 / count;
  for (unsigned i = 0; i < 16; ++i) bytes[i] = (result >> i / size & 1) != 0 ? 0xff : 0;
  std::memcpy(state.xmm[0], bytes, sizeof bytes);
}

}  // namespace
}  // namespace phybin::runtime

// `packed` as lift/sse_string.cpp makes it; `address` of the second operand if it is in memory.
extern "C" void phybin_helper_string_compare(phybin::GuestState* state, uint64_t packed, uint64_t address);

void phybin_helper_string_compare(phybin::GuestState* state, uint64_t packed, uint64_t address) {
  using namespace phybin::runtime;  // NOLINT: a C function of this file
  constexpr unsigned kRax = 0, kRcx = 1, kRdx = 2, kInMemory = 16;
  constexpr uint64_t kN = uint64_t{1} << 31, kZ = uint64_t{1} << 30, kNotCarry = uint64_t{1} << 29,
                     kV = uint64_t{1} << 28;
  const bool to_mask = (packed & 1) != 0, implicit = (packed & 2) != 0, wide = (packed >> 32 & 1) != 0;
  const unsigned first = packed >> 8 & 15, second = packed >> 16 & 31, imm = packed >> 24 & 0xff;
  const unsigned count = (imm & 1) != 0 ? 8 : 16;

  uint8_t bytes[16];
  std::memcpy(bytes, second == kInMemory ? reinterpret_cast<const void*>(address) : state->xmm[second], sizeof bytes);
  const auto* first_bytes = reinterpret_cast<const uint8_t*>(state->xmm[first]);
  unsigned a_length, b_length, result;
  if (count == 16) {
    const uint8x16_t a = vld1q_u8(first_bytes), b = vld1q_u8(bytes);
    a_length = implicit ? implicit_byte_length(a) : explicit_length(state->gpr[kRax], wide, count);
    b_length = implicit ? implicit_byte_length(b) : explicit_length(state->gpr[kRdx], wide, count);
    result = compare_bytes(a, a_length, b, b_length, imm);
  } else {
    String a = read_words(first_bytes, imm), b = read_words(bytes, imm);
    a.length = a_length = implicit ? implicit_length(a) : explicit_length(state->gpr[kRax], wide, count);
    b.length = b_length = implicit ? implicit_length(b) : explicit_length(state->gpr[kRdx], wide, count);
    result = compare_words(a, b, imm);
  }
  // Polarity: all bits, or those of valid elements.
  if ((imm & 0x10) != 0) result ^= (imm & 0x20) != 0 ? low_bits(b_length) : low_bits(count);

  if (to_mask) {
    write_mask(*state, result, imm, count);
  } else if (result == 0) {
    state->gpr[kRcx] = count;
  } else {
    state->gpr[kRcx] =
        static_cast<uint64_t>((imm & 0x40) != 0 ? 31 - std::countl_zero(result) : std::countr_zero(result));
  }
  state->nzcv = (a_length < count ? kN : 0) | (b_length < count ? kZ : 0) | (result == 0 ? kNotCarry : 0) |
                ((result & 1) != 0 ? kV : 0);
  state->pf_raw = 1;  // odd parity: PF = 0, and bit 4 of it, AF, too
  state->af_raw = 0;
}
