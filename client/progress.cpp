// See progress.h.
#include "client/progress.h"

#include <unistd.h>

#include <cstdio>

#include "client/format.h"
#include "client/terminal.h"

namespace phybin::client {

using Clock = std::chrono::steady_clock;

Progress::Progress(std::string verb, bool bytes)
    : verb_(std::move(verb)), bytes_(bytes), terminal_(isatty(STDERR_FILENO) == 1), last_(Clock::now()) {}

Progress::~Progress() {
  if (terminal_ && shown_) fputs("\r\033[K", stderr);
}

void Progress::show(uint64_t done, uint64_t total, const std::string& what) {
  const auto now = Clock::now();
  const auto pause = terminal_ ? std::chrono::milliseconds(shown_ ? 100 : 0) : std::chrono::milliseconds(10000);
  if (now - last_ < pause) return;
  last_ = now;
  shown_ = true;
  std::string line = verb_ + " " + (bytes_ ? format_bytes(done) : std::to_string(done));
  if (total != 0) {
    line += " of " + (bytes_ ? format_bytes(total) : std::to_string(total));
    line += " (" + std::to_string(done * 100 / total) + " %)";
  }
  if (!what.empty()) line += ": " + printable(what);
  if (terminal_) {
    const size_t width = terminal_size(STDERR_FILENO).columns;
    if (width > 1 && line.size() >= width) line.resize(width - 1);
    fprintf(stderr, "\r%s\033[K", line.c_str());
  } else {
    fprintf(stderr, "phybinctl: %s\n", line.c_str());
  }
}

}  // namespace phybin::client
