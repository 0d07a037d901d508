// See connection.h.
#include "daemon/connection.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>

#include "daemon/closer.h"
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/log.h"
#include "daemon/server.h"
#include "daemon/worker_session.h"
#include "proto/socket.h"

namespace phybin::daemon {
namespace {

using namespace std::chrono_literals;
namespace asio = boost::asio;

// Messages received at a stretch before others have their turn, the most at once after a silence, and each second. A
// program of many libraries names them all when it starts.
constexpr unsigned kAtAStretch = 8;
constexpr double kBurst = 512, kPerSecond = 200;
constexpr auto kPause = 50ms;
// For the first message, and for reading what we sent when the socket is full.
constexpr auto kPatience = 10s;
// What may wait to be sent.
constexpr size_t kMaxQueue = 4096, kMaxQueuedFiles = 256;

}  // namespace

Connection::Connection(Daemon& daemon, int socket, const Peer& peer)
    : daemon_(daemon),
      peer_(peer),
      socket_(daemon.io, asio::generic::seq_packet_protocol(AF_UNIX, 0), socket),
      pause_(daemon.io),
      deadline_(daemon.io),
      allowance_(kBurst),
      refilled_(std::chrono::steady_clock::now()) {}

Connection::~Connection() = default;

void Connection::start() {
  watch();
  wait_to_receive();
}

// Ends the connection unless what is awaited of the client happens in time.
void Connection::watch() {
  deadline_.expires_after(kPatience);
  deadline_.async_wait([this, self = shared_from_this()](const boost::system::error_code& error) {
    if (error || ended_) return;
    if (!spoken_) return end("it said nothing");
    if (!queue_.empty()) return end("it does not read");
  });
}

void Connection::wait_to_receive() {
  socket_.async_wait(asio::socket_base::wait_read, [this, self = shared_from_this()](const auto& error) {
    if (!error && !ended_) receive();
  });
}

bool Connection::may_receive() {
  if (!daemon_.server->has_time(peer_.uid)) return false;
  const auto now = std::chrono::steady_clock::now();
  allowance_ += std::chrono::duration<double>(now - refilled_).count() * kPerSecond;
  if (allowance_ > kBurst) allowance_ = kBurst;
  refilled_ = now;
  if (allowance_ < 1) return false;
  allowance_ -= 1;
  return true;
}

void Connection::receive() {
  for (unsigned i = 0; i != kAtAStretch; ++i) {
    if (!may_receive()) {
      pause_.expires_after(kPause);
      pause_.async_wait([this, self = shared_from_this()](const auto& error) {
        if (!error && !ended_) wait_to_receive();
      });
      return;
    }
    static std::vector<char> buffer(proto::kMaxMessageBytes);
    int raw[proto::kMaxDescriptors];
    proto::Received received;
    const int result =
        proto::receive_message(socket_.native_handle(), buffer.data(), buffer.size(), raw, MSG_DONTWAIT, received);
    if (result == -EAGAIN) break;
    if (result == -EMSGSIZE) return end("a message is too long");
    if (result != 0) return end(result == -ECONNRESET ? "" : strerror(-result));
    std::vector<Descriptor> files;
    for (unsigned file = 0; file != received.descriptors; ++file) files.emplace_back(raw[file]);
    if (received.bytes == 0) {
      daemon_.closer.close_all(std::move(files));
      return end();
    }
    if (!spoken_) {
      spoken_ = true;
      deadline_.cancel();
    }
    const auto begun = std::chrono::steady_clock::now();
    handle({buffer.data(), received.bytes}, std::move(files));
    daemon_.server->charge(peer_.uid, std::chrono::steady_clock::now() - begun);
    if (ended_) return;
  }
  wait_to_receive();
}

void Connection::handle(std::string_view message, std::vector<Descriptor> files) {
  if (!worker_ && message[0] == '{') {
    is_client_ = true;
    handle_control(daemon_, message, peer_, std::move(files), Reply(weak_from_this()));
    return;
  }
  if (is_client_) {
    daemon_.closer.close_all(std::move(files));
    return end("it mixes the languages of clients and workers");
  }
  if (!worker_) worker_ = std::make_unique<WorkerSession>(daemon_, *this);
  worker_->receive(message, std::move(files));
}

void Connection::send(const void* data, size_t bytes, const int* files, unsigned count) {
  if (ended_) return;
  if (queue_.empty()) {
    const int result = proto::send_message(socket_.native_handle(), data, bytes, files, count, MSG_DONTWAIT);
    // ETOOMANYREFS: more descriptors are under way, to all workers, than the kernel allows. Images can be missed.
    if (result == 0 || result == -ETOOMANYREFS) return;
    if (result != -EAGAIN) {
      const bool gone = result == -EPIPE || result == -ECONNRESET;
      return end(gone ? "" : std::string("sending: ") + strerror(-result));
    }
  }
  if (queue_.size() >= kMaxQueue || queued_files_ + count > kMaxQueuedFiles) {
    // A worker reads when it comes by, which may be in a week; it can do without.
    return worker_ ? void() : end("it does not read");
  }
  Outgoing& outgoing = queue_.emplace_back();
  outgoing.data.assign(static_cast<const char*>(data), bytes);
  for (unsigned i = 0; i != count; ++i) {
    Descriptor copy(fcntl(files[i], F_DUPFD_CLOEXEC, 0));
    if (!copy) return end(std::string("out of descriptors: ") + strerror(errno));
    outgoing.files.push_back(std::move(copy));
  }
  queued_files_ += count;
  if (!sending_) {
    if (!worker_) watch();
    wait_to_send();
  }
}

void Connection::wait_to_send() {
  sending_ = true;
  socket_.async_wait(asio::socket_base::wait_write, [this, self = shared_from_this()](const auto& error) {
    sending_ = false;
    if (!error && !ended_) flush();
  });
}

void Connection::flush() {
  while (!queue_.empty()) {
    Outgoing& outgoing = queue_.front();
    int files[proto::kMaxDescriptors];
    for (size_t i = 0; i != outgoing.files.size(); ++i) files[i] = outgoing.files[i].get();
    const int result = proto::send_message(socket_.native_handle(), outgoing.data.data(), outgoing.data.size(), files,
                                           static_cast<unsigned>(outgoing.files.size()), MSG_DONTWAIT);
    if (result == -EAGAIN) return wait_to_send();
    if (result != 0 && result != -ETOOMANYREFS) return end();
    queued_files_ -= outgoing.files.size();
    queue_.pop_front();
    if (!worker_) watch();
  }
  deadline_.cancel();
}

void Connection::end(const std::string& why) {
  if (ended_) return;
  ended_ = true;
  if (!why.empty()) {
    log(LogLevel::kInfo, "process " + std::to_string(peer_.pid) + " of user " + std::to_string(peer_.uid) +
                             " is disconnected: " + why);
  }
  boost::system::error_code ignored;
  socket_.close(ignored);
  pause_.cancel();
  deadline_.cancel();
  queue_.clear();
  if (worker_) worker_->ended();
  // The server's reference may be the last one but for the caller's.
  asio::post(daemon_.io, [self = shared_from_this(), &server = *daemon_.server] { server.forget(self); });
}

}  // namespace phybin::daemon
