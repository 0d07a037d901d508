// One connection: messages in and out of its socket, whatever they mean. What they mean is the business of a
// WorkerSession or of control.h; the first byte of the first message decides which it is.
//
// Nothing a client does may cost others: a message is read when there is time, so many a second; what cannot be sent
// waits in a short queue, and who does not empty it is disconnected. All on the event thread.
#pragma once

#include <boost/asio/generic/seq_packet_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/descriptor.h"
#include "daemon/peer.h"

namespace phybin::daemon {

struct Daemon;
class WorkerSession;

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // Takes the socket over.
  Connection(Daemon& daemon, int socket, const Peer& peer);
  ~Connection();

  void start();
  // Sends a message, or queues it. `files` are not taken over.
  void send(const void* data, size_t bytes, const int* files, unsigned count);
  // Ends the connection; `why` is logged if it is the client's fault.
  void end(const std::string& why = {});

  const Peer& peer() const { return peer_; }
  WorkerSession* worker() const { return worker_.get(); }
  bool ended() const { return ended_; }

 private:
  struct Outgoing {
    std::string data;
    std::vector<Descriptor> files;
  };

  void wait_to_receive();
  void wait_to_send();
  void receive();
  void handle(std::string_view message, std::vector<Descriptor> files);
  void flush();
  bool may_receive();
  void watch();

  Daemon& daemon_;
  Peer peer_;
  boost::asio::generic::seq_packet_protocol::socket socket_;
  boost::asio::steady_timer pause_;     // before reading goes on
  boost::asio::steady_timer deadline_;  // for the first message, and for the client to read ours
  std::unique_ptr<WorkerSession> worker_;
  std::deque<Outgoing> queue_;
  size_t queued_files_ = 0;
  bool sending_ = false, ended_ = false, spoken_ = false, is_client_ = false;
  // Messages that may still be received; refilled with time.
  double allowance_;
  std::chrono::steady_clock::time_point refilled_;
};

}  // namespace phybin::daemon
