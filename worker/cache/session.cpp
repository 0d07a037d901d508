// See session.h.
#include "worker/cache/session.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "proto/places.h"
#include "proto/socket.h"
#include "worker/cache/offers.h"
#include "worker/cache/profile.h"
#include "worker/process/descriptors.h"
#include "worker/process/program.h"

namespace phybin::cache {
namespace {

using proto::MessageKind;

constexpr unsigned kMostImages = proto::kMaxDescriptors;
// Of an answer or of Images; larger messages cannot be right.
constexpr size_t kLongest = sizeof(proto::Welcome) + kMostImages * sizeof(proto::ImageOffer);

int descriptor() { return process::own_descriptor(process::OwnDescriptor::kDaemon); }

// A message with what came along, which is closed at the end if nobody has taken it.
struct Message {
  alignas(8) uint8_t bytes[kLongest];
  proto::Received received;
  int descriptors[proto::kMaxDescriptors];

  Message() = default;
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;
  ~Message() {
    for (unsigned i = 0; i < received.descriptors; ++i) {
      if (descriptors[i] >= 0) close(descriptors[i]);
    }
  }

  // Receives what is there, without waiting: 0 or -errno.
  int receive(int socket) {
    const int result = proto::receive_message(socket, bytes, sizeof bytes, descriptors, MSG_DONTWAIT, received);
    return result == 0 && received.bytes == 0 ? -ECONNRESET : result;
  }

  // Whether it is a `kind` with offers, each with its image behind the first `other` descriptors.
  template <typename Body>
  bool holds_offers(MessageKind kind, unsigned other) const {
    const auto& body = *reinterpret_cast<const Body*>(bytes);
    return received.bytes >= sizeof body && body.header.kind == kind &&
           body.header.version == proto::kProtocolVersion && body.header.bytes == received.bytes &&
           body.offers <= kMostImages && received.bytes == sizeof body + body.offers * sizeof(proto::ImageOffer) &&
           received.descriptors == other + body.offers;
  }

  template <typename Body>
  void take_offers(unsigned other) {
    const auto* offers = reinterpret_cast<const proto::ImageOffer*>(bytes + sizeof(Body));
    const uint32_t count = reinterpret_cast<const Body*>(bytes)->offers;
    for (uint32_t i = 0; i < count; ++i) {
      add_offer(offers[i], descriptors[other + i]);
      descriptors[other + i] = -1;
    }
  }
};

// A socket that is connected to `path`, or -1.
int connect_to(const char* path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const size_t length = strlen(path);
  if (length >= sizeof address.sun_path) return -1;
  memcpy(address.sun_path, path, length);
  const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) return -1;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length + 1);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), size) == 0) return socket;
  close(socket);
  return -1;
}

// The system's daemon is root's, or of the user to whom root has given the folder of its socket; looking its name up
// would take longer than all the rest.
bool is_system_user(uid_t user) {
  if (user == 0) return true;
  char folder[sizeof proto::kSystemSocket];
  strcpy(folder, proto::kSystemSocket);
  *strrchr(folder, '/') = '\0';
  struct stat status;
  return lstat(folder, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == user;
}

bool is_trusted(int socket, bool secure) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || size != sizeof peer) return false;
  return (!secure && peer.uid == geteuid()) || is_system_user(peer.uid);
}

int connect_to_daemon(const Address& address) {
  if (!address.socket.empty()) return connect_to(address.socket.c_str());
  const int socket = connect_to(proto::kSystemSocket);
  if (socket >= 0 || address.secure || address.runtime_folder == nullptr || address.runtime_folder[0] != '/')
    return socket;
  return connect_to((std::string(address.runtime_folder) + '/' + proto::kUserSocket).c_str());
}

bool wait_for_message(int socket, unsigned timeout) {
  pollfd wanted{socket, POLLIN, 0};
  int result;
  do {
    result = poll(&wanted, 1, static_cast<int>(timeout));
  } while (result < 0 && errno == EINTR);
  return result == 1;
}

bool say_hello(int socket, const proto::Hello& hello, int program, unsigned timeout) {
  if (proto::send_message(socket, &hello, sizeof hello, &program, program >= 0 ? 1 : 0, MSG_DONTWAIT) != 0)
    return false;
  if (!wait_for_message(socket, timeout)) {
    process::log_line("the daemon does not answer within %u ms: private translations only", timeout);
    return false;
  }
  Message message;
  if (message.receive(socket) != 0 ||
      !message.holds_offers<proto::Welcome>(MessageKind::kWelcome, proto::kWelcomePages)) {
    process::log_line("the daemon's answer is not one: private translations only");
    return false;
  }
  const auto& welcome = *reinterpret_cast<const proto::Welcome*>(message.bytes);
  if (!map_pages(message.descriptors[0], welcome.policy_index, message.descriptors[1])) {
    process::log_line("the daemon's pages are not as they should be: private translations only");
    return false;
  }
  message.take_offers<proto::Welcome>(proto::kWelcomePages);
  return true;
}

}  // namespace

bool connect(const Address& address, const proto::Hello& hello, int program, unsigned timeout) {
  const int socket = connect_to_daemon(address);
  if (socket < 0) return false;
  if (!is_trusted(socket, address.secure)) {
    process::log_line("the daemon runs as another user: private translations only");
  } else if (say_hello(socket, hello, program, timeout)) {
    process::keep_descriptor(process::OwnDescriptor::kDaemon, socket);
    return true;
  }
  close(socket);
  return false;
}

bool is_connected() { return descriptor() >= 0; }

void disconnect() { process::close_descriptor(process::OwnDescriptor::kDaemon); }

bool read_offers() {
  // Each message costs the daemon more than it costs us; but nobody shall keep us busy.
  constexpr unsigned kMostMessages = 16;
  bool any = false;
  for (unsigned i = 0; i < kMostMessages && is_connected(); ++i) {
    Message message;
    const int result = message.receive(descriptor());
    if (result == -EAGAIN) break;
    if (result != 0 || !message.holds_offers<proto::Images>(MessageKind::kImages, 0)) {
      if (result != -ECONNRESET)
        process::log_line("a message of the daemon makes no sense: the connection is closed");
      disconnect();
      break;
    }
    message.take_offers<proto::Images>(0);
    any = true;
  }
  return any;
}

bool announce_module(uint32_t module, const proto::FileKey& file, int fd) {
  if (!is_connected()) return false;
  proto::ModuleMet message{};
  message.header = {MessageKind::kModule, 0, proto::kProtocolVersion, sizeof message};
  message.module = module;
  message.file = file;
  const int result = proto::send_message(descriptor(), &message, sizeof message, &fd, fd >= 0 ? 1 : 0, MSG_DONTWAIT);
  if (result == 0) return true;
  if (result != -EAGAIN && result != -ENOBUFS && result != -ETOOMANYREFS) disconnect();
  return false;
}

}  // namespace phybin::cache
