// Whether the file that an image was made of is still what it was.
#pragma once

#include <cstdint>
#include <string>

namespace phybin::client {

enum class ModuleState { kSame, kChanged, kGone, kUnknown };

// `digest`: SHA-256 of the file as it was, in hexadecimal; `since`: when it was read, in seconds since the epoch.
// kUnknown: it cannot be seen from here.
ModuleState module_state(const std::string& path, const std::string& digest, uint64_t since);

}  // namespace phybin::client
