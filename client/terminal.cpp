// See terminal.h.
#include "client/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <initializer_list>

namespace phybin::client {
namespace {

// Global because a signal handler sets it.
volatile sig_atomic_t ended = 0;
termios saved;
bool keys_saved = false;

void on_signal(int) { ended = 1; }

}  // namespace

TerminalSize terminal_size(int fd) {
  winsize size{};
  if (isatty(fd) != 1) return {};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return {80, 24};
  return {size.ws_col, size.ws_row};
}

LiveScreen::LiveScreen() {
  struct sigaction action {};
  action.sa_handler = on_signal;  // without SA_RESTART: poll returns
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
  keys_saved = tcgetattr(STDIN_FILENO, &saved) == 0;
  if (keys_saved) {
    termios keys = saved;
    keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &keys);
  }
  fputs("\033[?1049h\033[?25l", stdout);
}

LiveScreen::~LiveScreen() {
  fputs("\033[?25h\033[?1049l", stdout);
  fflush(stdout);
  if (keys_saved) tcsetattr(STDIN_FILENO, TCSANOW, &saved);
}

bool LiveScreen::wait(unsigned milliseconds) {
  if (ended != 0) return false;
  // Without a keyboard poll only waits.
  pollfd keys{keys_saved ? STDIN_FILENO : -1, POLLIN, 0};
  if (poll(&keys, 1, static_cast<int>(milliseconds)) > 0) {
    char key = 0;
    if (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q') return false;
  }
  return ended == 0;
}

}  // namespace phybin::client
