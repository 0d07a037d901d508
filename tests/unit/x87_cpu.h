// What x87 tests compare with: the CPU of the build machine, one instruction at a time, and random states to begin
// with. Only there on x86_64.
#pragma once

#if defined(__x86_64__)

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "worker/runtime/helpers/x87_ops.h"

namespace phybin::runtime::x87 {

inline constexpr uint64_t kSeed = 0x9e3779b97f4a7c15;

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {  // splitmix64
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  uint64_t below(uint64_t bound) { return next() % bound; }

 private:
  uint64_t state_;
};

struct alignas(16) Image {
  uint8_t bytes[112];
};

// An instruction between FRSTOR and FNSAVE. Memory operands are addressed by RSI; EFLAGS go in and out.
class Native {
 public:
  explicit Native(const std::string& instruction);
  ~Native();
  Native(const Native&) = delete;
  Native& operator=(const Native&) = delete;

  uint64_t operator()(Image& image, void* memory, uint64_t flags) const {
    return reinterpret_cast<uint64_t (*)(void*, void*, uint64_t)>(page_)(&image, memory, flags);
  }

 private:
  void* page_;
};

struct StateOptions {
  bool unmasked = false;
  bool all_occupied = false;
};

// Registers of all classes, some of them empty, in any rounding mode; no exception is pending.
X87State random_state(Random& random, const StateOptions& options);

struct Memory {
  uint64_t low = 0;
  uint64_t high = 0;

  bool operator==(const Memory&) const = default;
};

enum class Fill { kNone, kFloat32, kFloat64, kBits };

struct Case {
  std::string name;
  std::string bytes;
  std::function<void(X87State&, Memory&, uint64_t& flags)> helper;
  Fill fill = Fill::kNone;
  bool prefers_free_slot = false;  // pushes
  bool last_bit_may_differ = false;
  // Intel's CPUs and others deliver different results and flags with an unmasked exception; ours are Intel's.
  bool vendors_differ = false;
};

// The CPU's vendor is Intel.
bool on_intel();

// Executes each case `count` times, both ways, from random states of several kinds. Registers, tags, control and
// status word, EFLAGS and memory operand must agree to the last bit.
void run(const std::vector<Case>& cases, unsigned count);

inline constexpr unsigned kCount = 4000;

using Function = uint64_t (*)(X87State*, uint64_t, uint64_t);

inline std::string opcode(unsigned first, unsigned second) {
  return {static_cast<char>(first), static_cast<char>(second)};
}

// An instruction with a memory operand [rsi].
inline std::string memory_opcode(unsigned first, unsigned reg) { return opcode(first, reg << 3 | 6); }

}  // namespace phybin::runtime::x87

#endif
