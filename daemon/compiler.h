// How the compiler is called: the worker program itself, with a command of its own (worker/compile).
#pragma once

#include <string>
#include <vector>

#include "daemon/store.h"

namespace phybin::daemon {

// What it is given and where: descriptors of the child. The image is its standard output.
inline constexpr int kModuleFile = 3, kEntriesFile = 4;

// The command that makes the image; empty if the key asks for what no compiler knows.
std::vector<std::string> compile_command(const std::string& compiler, const ImageKey& key);
// The command that prints the translator build, in hexadecimal.
std::vector<std::string> build_command(const std::string& compiler);
// What stands in the file of entry points.
std::string entries_text(const std::vector<uint32_t>& offsets);
// What its environment is.
std::vector<std::string> compile_environment();

}  // namespace phybin::daemon
