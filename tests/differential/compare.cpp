// Comparison of results. Approximations (RCPPS and the like) may differ within what the manual allows; empty x87
// registers, the x87 instruction and data pointers, and undefined flags are left out.
#include "tests/differential/compare.h"

#include <cmath>
#include <cstring>

namespace phybin::difftest {
namespace {

constexpr uint64_t kComparedFlags = kStatusFlags | kDf;
constexpr uint64_t kMxcsrFlags = 0x3f;
constexpr uint16_t kX87Top = 0x3800;
constexpr uint16_t kX87ConditionCodes = 0x4700;
// RCPPS and RSQRTPS: |relative error| <= 1.5 * 2^-12; two such results may lie on both sides.
constexpr float kApproximation = 3.0f / 4096;

Hint result_hint(const Case& item) {
  return item.snippet->main >= 0 ? item.snippet->code[size_t(item.snippet->main)].form->hint : Hint::kNone;
}

bool approximate(const Case& item) {
  return item.snippet->main >= 0 && item.snippet->code[size_t(item.snippet->main)].form->approximate;
}

bool is_repeated_string(const Case& item) {
  return item.snippet->main >= 0 && item.snippet->code[size_t(item.snippet->main)].repeat != 0;
}

template <typename T>
void canonicalize_nans(uint8_t* bytes, size_t size, T infinity, T quiet) {
  for (size_t i = 0; i < size; i += sizeof(T)) {
    T lane;
    std::memcpy(&lane, bytes + i, sizeof(T));
    if ((lane & (~T(0) >> 1)) > infinity) std::memcpy(bytes + i, &quiet, sizeof(T));
  }
}

void canonicalize_fx(uint8_t* fx, uint16_t status_mask) {
  uint8_t out[512] = {};
  uint16_t word;
  std::memcpy(&word, fx + 2, 2);
  const unsigned top = word >> 11 & 7;
  const auto kept = uint16_t(word & status_mask);
  std::memcpy(out, fx, 2);
  std::memcpy(out + 2, &kept, 2);
  out[4] = fx[4];
  for (unsigned i = 0; i < 8; i++) {
    if (fx[4] >> ((top + i) & 7) & 1) std::memcpy(out + 32 + 16 * i, fx + 32 + 16 * i, 10);
  }
  std::memcpy(fx, out, sizeof(out));
}

// The bits of the x87 status word that are defined after the snippet.
uint16_t status_mask(const Case& item) {
  uint16_t codes = 0;
  if (item.snippet->main >= 0) codes = item.snippet->code[size_t(item.snippet->main)].form->condition_codes;
  return uint16_t(~kX87ConditionCodes | codes);
}

bool close_enough(const uint8_t* a, const uint8_t* b) {
  float x, y;
  std::memcpy(&x, a, 4);
  std::memcpy(&y, b, 4);
  return std::memcmp(a, b, 4) == 0 || std::fabs(x - y) <= kApproximation * std::fabs(x);
}

// x87 transcendentals: the last bits may differ.
bool close_enough_80(const uint8_t* a, const uint8_t* b) {
  uint64_t x, y;
  std::memcpy(&x, a, 8);
  std::memcpy(&y, b, 8);
  return std::memcmp(a + 8, b + 8, 2) == 0 && (x > y ? x - y : y - x) <= 4;
}

}  // namespace

FlagFlow flag_flow(const std::vector<Instruction>& code, int cl) {
  FlagFlow flow;
  std::vector<uint32_t> at(code.size() + 1, 0);
  auto index_of = [&](int id) {
    size_t i = 0;
    while (i < code.size() && code[i].id < id) i++;
    return i;
  };
  for (bool changed = true; changed;) {
    changed = false;
    auto merge = [&](size_t i, uint32_t undefined) {
      if ((at[i] | undefined) != at[i]) {
        at[i] |= undefined;
        changed = true;
      }
    };
    for (size_t i = 0; i < code.size(); i++) {
      const FlagEffects effects = flag_effects(code[i], cl);
      if (effects.read & at[i]) flow.reads_undefined = true;
      const uint32_t after = (at[i] & ~effects.written) | effects.undefined;
      merge(i + 1, after);
      if (code[i].branch_offset >= 0) merge(index_of(code[i].branch_target), after);
    }
  }
  flow.undefined_at_end = at[code.size()];
  return flow;
}

namespace {

// If the address of a case is not known, nothing is.
bool faulted_in_locked(const Case& item, uint64_t rip) {
  uint64_t at = item.address;
  for (const Instruction& instruction : item.snippet->code) {
    const bool exchange = instruction.form && instruction.form->mnemonic == "xchg" && instruction.has_memory;
    if (at == rip) return instruction.locked || exchange;
    at += instruction.length;
  }
  return false;
}

}  // namespace

ResultRecord canonical(const Case& item, const ResultRecord& result, const CompareOptions& options) {
  ResultRecord out = result;
  const int cl = item.snippet->main >= 0 ? int(item.state.gpr[kRcx] & 0xff) : -1;
  out.flags &= kComparedFlags & ~uint64_t(flag_flow(item.snippet->code, cl).undefined_at_end);
  out.index = 0;
  out.unused = 0;
  if (out.signal != 0) {
    // Arithmetic flags of the instruction that faulted, and upper halves: the frame is not a place to look for them.
    out.flags &= kDf;
    for (auto& reg : out.vector) std::memset(reg + 16, 0, 16);
    if (!options.lock_address && faulted_in_locked(item, out.rip)) out.fault_address &= ~uint64_t(15);
    if (!options.fault_progress) {
      out.digest = 0;
      if (is_repeated_string(item)) out.gpr[kRcx] = out.gpr[kRsi] = out.gpr[kRdi] = 0;
    }
  }
  out.mxcsr &= 0xffffffff & ~(options.mxcsr_flags ? 0 : kMxcsrFlags);
  for (auto& reg : out.vector) {
    if (!(item.state.options & OPTION_YMM)) std::memset(reg + 16, 0, 16);
    if (options.nan_payload) continue;
    const Hint hint = result_hint(item);
    if (hint == Hint::kF32) canonicalize_nans<uint32_t>(reg, 32, 0x7f800000, 0x7fc00000);
    if (hint == Hint::kF64) canonicalize_nans<uint64_t>(reg, 32, 0x7ff0000000000000, 0x7ff8000000000000);
  }
  const bool compare_fx = out.signal == 0 || options.fault_progress;
  if ((item.state.options & OPTION_FX) && compare_fx) {
    canonicalize_fx(out.fx, options.x87_status ? status_mask(item) : kX87Top);
  } else {
    std::memset(out.fx, 0, sizeof(out.fx));
  }
  return out;
}

uint64_t digest_of_comparison(const Case& item) {
  ResultRecord all;
  std::memset(&all, 0xff, sizeof(all));
  all.signal = 0;
  const ResultRecord compared = canonical(item, all, {});
  uint64_t hash = uint64_t(approximate(item)) << 8 | uint64_t(result_hint(item));
  for (uint64_t value : {compared.flags, compared.mxcsr, uint64_t(status_mask(item)), item.state.options}) {
    hash = (hash ^ value) * 0x100000001b3;
  }
  return hash;
}

bool same_result(const Case& item, const ResultRecord& a, const ResultRecord& b, const CompareOptions& options) {
  const ResultRecord x = canonical(item, a, options);
  ResultRecord y = canonical(item, b, options);
  if (approximate(item)) {
    for (unsigned i = 0; i < 16; i++) {
      for (unsigned lane = 0; lane < 32; lane += 4) {
        if (!close_enough(x.vector[i] + lane, y.vector[i] + lane)) return false;
      }
    }
    std::memcpy(y.vector, x.vector, sizeof(x.vector));
    for (unsigned i = 0; i < 8; i++) {
      if (!close_enough_80(x.fx + 32 + 16 * i, y.fx + 32 + 16 * i)) return false;
    }
    std::memcpy(y.fx + 32, x.fx + 32, 128);
  }
  return std::memcmp(&x, &y, sizeof(x)) == 0;
}

}  // namespace phybin::difftest
