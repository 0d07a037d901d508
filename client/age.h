// Ages on the command line: "12h", "30d".
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace phybin::client {

inline constexpr char kAgeHelp[] = "allowed: a number with s, m, h, d or w, as 30d";

// Seconds. A number with s, m, h, d or w; seconds without a unit.
std::optional<uint64_t> parse_age(const std::string& text);

}  // namespace phybin::client
