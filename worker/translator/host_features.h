// What the host CPU offers beyond ARMv8.0, and the options that change code. Both are inputs of a translation and
// part of an image's identity; nothing in the translator asks the machine it runs on.
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

  bool operator==(const HostFeatures&) const = default;
};

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
