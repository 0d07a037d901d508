// See bounded.h. Messages of the child: a letter, and text. The result may be long and comes in parts.
#include "client/bounded.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string_view>

#include "client/connection.h"

namespace phybin::client {
namespace {

constexpr char kTold = 't', kPart = 'p', kEnd = 'e';
constexpr size_t kMaxMessage = 1 << 15;
// phybinctl never has as many.
constexpr int kMaxDescriptors = 256;

void send_message(int channel, char letter, std::string_view text) {
  const std::string message = letter + std::string(text.substr(0, kMaxMessage));
  while (send(channel, message.data(), message.size(), MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) _exit(1);  // the parent is gone
  }
}

// noexcept: what is thrown must not go on in a copy of the parent.
[[noreturn]] void be_child(int channel, const std::function<std::string(const Tell&)>& work) noexcept {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // A child that hangs must not hold what others wait for the end of.
  const int nowhere = open("/dev/null", O_RDWR);
  for (int stream = 0; stream < 3; ++stream) dup2(nowhere, stream);
  for (int descriptor = 3; descriptor < kMaxDescriptors; ++descriptor) {
    if (descriptor != channel) close(descriptor);
  }
  const std::string result = work([&](const std::string& text) { send_message(channel, kTold, text); });
  for (size_t at = 0; at < result.size(); at += kMaxMessage) {
    send_message(channel, kPart, std::string_view(result).substr(at));
  }
  send_message(channel, kEnd, {});
  _exit(0);
}

// The next message; empty: there is none in time, or no more.
std::string receive(int channel, std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd wait{channel, POLLIN, 0};
    const int ready = poll(&wait, 1, std::max(0, static_cast<int>(left.count())));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return {};
    std::string message(kMaxMessage + 1, '\0');
    const ssize_t got = recv(channel, message.data(), message.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    message.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return message;
  }
}

}  // namespace

std::optional<std::string> run_bounded(std::chrono::milliseconds limit,
                                       const std::function<std::string(const Tell&)>& work, const Tell& heard) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return {};
  const Descriptor ours(ends[0]);
  Descriptor theirs(ends[1]);
  const pid_t child = fork();
  if (child < 0) return {};
  if (child == 0) be_child(theirs.get(), work);
  theirs = Descriptor();
  std::string result;
  for (;;) {
    const std::string message = receive(ours.get(), limit);
    const char letter = message.empty() ? '\0' : message[0];
    if (letter == kTold) {
      if (heard) heard(message.substr(1));
    } else if (letter == kPart) {
      result.append(message, 1);
    } else if (letter == kEnd) {
      waitpid(child, nullptr, 0);
      return result;
    } else {
      // It may be where no signal reaches it; then it ends when it can.
      kill(child, SIGKILL);
      waitpid(child, nullptr, WNOHANG);
      return {};
    }
  }
}

}  // namespace phybin::client
