// The socket that workers and clients connect to: bound here, or handed over by systemd.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "daemon/connection.h"

namespace phybin::daemon {

struct Daemon;

class Server {
 public:
  explicit Server(Daemon& daemon);
  ~Server();

  // Binds and listens, or takes systemd's socket. An empty string, or what is wrong.
  std::string open();
  void start();
  // No more connections; those that are there stay.
  void stop_accepting();
  // Ends all connections.
  void end_all();

  // The event thread's time is shared out: a user whose messages have taken more than his part of it waits. Root and
  // the daemon's own user do not.
  bool has_time(uid_t user);
  void charge(uid_t user, std::chrono::steady_clock::duration time);

  void forget(const std::shared_ptr<Connection>& connection);
  const std::unordered_set<std::shared_ptr<Connection>>& connections() const { return connections_; }

 private:
  struct User {
    unsigned connections = 0;
    double seconds = 0;  // that he may still use
    std::chrono::steady_clock::time_point refilled;
  };

  void accept();
  void accept_one(int socket);

  Daemon& daemon_;
  boost::asio::posix::stream_descriptor listener_;
  boost::asio::steady_timer pause_;
  bool bound_ = false;  // the socket file is ours to remove
  std::unordered_set<std::shared_ptr<Connection>> connections_;
  std::unordered_map<uid_t, User> users_;
};

}  // namespace phybin::daemon
