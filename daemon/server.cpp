// See server.h.
#include "daemon/server.h"

#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "daemon/daemon.h"
#include "daemon/files.h"
#include "daemon/log.h"
#include "proto/places.h"

namespace phybin::daemon {
namespace {

using namespace std::chrono_literals;

// A machine of 128 cores under Slurm has some thousand processes; a user who opens more than his share is refused.
constexpr size_t kMaxConnections = 32768, kMaxOfUser = 8192;
constexpr int kBacklog = 1024;
// Of a user: the part of the event thread's time, and what he can save up.
constexpr double kPartOfTime = 0.4, kSavedSeconds = 0.4;

bool is_member(int socket, gid_t primary, gid_t group) {
  if (primary == group) return true;
  std::vector<gid_t> groups(64);
  socklen_t bytes = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
  int result = getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes);
  if (result != 0 && errno == ERANGE) {
    groups.resize(bytes / sizeof(gid_t));
    result = getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes);
  }
  if (result != 0) return false;
  groups.resize(bytes / sizeof(gid_t));
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

bool peer_of(int socket, Peer& peer) {
  ucred credentials{};
  socklen_t bytes = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) != 0) return false;
  peer = {credentials.pid, credentials.uid, credentials.gid, false};
  peer.privileged = peer.uid == 0 || peer.uid == geteuid();
  if (!peer.privileged) {
    static const group* const steering = getgrnam(proto::kDaemonGroup);
    static const gid_t id = steering != nullptr ? steering->gr_gid : 0;
    peer.privileged = steering != nullptr && is_member(socket, peer.gid, id);
  }
  return true;
}

// Whether somebody answers at that address.
bool is_alive(const sockaddr_un& address) {
  const int probe = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const bool refused =
      connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 && errno == ECONNREFUSED;
  close(probe);
  return !refused;
}

}  // namespace

Server::Server(Daemon& daemon) : daemon_(daemon), listener_(daemon.io), pause_(daemon.io) {}

Server::~Server() { stop_accepting(); }

std::string Server::open() {
  const int passed = sd_listen_fds(1);
  if (passed > 1) return "systemd passed " + std::to_string(passed) + " sockets, one was expected";
  if (passed == 1) {
    if (sd_is_socket_unix(SD_LISTEN_FDS_START, SOCK_SEQPACKET, 1, nullptr, 0) <= 0) {
      return "what systemd passed is not a listening SOCK_SEQPACKET socket";
    }
    listener_.assign(SD_LISTEN_FDS_START);
    return {};
  }
  const std::string& path = daemon_.options.socket;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return path + ": the path of the socket is too long";
  memcpy(address.sun_path, path.data(), path.size());
  if (std::string problem = make_directories(path.substr(0, path.rfind('/')), daemon_.options.system ? 0755 : 0700);
      !problem.empty()) {
    return problem;
  }
  Descriptor listening(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listening) return std::string("socket: ") + strerror(errno);
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  // Nobody can connect between bind() and chmod() who may not in the end.
  const mode_t mask = umask(0177);
  int result = bind(listening.get(), generic, sizeof address);
  if (result != 0 && errno == EADDRINUSE) {
    struct stat status;
    if (lstat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) {
      umask(mask);
      return path + ": is there already and is no socket";
    }
    if (is_alive(address)) {
      umask(mask);
      return path + ": another daemon listens here";
    }
    unlink(path.c_str());
    result = bind(listening.get(), generic, sizeof address);
  }
  const int error = errno;
  umask(mask);
  if (result != 0) return path + ": " + strerror(error);
  bound_ = true;
  if (listen(listening.get(), kBacklog) != 0) return path + ": " + strerror(errno);
  if (daemon_.options.system && chmod(path.c_str(), 0666) != 0) return path + ": " + strerror(errno);
  listener_.assign(listening.release());
  return {};
}

void Server::start() { accept(); }

void Server::accept() {
  listener_.async_wait(boost::asio::posix::stream_descriptor::wait_read, [this](const auto& error) {
    if (error) return;
    const int socket = accept4(listener_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket >= 0) {
      accept_one(socket);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      log(LogLevel::kWarning, std::string("a connection has to wait: ") + strerror(errno));
      pause_.expires_after(200ms);
      pause_.async_wait([this](const auto& stopped) {
        if (!stopped) accept();
      });
      return;
    }
    accept();
  });
}

void Server::accept_one(int socket) {
  Descriptor guard(socket);
  Peer peer;
  if (!peer_of(socket, peer)) return;
  unsigned& count = users_[peer.uid].connections;
  if (connections_.size() >= kMaxConnections || count >= kMaxOfUser) {
    log(LogLevel::kDebug, "user " + std::to_string(peer.uid) + " has too many connections");
    return;
  }
  ++count;
  auto connection = std::make_shared<Connection>(daemon_, guard.release(), peer);
  connections_.insert(connection);
  connection->start();
}

void Server::forget(const std::shared_ptr<Connection>& connection) {
  if (connections_.erase(connection) == 0) return;
  --users_[connection->peer().uid].connections;
}

bool Server::has_time(uid_t id) {
  if (id == 0 || id == geteuid()) return true;
  User& user = users_[id];
  const auto now = std::chrono::steady_clock::now();
  user.seconds += std::chrono::duration<double>(now - user.refilled).count() * kPartOfTime;
  user.seconds = std::min(user.seconds, kSavedSeconds);
  user.refilled = now;
  return user.seconds > 0;
}

void Server::charge(uid_t id, std::chrono::steady_clock::duration time) {
  users_[id].seconds -= std::chrono::duration<double>(time).count();
}

void Server::stop_accepting() {
  boost::system::error_code ignored;
  pause_.cancel(ignored);
  if (listener_.is_open()) listener_.close(ignored);
  if (bound_) unlink(daemon_.options.socket.c_str());
  bound_ = false;
}

void Server::end_all() {
  for (const auto& connection : std::vector<std::shared_ptr<Connection>>(connections_.begin(), connections_.end())) {
    connection->end();
  }
}

}  // namespace phybin::daemon
