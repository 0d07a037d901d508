// See cpuid.h.
#include "worker/runtime/cpuid.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <csignal>
#include <cstring>
#include <iterator>

#include "worker/runtime/flags.h"
#include "worker/runtime/regions.h"
#include "worker/runtime/runtime.h"
#include "worker/runtime/signals.h"

namespace phybin::runtime {

namespace {

enum Reg : uint8_t { kEax, kEbx, kEcx, kEdx };
constexpr uint32_t kExtended = 0x80000000;
constexpr uint32_t kHypervisor = 0x40000000;
constexpr uint32_t kLastBasicLeaf = 0x16, kLastExtendedLeaf = 0x80000008;
constexpr unsigned kAddressBits = 48, kLinearBits = 48;

}  // namespace

constexpr CpuFeature kCpuFeatures[] = {
    {"fpu", 1, kEdx, 0},
    {"tsc", 1, kEdx, 4},
    {"cx8", 1, kEdx, 8},
    {"cmov", 1, kEdx, 15},
    {"clflush", 1, kEdx, 19},
    {"mmx", 1, kEdx, 23},
    {"fxsr", 1, kEdx, 24},
    {"sse", 1, kEdx, 25},
    {"sse2", 1, kEdx, 26},
    {"syscall", kExtended + 1, kEdx, 11},
    {"nx", kExtended + 1, kEdx, 20},
    {"rdtscp", kExtended + 1, kEdx, 27},
    {"lm", kExtended + 1, kEdx, 29},
    {"constant_tsc", kExtended + 7, kEdx, 8},
    {"nopl", 0, 0, 0},  // Linux's own name for a property that no leaf tells
    {"cpuid", 0, 0, 0},
    {"pni", 1, kEcx, 0},
    {"pclmulqdq", 1, kEcx, 1, &HostFeatures::pmull},
    {"ssse3", 1, kEcx, 9},
    {"cx16", 1, kEcx, 13},
    {"sse4_1", 1, kEcx, 19},
    {"sse4_2", 1, kEcx, 20, &HostFeatures::crc32},
    {"movbe", 1, kEcx, 22},
    {"popcnt", 1, kEcx, 23},
    {"rdrand", 1, kEcx, 30},
    {"bmi1", 7, kEbx, 3},
    {"bmi2", 7, kEbx, 8},
    {"sha_ni", 7, kEbx, 29, &HostFeatures::sha2},
    {"aes", 1, kEcx, 25, &HostFeatures::aes},
    {"hypervisor", 1, kEcx, 31},
    {"lahf_lm", kExtended + 1, kEcx, 0},
    {"abm", kExtended + 1, kEcx, 5},
};
constexpr unsigned kCpuFeatureCount = sizeof kCpuFeatures / sizeof kCpuFeatures[0];

namespace {

// A bit that stands twice would show twice in /proc/cpuinfo.
constexpr bool each_bit_once() {
  for (const CpuFeature& a : kCpuFeatures) {
    for (const CpuFeature& b : kCpuFeatures) {
      if (&a != &b && a.leaf != 0 && a.leaf == b.leaf && a.reg == b.reg && a.bit == b.bit) return false;
    }
  }
  return true;
}
static_assert(each_bit_once());

}  // namespace

bool is_announced(const CpuFeature& feature) { return feature.needs == nullptr || config.host.*feature.needs; }

namespace {

// Libraries ask for the same leaves dozens of times when they start, so what depends on no host is added up here.
template <uint32_t Leaf, Reg Register>
uint32_t feature_bits() {
  static constexpr auto kAlways = [] {
    uint32_t bits = 0;
    for (const CpuFeature& feature : kCpuFeatures) {
      if (feature.leaf == Leaf && feature.reg == Register && feature.needs == nullptr) bits |= 1u << feature.bit;
    }
    return bits;
  }();
  static constexpr size_t kCount =
      std::count_if(std::begin(kCpuFeatures), std::end(kCpuFeatures),
                    [](const CpuFeature& f) { return f.leaf == Leaf && f.reg == Register && f.needs != nullptr; });
  static constexpr auto kSome = [] {
    std::array<uint8_t, kCount> indices{};
    size_t at = 0;
    for (size_t i = 0; i < kCpuFeatureCount; ++i) {
      const CpuFeature& f = kCpuFeatures[i];
      if (f.leaf == Leaf && f.reg == Register && f.needs != nullptr) indices[at++] = static_cast<uint8_t>(i);
    }
    return indices;
  }();
  uint32_t bits = kAlways;
  for (uint8_t i : kSome) bits |= is_announced(kCpuFeatures[i]) ? 1u << kCpuFeatures[i].bit : 0;
  return bits;
}

struct CpuSet {
  uint64_t words[CPU_SETSIZE / 64];
  size_t count;  // of words; 0: unknown
};

CpuSet allowed_set() {
  CpuSet set;
  const long bytes = syscall(SYS_sched_getaffinity, 0, sizeof set.words, set.words);
  set.count = bytes > 0 ? static_cast<size_t>(bytes) / 8 : 0;
  return set;
}

// Of those with a number below `end`.
unsigned count_cpus(const CpuSet& set, size_t end) {
  unsigned count = 0;
  for (size_t i = 0; i < set.count && i * 64 < end; ++i) {
    const uint64_t below = end - i * 64 < 64 ? (uint64_t{1} << (end - i * 64)) - 1 : ~uint64_t{0};
    count += static_cast<unsigned>(std::popcount(set.words[i] & below));
  }
  return count;
}

uint32_t word_of(const char* text, size_t size, size_t at) {
  uint32_t word = 0;
  if (at < size) memcpy(&word, text + at, size - at < 4 ? size - at : 4);
  return word;
}

// Number of the CPU among the allowed ones: the guest's APIC id.
unsigned apic_id() {
  const int cpu = sched_getcpu();
  return cpu < 0 ? 0 : count_cpus(allowed_set(), static_cast<size_t>(cpu));
}

unsigned bits_for(unsigned count) {
  unsigned bits = 0;
  while (1u << bits < count) ++bits;
  return bits;
}

CpuidResult signature() {
  return {0, word_of(kCpuVendor, 12, 0), word_of(kCpuVendor, 12, 8), word_of(kCpuVendor, 12, 4)};
}

// Leaf 4, "deterministic cache parameters" (SDM vol. 2, CPUID): 32 KiB, 32 KiB, 512 KiB, and a shared 2 MiB.
CpuidResult cache_parameters(uint32_t subleaf, unsigned cpus) {
  struct Cache {
    uint32_t type, level, ways, sets;
    bool shared;
  };
  static constexpr Cache kCaches[] = {
      {1, 1, 8, 64, false}, {2, 1, 8, 64, false}, {3, 2, 8, 1024, false}, {3, 3, 16, 2048, true}};
  if (subleaf >= 4) return {};
  const Cache& cache = kCaches[subleaf];
  const uint32_t sharing = cache.shared ? cpus - 1 : 0;
  return {cache.type | cache.level << 5 | 1u << 8 | sharing << 14 | (cpus - 1) << 26,
          (kCacheLine - 1) | (cache.ways - 1) << 22, cache.sets - 1, 0};
}

// Leaf 0x0B: one level of cores, one thread each.
CpuidResult topology(uint32_t subleaf, unsigned cpus) {
  const uint32_t id = apic_id();
  if (subleaf == 0) return {0, 1, 1u << 8, id};
  if (subleaf == 1) return {bits_for(cpus), cpus, 1 | 2u << 8, id};
  return {0, 0, subleaf, id};
}

CpuidResult brand(uint32_t part) {
  const size_t at = part * 16;
  const auto word = [at](size_t i) { return word_of(kCpuBrand, sizeof kCpuBrand, at + i); };
  return {word(0), word(4), word(8), word(12)};
}

}  // namespace

CpuidResult cpuid(uint32_t leaf, uint32_t subleaf) {
  switch (leaf) {
    case 0: {
      CpuidResult result = signature();
      result.eax = kLastBasicLeaf;
      return result;
    }
    case 1:
      return {kCpuStepping | (kCpuModel & 15) << 4 | kCpuFamily << 8 | kCpuModel >> 4 << 16,
              kCacheLine / 8 << 8 | (allowed_cpus() & 0xff) << 16 | apic_id() << 24, feature_bits<1, kEcx>(),
              cpuid_1_edx()};
    case 2:  // descriptors: caches are told by leaf 4
      return {0x00feff01, 0, 0, 0};
    case 4:
      return cache_parameters(subleaf, allowed_cpus());
    case 7:
      return subleaf == 0 ? CpuidResult{0, feature_bits<7, kEbx>(), feature_bits<7, kEcx>(), feature_bits<7, kEdx>()}
                          : CpuidResult{};
    case 0xb:
      return topology(subleaf, allowed_cpus());
    case 0x15:  // TSC frequency = ecx * ebx / eax
      return {1, 1u << config.host.tsc_shift, counter_frequency(), 0};
    case 0x16:
      return {static_cast<uint32_t>(tsc_frequency() / 1000000), static_cast<uint32_t>(tsc_frequency() / 1000000), 100,
              0};
    case kHypervisor: {
      // Registers of the hypervisor signature run EBX, ECX, EDX.
      return {kHypervisor, word_of(kHypervisorSignature, 12, 0), word_of(kHypervisorSignature, 12, 4),
              word_of(kHypervisorSignature, 12, 8)};
    }
    case kExtended: {
      CpuidResult result = signature();
      result.eax = kLastExtendedLeaf;
      return result;
    }
    case kExtended + 1:
      return {0, 0, feature_bits<kExtended + 1, kEcx>(), feature_bits<kExtended + 1, kEdx>()};
    case kExtended + 2:
    case kExtended + 3:
    case kExtended + 4:
      return brand(leaf - kExtended - 2);
    case kExtended + 6:
      return {0, 0, 512u << 16 | 6u << 12 | kCacheLine, 0};
    case kExtended + 7:
      return {0, 0, 0, feature_bits<kExtended + 7, kEdx>()};
    case kExtended + 8:
      return {kAddressBits | kLinearBits << 8, 0, allowed_cpus() - 1, 0};
    default:
      return {};
  }
}

unsigned allowed_cpus() { return std::max(count_cpus(allowed_set(), CPU_SETSIZE), 1u); }

uint32_t cpuid_1_edx() { return feature_bits<1, kEdx>() | (allowed_cpus() > 1 ? 1u << 28 : 0); }

uint32_t counter_frequency() {
  uint64_t frequency;
  asm volatile("mrs %0, cntfrq_el0" : "=r"(frequency));
  return static_cast<uint32_t>(frequency);  // the upper half is reserved
}

uint64_t tsc_frequency() { return uint64_t{counter_frequency()} << config.host.tsc_shift; }

uint64_t read_tsc() {
  uint64_t count;
  asm volatile("isb\n mrs %0, cntvct_el0" : "=r"(count)::"memory");
  return count << config.host.tsc_shift;
}

}  // namespace phybin::runtime

// ---- State helpers
// --------------------------------------------------------------------------------------------------

namespace {

enum Gpr : unsigned { kRax, kRcx, kRdx, kRbx };

}  // namespace

extern "C" {

void phybin_helper_cpuid(phybin::GuestState* state, uint64_t, uint64_t);
void phybin_helper_rdtscp(phybin::GuestState* state, uint64_t, uint64_t);
void phybin_helper_xgetbv(phybin::GuestState* state, uint64_t, uint64_t);

void phybin_helper_cpuid(phybin::GuestState* state, uint64_t, uint64_t) {
  const auto result =
      phybin::runtime::cpuid(static_cast<uint32_t>(state->gpr[kRax]), static_cast<uint32_t>(state->gpr[kRcx]));
  state->gpr[kRax] = result.eax;
  state->gpr[kRbx] = result.ebx;
  state->gpr[kRcx] = result.ecx;
  state->gpr[kRdx] = result.edx;
}

// TSC_AUX as Linux sets it: node in bits 12 and up, CPU below.
void phybin_helper_rdtscp(phybin::GuestState* state, uint64_t, uint64_t) {
  unsigned cpu = 0, node = 0;
  getcpu(&cpu, &node);
  const uint64_t count = phybin::runtime::read_tsc();
  state->gpr[kRax] = static_cast<uint32_t>(count);
  state->gpr[kRdx] = count >> 32;
  state->gpr[kRcx] = node << 12 | cpu;
}

// Without OSXSAVE in CPUID the instruction is undefined.
void phybin_helper_xgetbv(phybin::GuestState* state, uint64_t, uint64_t) {
  phybin::runtime::raise_synchronous(*state, SIGILL, ILL_ILLOPN, state->rip);
}

}  // extern "C"
