// How far long work has come, on stderr: one line that is rewritten on a terminal, a line every ten seconds
// elsewhere, so that logs show that something happens and do not fill up.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace phybin::client {

class Progress {
 public:
  // `verb` stands in front: "verifying". `bytes`: done and total are bytes, not pieces.
  explicit Progress(std::string verb, bool bytes = false);
  ~Progress();  // clears the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `total` 0: not known.
  void show(uint64_t done, uint64_t total, const std::string& what);

 private:
  std::string verb_;
  bool bytes_, terminal_, shown_ = false;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace phybin::client
