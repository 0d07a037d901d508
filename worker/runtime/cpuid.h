// The x86 processor that the guest sees: one table from which CPUID, /proc/cpuinfo and AT_HWCAP are answered.
//
// It announces exactly what the translator implements. The vendor cannot be PhyBin's own: glibc reads no features of
// vendors that it does not know and refuses to start. Family and model are those of a processor without the features
// that programs tie to later ones; the brand string and the hypervisor leaf say who it really is.
#pragma once

#include <cstdint>

#include "worker/translator/host_features.h"

namespace phybin::runtime {

struct CpuidResult {
  uint32_t eax, ebx, ecx, edx;
};
CpuidResult cpuid(uint32_t leaf, uint32_t subleaf);
uint32_t cpuid_1_edx();  // EDX of leaf 1, which is AT_HWCAP

inline constexpr char kCpuVendor[] = "GenuineIntel";
inline constexpr char kHypervisorSignature[] = "PhyBinPhyBin";  // leaf 0x40000000
inline constexpr char kCpuBrand[] = "PhyBin virtual x86-64 processor";
inline constexpr unsigned kCpuFamily = 6, kCpuModel = 15, kCpuStepping = 1;
inline constexpr unsigned kCacheLine = 64;

// A feature bit and its name in /proc/cpuinfo, in the order of `flags` there.
struct CpuFeature {
  char name[16];  // no pointer, which would have to be relocated
  uint32_t leaf;  // 1, 7, 0x80000001 ...
  uint8_t reg;    // 0 eax ... 3 edx
  uint8_t bit;
  bool HostFeatures::*needs = nullptr;  // announced only where the host has this
};
extern const CpuFeature kCpuFeatures[];
extern const unsigned kCpuFeatureCount;
bool is_announced(const CpuFeature& feature);

// CPUs that the process may run on, in the order of their numbers: the guest's package has that many cores.
unsigned allowed_cpus();

// ---- Time stamp counter -----------------------------------------------------------------------------------------

uint32_t counter_frequency();  // of the host, ticks per second
// Of the guest; HostFeatures::tsc_shift says how it follows from the host's.
uint64_t tsc_frequency();  // ticks per second
uint64_t read_tsc();

}  // namespace phybin::runtime
