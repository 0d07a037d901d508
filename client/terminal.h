// The terminal that live output is drawn on.
#pragma once

#include <termios.h>

#include <cstddef>

namespace phybin::client {

struct TerminalSize {
  size_t columns = 0, lines = 0;  // 0: not a terminal
};
TerminalSize terminal_size(int fd);

// While it lives, keys arrive one by one and unechoed on stdin, if that is a terminal; the alternate screen is shown
// on stdout. Signals that end the program restore both first.
class LiveScreen {
 public:
  LiveScreen();
  ~LiveScreen();
  LiveScreen(const LiveScreen&) = delete;
  LiveScreen& operator=(const LiveScreen&) = delete;

  // Waits that long. False once the user pressed q or Ctrl-C, or the program is to end.
  bool wait(unsigned milliseconds);
};

}  // namespace phybin::client
