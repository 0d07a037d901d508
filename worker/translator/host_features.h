// What the host CPU offers beyond ARMv8.0, the speed of its counter, and the options that change code. All are inputs
// of a translation and part of an image's identity; nothing in the translator asks the machine it runs on.
#pragma once

#include <cstdint>

namespace phybin {

struct HostFeatures {
  bool crc32 = false;
  bool aes = false;
  bool pmull = false;
  bool sha1 = false;
  bool sha2 = false;
  bool lse = false;
  bool lrcpc = false;
  bool lrcpc2 = false;
  bool lse2 = false;
  bool flagm = false;
  bool flagm2 = false;
  bool frintts = false;
  uint8_t tsc_shift = 0;  // the guest's TSC is the host's counter (CNTVCT_EL0), shifted left by this

  bool operator==(const HostFeatures&) const = default;
};

// Ticks per second that the guest's TSC has at least: programs take finer ones for granted than many counters have.
inline constexpr uint64_t kLeastTscFrequency = 1000000000;

// The smallest shift that gives the TSC that frequency; `counter_frequency` in Hz (CNTFRQ_EL0), 0: unknown. A shift,
// as RDTSC is fast then, and the frequency is a product that CPUID can tell exactly.
constexpr uint8_t tsc_shift_for(uint32_t counter_frequency) {
  uint8_t shift = 0;
  while (counter_frequency != 0 && uint64_t{counter_frequency} << shift < kLeastTscFrequency) ++shift;
  return shift;
}

enum class MemoryModel : uint8_t { kWeak, kTso };

struct CodeOptions {
  MemoryModel memory_model = MemoryModel::kWeak;
  bool fast_math = false;
  bool sse_check = true;
  bool ordered_by_barriers = false;  // kTso: DMB around plain accesses instead of LDAR/STLR
  bool safepoints = true;            // off only to measure what polls cost

  bool operator==(const CodeOptions&) const = default;
};

}  // namespace phybin
