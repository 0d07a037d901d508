// The random numbers of the differential tests: small, seedable from several parts, the same on every host. Recorded
// results need that of all that is made of them: two are never drawn in one expression that leaves their order open.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace phybin::difftest {

class Random {
 public:
  // Seeds from a list of parts, so that a case depends on (seed, form, variant, state) only and not on what else
  // runs.
  Random(std::initializer_list<uint64_t> parts) {
    for (uint64_t part : parts) state_ = mix(state_ ^ part) + 0x9e3779b97f4a7c15;
  }

  uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15); }
  // 0 to limit - 1
  uint32_t below(uint32_t limit) { return uint32_t((next() >> 32) * limit >> 32); }
  bool one_in(uint32_t n) { return below(n) == 0; }

 private:
  static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  uint64_t state_ = 0;
};

inline uint64_t hash_text(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char c : text) hash = (hash ^ uint8_t(c)) * 0x100000001b3;
  return hash;
}

}  // namespace phybin::difftest
