// See host_access.h. Encodings: Arm ARM C4.1, "Loads and Stores".
#include "worker/runtime/host_access.h"

#include <atomic>
#include <cstring>

namespace phybin::runtime {

namespace {

struct Pattern {
  uint32_t mask, value;
  uint32_t store_mask, store_value;  // a store if these bits match
};

constexpr Pattern kLoadsAndStores[] = {
    {0x3fa07c00, 0x08a07c00, 0, 0},         // CAS
    {0xbfa07c00, 0x08207c00, 0, 0},         // CASP
    {0x3f000000, 0x08000000, 1u << 22, 0},  // exclusive and ordered
    {0x3f200c00, 0x19000000, 3u << 22, 0},  // LDAPUR, STLUR
    {0x3b200c00, 0x38200000, 0, 0},         // LSE atomics; LDAPR is excluded below
    {0x3a000000, 0x28000000, 1u << 22, 0},  // pairs
    {0x3e000000, 0x3c000000, 1u << 22, 0},  // SIMD and floating point, one register
    {0x3a000000, 0x38000000, 3u << 22, 0},  // one general register
    {0xbe000000, 0x0c000000, 1u << 22, 0},  // SIMD structures
};

constexpr uint32_t kLdaprMask = 0x3ffffc00, kLdapr = 0x38bfc000;
constexpr uint32_t kOrderedMask = 0x3fbffc00, kOrdered = 0x089ffc00;  // LDAR, STLR, any size

}  // namespace

bool is_store_instruction(uint32_t word) {
  if ((word & kLdaprMask) == kLdapr) return false;
  for (const Pattern& pattern : kLoadsAndStores) {
    if ((word & pattern.mask) == pattern.value) return (word & pattern.store_mask) == pattern.store_value;
  }
  return false;
}

bool complete_ordered_access(ucontext_t& context) {
  auto& machine = context.uc_mcontext;
  const uint32_t word = *reinterpret_cast<const uint32_t*>(machine.pc);
  const bool ldapr = (word & kLdaprMask) == kLdapr;
  if (!ldapr && (word & kOrderedMask) != kOrdered) return false;
  const size_t size = size_t{1} << (word >> 30);
  const bool load = ldapr || (word >> 22 & 1) != 0;
  const unsigned base = word >> 5 & 31, value = word & 31;
  void* address = reinterpret_cast<void*>(base == 31 ? machine.sp : machine.regs[base]);
  uint64_t data = 0;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (load) {
    memcpy(&data, address, size);
    if (value != 31) machine.regs[value] = data;
  } else {
    if (value != 31) data = machine.regs[value];
    memcpy(address, &data, size);
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
  machine.pc += 4;
  return true;
}

}  // namespace phybin::runtime
