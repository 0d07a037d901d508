// What the administrator may set: the daemon's keys of /etc/phybin.conf. The file is shared with the worker, whose
// keys and sections are skipped here. One table (config.cpp) says name, allowed values, default and meaning of each
// key.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/log.h"

namespace phybin::daemon {

struct Config {
  std::string cache_dir;                  // empty: the place that --system or --user means
  uint64_t cache_size = 4ull << 30;       // bytes of all images
  uint64_t user_cache_size = 1ull << 30;  // bytes of the images that serve one user alone, each user
  unsigned compile_jobs = 1;              // at a time; load_config() sets the default, an eighth of the CPUs
  uint64_t compile_memory = 4ull << 30;   // bytes of address space of a job; 0: no limit
  unsigned compile_time = 600;            // seconds of a job
  uint64_t module_size = 1ull << 30;      // bytes of the largest module that images are made of
  uint64_t profile_size = 4ull << 20;     // entry points remembered of each user
  LogLevel log_level = LogLevel::kInfo;
};

// What the administrator should be told, one line each.
using Messages = std::vector<std::string>;

// The defaults on this machine.
Config default_config();

// Applies the text of a configuration file. A value that is not allowed is reported as "FILE:LINE: KEY: ...", the
// default holds.
void apply_config(std::string_view text, std::string_view file_name, Config& config, Messages& messages);

// Reads the file and applies it to the defaults. That it is missing is reported only if `required`.
Config load_config(const std::string& file_name, bool required, Messages& messages);

// Name, default and meaning of each key, for --help.
std::string config_help();

}  // namespace phybin::daemon
