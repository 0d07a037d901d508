// The socket that workers and clients connect to: bound here, or handed over by systemd.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
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

  void forget(const std::shared_ptr<Connection>& connection);
  const std::unordered_set<std::shared_ptr<Connection>>& connections() const { return connections_; }

 private:
  void accept();
  void accept_one(int socket);

  Daemon& daemon_;
  boost::asio::posix::stream_descriptor listener_;
  boost::asio::steady_timer pause_;
  bool bound_ = false;  // the socket file is ours to remove
  std::unordered_set<std::shared_ptr<Connection>> connections_;
  std::unordered_map<uid_t, unsigned> of_user_;
};

}  // namespace phybin::daemon
