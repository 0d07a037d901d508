// See connection.h.
#include "client/connection.h"

#include <pwd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "proto/places.h"
#include "proto/socket.h"

namespace phybin::client {
namespace {

constexpr int kPatienceSeconds = 30;

// 0 or errno.
int connect_to(const std::string& path, Descriptor& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return ENAMETOOLONG;
  memcpy(address.sun_path, path.data(), path.size());
  Descriptor made(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!made) return errno;
  const timeval patience{static_cast<time_t>(kPatienceSeconds), 0};
  setsockopt(made.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(made.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (connect(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return errno;
  socket = std::move(made);
  return 0;
}

bool trusted_peer(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  if (peer.uid == 0 || peer.uid == geteuid()) return true;
  const passwd* user = getpwnam(proto::kDaemonUser);
  return user != nullptr && user->pw_uid == peer.uid;
}

std::string reason(int error) {
  if (error == ENOENT) return "it does not exist; is phybind running?";
  if (error == ECONNREFUSED) return "nobody listens there; is phybind running?";
  return strerror(error);
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) close(fd_);
    fd_ = other.release();
  }
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

int Descriptor::release() { return std::exchange(fd_, -1); }

int Connection::open(const Arguments& arguments, std::string& error) {
  std::vector<std::string> paths;
  const bool named = arguments.has("--socket");
  if (named) {
    paths.push_back(arguments.get("--socket"));
  } else {
    paths.emplace_back(proto::kSystemSocket);
    const char* runtime = getenv("XDG_RUNTIME_DIR");
    if (runtime != nullptr && runtime[0] == '/') paths.push_back(std::string(runtime) + "/" + proto::kUserSocket);
  }
  error.clear();
  for (const std::string& path : paths) {
    const int code = connect_to(path, socket_);
    if (code != 0) {
      if (!error.empty()) error += "; ";
      error += path + ": " + reason(code);
      continue;
    }
    if (!named && !trusted_peer(socket_.get())) {
      socket_ = Descriptor();
      error = path + ": another user listens there; name it with --socket if that is intended";
      return kNotReachable;
    }
    path_ = path;
    return kSuccess;
  }
  return kNotReachable;
}

void Connection::set_patience(double seconds) {
  timeval patience{static_cast<time_t>(seconds), 0};
  patience.tv_usec = static_cast<suseconds_t>((seconds - static_cast<double>(patience.tv_sec)) * 1e6);
  setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

Answer Connection::ask(const Json& request, const std::vector<int>& descriptors, const ProgressFunction& progress) {
  Answer answer;
  const auto fail = [&](int status, std::string text) {
    answer.status = status;
    answer.error = std::move(text);
    return std::move(answer);
  };
  const std::string text = request.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > proto::kMaxMessageBytes) return fail(kFailure, "the request is longer than 64 KiB");
  const int sent = proto::send_message(socket_.get(), text.data(), text.size(), descriptors.data(),
                                       static_cast<unsigned>(descriptors.size()), 0);
  if (sent != 0) return fail(kNotReachable, path_ + ": " + strerror(-sent));
  std::vector<char> buffer(proto::kMaxMessageBytes);
  for (;;) {
    int received_descriptors[proto::kMaxDescriptors];
    proto::Received received;
    const int code =
        proto::receive_message(socket_.get(), buffer.data(), buffer.size(), received_descriptors, 0, received);
    if (code == -EAGAIN) {
      answer.late = true;
      return fail(kNotReachable, path_ + ": no answer in time");
    }
    if (code != 0) return fail(kNotReachable, path_ + ": " + strerror(-code));
    for (unsigned i = 0; i < received.descriptors; ++i) answer.descriptors.emplace_back(received_descriptors[i]);
    if (received.bytes == 0) return fail(kNotReachable, path_ + ": the daemon closed the connection");
    Json message = Json::parse(buffer.data(), buffer.data() + received.bytes, nullptr, false);
    if (!message.is_object()) return fail(kFailure, path_ + ": what it answers is not from phybind");
    if (const auto found = message.find("progress"); found != message.end()) {
      if (progress) progress(*found);
      continue;
    }
    const bool more = message.value("more", Json(false)) == true;
    message.erase("more");
    for (auto& [name, value] : message.items()) {
      Json& place = answer.body[name];
      if (place.is_array() && value.is_array()) {
        place.insert(place.end(), value.begin(), value.end());
      } else {
        place = std::move(value);
      }
    }
    if (more) continue;
    if (answer.body.value("ok", Json(false)) == true) return answer;
    const Json error = answer.body.value("error", Json("the daemon refused and did not say why"));
    return fail(kFailure, error.is_string() ? error.get<std::string>() : error.dump());
  }
}

Answer ask_once(const Arguments& arguments, const Json& request, const ProgressFunction& progress) {
  Connection connection;
  Answer answer;
  answer.status = connection.open(arguments, answer.error);
  if (answer.status == kSuccess) answer = connection.ask(request, {}, progress);
  if (answer.status != kSuccess) failure(answer.error);
  return answer;
}

}  // namespace phybin::client
