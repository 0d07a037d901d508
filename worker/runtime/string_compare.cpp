// PCMPESTRI, PCMPESTRM, PCMPISTRI, PCMPISTRM (SDM vol. 2, 4.1): rare and intricate, so a helper on the guest state.
//
// Follows the manual's steps and names: a comparison of every element of one string with every element of the other
// (BoolRes), its aggregation (IntRes1), polarity (IntRes2), then index or mask, and the flags.
#include <bit>
#include <cstring>

#include "worker/translator/guest_state.h"
#include "worker/translator/helper_ids.h"

namespace phybin::runtime {
namespace {

enum Aggregation : unsigned { kEqualAny, kRanges, kEqualEach, kEqualOrdered };

struct String {
  int elements[16];
  unsigned length;  // valid elements
};

String read_string(const uint8_t* bytes, unsigned imm) {
  const bool words = (imm & 1) != 0, is_signed = (imm & 2) != 0;
  String s{};
  for (unsigned i = 0; i < (words ? 8u : 16u); ++i) {
    if (words) {
      uint16_t v;
      std::memcpy(&v, bytes + 2 * i, 2);
      s.elements[i] = is_signed ? static_cast<int16_t>(v) : v;
    } else {
      s.elements[i] = is_signed ? static_cast<int8_t>(bytes[i]) : bytes[i];
    }
  }
  return s;
}

unsigned implicit_length(const String& s, unsigned count) {
  unsigned n = 0;
  while (n < count && s.elements[n] != 0) ++n;
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
  String b = read_string(bytes, imm);
  String a = read_string(reinterpret_cast<const uint8_t*>(state->xmm[first]), imm);
  a.length = implicit ? implicit_length(a, count) : explicit_length(state->gpr[kRax], wide, count);
  b.length = implicit ? implicit_length(b, count) : explicit_length(state->gpr[kRdx], wide, count);

  unsigned result = 0;
  for (unsigned j = 0; j < count; ++j) {
    bool bit = matches(a, b, static_cast<Aggregation>(imm >> 2 & 3), j, count);
    if ((imm & 0x10) != 0 && ((imm & 0x20) == 0 || j < b.length)) bit = !bit;
    result |= unsigned{bit} << j;
  }

  if (to_mask) {
    write_mask(*state, result, imm, count);
  } else if (result == 0) {
    state->gpr[kRcx] = count;
  } else {
    state->gpr[kRcx] =
        static_cast<uint64_t>((imm & 0x40) != 0 ? 31 - std::countl_zero(result) : std::countr_zero(result));
  }
  state->nzcv = (a.length < count ? kN : 0) | (b.length < count ? kZ : 0) | (result == 0 ? kNotCarry : 0) |
                ((result & 1) != 0 ? kV : 0);
  state->pf_raw = 1;  // odd parity: PF = 0, and bit 4 of it, AF, too
  state->af_raw = 0;
}
