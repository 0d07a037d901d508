// The processor as host and as guest. See cpu.h.
#include "worker/process/cpu.h"

#include <sched.h>
#include <sys/auxv.h>

#include <cstdio>

#include "worker/runtime/cpuid.h"

namespace phybin::process {
namespace {

// <asm/hwcap.h> of ARM64; spelled out because older headers lack the newer ones.
constexpr unsigned long kAes = 1ul << 3, kPmull = 1ul << 4, kSha1 = 1ul << 5, kSha2 = 1ul << 6, kCrc32 = 1ul << 7,
                        kAtomics = 1ul << 8, kLrcpc = 1ul << 15, kUscat = 1ul << 25, kIlrcpc = 1ul << 26,
                        kFlagM = 1ul << 27;
constexpr unsigned long kFlagM2 = 1ul << 7, kFrint = 1ul << 8;  // HWCAP2

}  // namespace

HostFeatures detect_host_features() {
  const unsigned long caps = getauxval(AT_HWCAP), caps2 = getauxval(AT_HWCAP2);
  HostFeatures features;
  features.crc32 = caps & kCrc32;
  features.aes = caps & kAes;
  features.pmull = caps & kPmull;
  features.sha1 = caps & kSha1;
  features.sha2 = caps & kSha2;
  features.lse = caps & kAtomics;
  features.lrcpc = caps & kLrcpc;
  features.lrcpc2 = caps & kIlrcpc;
  features.lse2 = caps & kUscat;
  features.flagm = caps & kFlagM;
  features.flagm2 = caps2 & kFlagM2;
  features.frintts = caps2 & kFrint;
  features.tsc_shift = tsc_shift_for(runtime::counter_frequency());
  return features;
}

std::string cpuinfo_text() {
  std::string flags;
  for (unsigned i = 0; i < runtime::kCpuFeatureCount; ++i) {
    if (!runtime::is_announced(runtime::kCpuFeatures[i])) continue;
    if (i) flags += ' ';
    flags += runtime::kCpuFeatures[i].name;
  }
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) CPU_SET(0, &set);
  const unsigned count = runtime::allowed_cpus();
  const double megahertz = static_cast<double>(runtime::tsc_frequency()) / 1e6;
  std::string text;
  unsigned id = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    char entry[1024];
    int length =
        snprintf(entry, sizeof entry,
                 "processor\t: %d\nvendor_id\t: %s\ncpu family\t: %u\nmodel\t\t: %u\nmodel name\t: %s\n"
                 "stepping\t: %u\nmicrocode\t: 0x1\ncpu MHz\t\t: %.3f\ncache size\t: 1024 KB\n"
                 "physical id\t: 0\nsiblings\t: %u\ncore id\t\t: %u\ncpu cores\t: %u\napicid\t\t: %u\n"
                 "initial apicid\t: %u\nfpu\t\t: yes\nfpu_exception\t: yes\ncpuid level\t: %u\nwp\t\t: yes\n",
                 cpu, runtime::kCpuVendor, runtime::kCpuFamily, runtime::kCpuModel, runtime::kCpuBrand,
                 runtime::kCpuStepping, megahertz, count, id, count, id, id, runtime::cpuid(0, 0).eax);
    text.append(entry, static_cast<size_t>(length));
    text += "flags\t\t: " + flags + "\nbugs\t\t:\n";
    length = snprintf(entry, sizeof entry,
                      "bogomips\t: %.2f\nclflush size\t: %u\ncache_alignment\t: %u\n"
                      "address sizes\t: 48 bits physical, 48 bits virtual\npower management:\n\n",
                      2 * megahertz, runtime::kCacheLine, runtime::kCacheLine);
    text.append(entry, static_cast<size_t>(length));
    ++id;
  }
  return text;
}

}  // namespace phybin::process
