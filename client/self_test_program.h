// The smallest x86_64 program that shows that x86_64 programs run: it writes a line and exits with a status of its
// own.
#pragma once

#include <cstdint>
#include <span>

namespace phybin::client {

inline constexpr char kSelfTestOutput[] = "x86_64 runs\n";
inline constexpr int kSelfTestStatus = 42;

// A static ELF executable.
std::span<const uint8_t> self_test_program();

}  // namespace phybin::client
