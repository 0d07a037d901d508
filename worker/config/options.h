// The worker's options: what may be set, from where, and what holds in the end.
//
// One table (options.cpp) says name, values, default and help of each option; command line, PHYBIN_OPTIONS,
// /etc/phybin.conf and --help all read that table, so that they cannot disagree. Nothing here prints or exits: what
// the user should hear is returned as lines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace phybin::config {

enum class SharedCache : uint8_t { kAuto, kOn, kRead, kOff };
enum class MemoryModelChoice : uint8_t { kAuto, kTso, kWeak };

// Where --trace-instruction writes, and what of: a range of guest addresses, or the function of that name.
struct Trace {
  std::string to;  // empty: off; "on": stderr; else a file
  uint64_t start = 0, end = UINT64_MAX;
  std::string symbol;
};

struct Options {
  SharedCache shared_translation_cache = SharedCache::kAuto;
  std::string daemon_socket;     // empty: the system's daemon, or else the user's own
  unsigned daemon_timeout = 20;  // milliseconds
  bool fast_math = false;
  bool no_sse_check = false;
  Trace trace_instruction;
  bool enable_gpu_direct = false;
  MemoryModelChoice memory_model = MemoryModelChoice::kAuto;
  std::string rootfs;                      // empty: none; no slash at the end
  uint64_t jit_cache_size = 256ull << 20;  // bytes
  unsigned prefetch_depth = 4;             // blocks
  bool mem_alias_check = false;
  bool float_emulation_hard = false;
  bool log = false;
  bool stats = false;
  uint64_t heap_size = 4ull << 30;  // bytes (PHYBIN_HEAP_SIZE)

  // Set by a translated parent only, on the command line of a child: the guest's argv[0], and the descriptor that
  // the program is to be read from (-1: its path).
  bool has_argv0 = false;
  std::string argv0;
  int program_fd = -1;
};

// Where an option is set; later ones win.
enum class Source : uint8_t { kFile, kEnvironment, kCommandLine };

// What the user should be told, one line each, without the name of the program.
using Messages = std::vector<std::string>;

// Applies the text of a configuration file: first its global keys, then those of the sections [program:NAME] where
// NAME is `program`. A value that is not allowed is reported as "FILE:LINE: KEY: ..." and the default holds.
void apply_file(std::string_view text, std::string_view file_name, std::string_view program, Options& options,
                Messages& messages);

// Reports every line that is wrong, whatever section it stands in.
void check_file(std::string_view text, std::string_view file_name, Messages& messages);

// Reads the file and applies it. A file that does not exist is fine; one that cannot be read is reported.
void apply_file_at(const char* file_name, std::string_view program, Options& options, Messages& messages);

// Applies the value of PHYBIN_OPTIONS, and of PHYBIN_HEAP_SIZE.
void apply_environment(std::string_view value, Options& options, Messages& messages);
void apply_heap_size(std::string_view value, Options& options, Messages& messages);

struct CommandLine {
  int program_index = 0;  // into argv, of PROGRAM; argc when there is none
  bool help = false;
  bool version = false;
  std::vector<std::string> passed_on;  // the options that hold for translated children too
  std::string error;                   // not empty: say it and exit with status 2
};

// Reads the options that stand before PROGRAM. Nothing is applied when there is an error.
CommandLine apply_command_line(int argc, char* const* argv, Options& options);

// Text of --help.
std::string help_text();

}  // namespace phybin::config
