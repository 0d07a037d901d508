// See host_access.h. Encodings: Arm ARM C4.1, "Loads and Stores".
//
// Ordered loads and stores become plain ones between barriers. A read-modify-write stays atomic while it lies within
// 16 bytes (LDAXP, STLXP); across that border a lock keeps threads of this process apart that do the same, which is
// less than x86 promises and what is possible.
#include "worker/runtime/host_access.h"

#include <atomic>
#include <cstring>

#include "worker/runtime/thread.h"

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
constexpr uint32_t kOrderedMask = 0x3fbffc00, kOrdered = 0x089ffc00;                // LDAR, STLR, any size
constexpr uint32_t kUnscaledMask = 0x3f200c00, kUnscaled = 0x19000000;              // LDAPUR, LDAPURS, STLUR
constexpr uint32_t kLoadExclusiveMask = 0x3ffffc00, kLoadExclusive = 0x085ffc00;    // LDAXR
constexpr uint32_t kStoreExclusiveMask = 0x3fe0fc00, kStoreExclusive = 0x0800fc00;  // STLXR
constexpr uint32_t kCasMask = 0x3fa07c00, kCas = 0x08a07c00;
constexpr uint32_t kRmwMask = 0x3f200c00, kRmw = 0x38200000;  // LDADD ... SWP

// What LDAXR has read unaligned, for the STLXR that follows it.
struct Exclusive {
  uint64_t address = 0, value = 0;
};
thread_local Exclusive exclusive;

std::atomic_flag across_lock;

// The operand fields that most forms share.
struct Fields {
  explicit Fields(uint32_t word)
      : size(size_t{1} << (word >> 30)), value(word & 31), base(word >> 5 & 31), status(word >> 16 & 31) {}
  size_t size;
  unsigned value, base, status;
};

struct Machine {
  explicit Machine(ucontext_t& context) : registers(context.uc_mcontext) {}
  uint64_t get(unsigned r) const { return r == 31 ? 0 : registers.regs[r]; }
  uint64_t base(unsigned r) const { return r == 31 ? registers.sp : registers.regs[r]; }
  void set(unsigned r, uint64_t value) {
    if (r != 31) registers.regs[r] = value;
  }
  mcontext_t& registers;
};

uint64_t truncated(uint64_t value, size_t size) {
  return size == 8 ? value : value & ((uint64_t{1} << 8 * size) - 1);
}

bool load(uint64_t address, size_t size, uint64_t& value) {
  value = 0;
  return phybin_guarded_copy(&value, reinterpret_cast<const void*>(address), size) == 0;
}

bool store(uint64_t address, size_t size, uint64_t value) {
  return phybin_guarded_copy(reinterpret_cast<void*>(address), &value, size) == 0;
}

// Replaces what change(old) says, atomically as far as possible. `change` returns false to leave memory alone.
template <typename Change>
bool update(uint64_t address, size_t size, uint64_t& old, Change change) {
  const uint64_t block = address & ~uint64_t{15};
  const size_t at = address - block;
  if (at + size > 16) {
    while (across_lock.test_and_set(std::memory_order_acquire)) {
    }
    uint64_t fresh;
    bool good = load(address, size, old);
    if (good && change(old, fresh)) good = store(address, size, fresh);
    across_lock.clear(std::memory_order_release);
    return good;
  }
  for (;;) {
    uint64_t before[2], after[2];
    if (phybin_guarded_copy(before, reinterpret_cast<const void*>(block), 16) != 0) return false;
    old = 0;
    memcpy(&old, reinterpret_cast<char*>(before) + at, size);
    memcpy(after, before, 16);
    uint64_t fresh;
    if (!change(old, fresh)) return true;
    memcpy(reinterpret_cast<char*>(after) + at, &fresh, size);
    const uint64_t result =
        phybin_guarded_cas16(reinterpret_cast<void*>(block), before[0], before[1], after[0], after[1]);
    if (result != 2) return result == 0;
  }
}

bool ordered_access(Machine machine, const Fields& f, uint64_t address, bool is_load) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  uint64_t value = machine.get(f.value);
  const bool good = is_load ? load(address, f.size, value) : store(address, f.size, value);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (good && is_load) machine.set(f.value, value);
  return good;
}

// LDAPUR and STLUR; opc 2 and 3 are the sign-extending loads.
bool unscaled_access(Machine machine, const Fields& f, uint32_t word) {
  const int64_t offset = static_cast<int64_t>(static_cast<uint64_t>(word) << 43) >> 55;
  const unsigned opc = word >> 22 & 3;
  const uint64_t address = machine.base(f.base) + static_cast<uint64_t>(offset);
  if (!ordered_access(machine, f, address, opc != 0)) return false;
  if (opc >= 2) {
    const unsigned shift = static_cast<unsigned>(64 - 8 * f.size);
    const auto extended = static_cast<uint64_t>(static_cast<int64_t>(machine.get(f.value) << shift) >> shift);
    machine.set(f.value, opc == 3 ? static_cast<uint32_t>(extended) : extended);
  }
  return true;
}

bool store_exclusive(Machine machine, const Fields& f, uint64_t address) {
  const Exclusive expected = exclusive;
  bool stored = false;
  uint64_t old;
  const bool good = update(address, f.size, old, [&](uint64_t present, uint64_t& fresh) {
    fresh = machine.get(f.value);
    return stored = expected.address == address && present == expected.value;
  });
  machine.set(f.status, stored ? 0 : 1);
  exclusive = {};
  return good;
}

// The instructions that the translator has between LDAXR and STLXR (emit/atomic.cpp), flags apart. False for others.
bool compute(Machine& machine, uint32_t word) {
  const bool is64 = word >> 31 != 0;
  const unsigned n = word >> 5 & 31, m = word >> 16 & 31, amount = word >> 10 & 63;
  uint64_t result;
  if ((word & 0x3fe00000) == 0x0b000000) {  // ADD, SUB (shifted register; LSL)
    const uint64_t operand = machine.get(m) << amount;
    result = (word >> 30 & 1) != 0 ? machine.get(n) - operand : machine.get(n) + operand;
  } else if ((word & 0x3fc00000) == 0x11000000) {  // ADD, SUB (immediate)
    const uint64_t operand = word >> 10 & 0xfff;
    result = (word >> 30 & 1) != 0 ? machine.base(n) - operand : machine.base(n) + operand;
  } else if ((word & 0x1fc00000) == 0x0a000000 && (word >> 29 & 3) != 3) {  // AND, ORR, EOR and inverted (LSL)
    uint64_t operand = machine.get(m) << amount;
    if ((word >> 21 & 1) != 0) operand = ~operand;
    const unsigned opc = word >> 29 & 3;
    result = opc == 0 ? machine.get(n) & operand : opc == 1 ? machine.get(n) | operand : machine.get(n) ^ operand;
  } else if ((word & 0x7f800000) == 0x53000000 && (word >> 16 & 63) == 0) {  // UBFX from bit 0
    result = machine.get(n) & ((uint64_t{2} << amount) - 1);
  } else {
    return false;
  }
  machine.set(word & 31, is64 ? result : static_cast<uint32_t>(result));
  return true;
}

// Carries out a loop of LDAXR and STLXR as a whole from its LDAXR on: without an exclusive load STLXR may fail for
// ever instead of faulting. Ends behind STLXR, or where a branch leaves the loop. `pc` is moved only if all is known.
bool exclusive_loop(Machine machine, const Fields& f, uint64_t address, uint64_t& pc) {
  constexpr unsigned kLongest = 12;
  for (;;) {
    uint64_t old;
    if (!load(address, f.size, old)) return false;
    machine.set(f.value, old);
    exclusive = {address, old};
    uint64_t at = pc + 4;
    for (unsigned i = 0;; ++i, at += 4) {
      const uint32_t word = *reinterpret_cast<const uint32_t*>(at);
      const Fields g(word);
      if ((word & kStoreExclusiveMask) == kStoreExclusive) {
        if (!store_exclusive(machine, g, address)) return false;
        if (machine.get(g.status) != 0) break;  // somebody else wrote: again
        pc = at + 4;
        return true;
      }
      if ((word & 0x7e000000) == 0x34000000) {  // CBZ, CBNZ
        uint64_t value = machine.get(word & 31);
        if (word >> 31 == 0) value = static_cast<uint32_t>(value);
        if ((value == 0) != ((word >> 24 & 1) == 0)) continue;
        pc = at + static_cast<uint64_t>(static_cast<int64_t>(static_cast<uint64_t>(word) << 40) >> 45) * 4;
        return true;
      }
      if (i == kLongest || !compute(machine, word)) {
        pc += 4;
        return true;
      }
    }
  }
}

bool compare_and_swap(Machine machine, const Fields& f, uint64_t address) {
  const uint64_t expected = truncated(machine.get(f.status), f.size);
  uint64_t old;
  const bool good = update(address, f.size, old, [&](uint64_t present, uint64_t& fresh) {
    fresh = machine.get(f.value);
    return present == expected;
  });
  if (good) machine.set(f.status, old);
  return good;
}

bool read_modify_write(Machine machine, const Fields& f, uint64_t address, uint32_t word) {
  const uint64_t operand = machine.get(f.status);
  uint64_t old;
  const bool good = update(address, f.size, old, [&](uint64_t present, uint64_t& fresh) {
    switch (word >> 12 & 15) {
      case 0:
        fresh = present + operand;
        break;
      case 1:
        fresh = present & ~operand;
        break;
      case 2:
        fresh = present ^ operand;
        break;
      case 3:
        fresh = present | operand;
        break;
      default:
        fresh = operand;
        break;  // SWP
    }
    return true;
  });
  if (good) machine.set(f.value, old);
  return good;
}

}  // namespace

bool is_store_instruction(uint32_t word) {
  if ((word & kLdaprMask) == kLdapr) return false;
  for (const Pattern& pattern : kLoadsAndStores) {
    if ((word & pattern.mask) == pattern.value) return (word & pattern.store_mask) == pattern.store_value;
  }
  return false;
}

bool is_ordered_access(uint32_t word) {
  return (word & kLdaprMask) == kLdapr || (word & kOrderedMask) == kOrdered || (word & kUnscaledMask) == kUnscaled;
}

Completion complete_unaligned_access(ucontext_t& context) {
  const uint32_t word = *reinterpret_cast<const uint32_t*>(context.uc_mcontext.pc);
  Machine machine(context);
  const Fields f(word);
  const uint64_t address = machine.base(f.base);
  bool good;
  if ((word & kLdaprMask) == kLdapr) {
    good = ordered_access(machine, f, address, true);
  } else if ((word & kOrderedMask) == kOrdered) {
    good = ordered_access(machine, f, address, (word >> 22 & 1) != 0);
  } else if ((word & kUnscaledMask) == kUnscaled) {
    good = unscaled_access(machine, f, word);
  } else if ((word & kLoadExclusiveMask) == kLoadExclusive) {
    uint64_t pc = context.uc_mcontext.pc;
    if (!exclusive_loop(machine, f, address, pc)) return Completion::kFaulted;
    context.uc_mcontext.pc = pc;
    return Completion::kDone;
  } else if ((word & kStoreExclusiveMask) == kStoreExclusive) {
    good = store_exclusive(machine, f, address);
  } else if ((word & kCasMask) == kCas) {
    good = compare_and_swap(machine, f, address);
  } else if ((word & kRmwMask) == kRmw) {
    good = read_modify_write(machine, f, address, word);
  } else {
    return Completion::kNotKnown;
  }
  if (!good) return Completion::kFaulted;
  context.uc_mcontext.pc += 4;
  return Completion::kDone;
}

}  // namespace phybin::runtime
