// Sizes of accesses: the IR counts bits, A64's encodings count powers of two of bytes.
#pragma once

#include <cstdint>

namespace phybin::emit {

// log2 of the bytes in `bits`: 8, 16, 32, 64 or 128.
constexpr uint8_t size_log2(unsigned bits) { return static_cast<uint8_t>(__builtin_ctz(bits) - 3); }

}  // namespace phybin::emit
