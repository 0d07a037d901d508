// See file_reader.h.
#include "daemon/file_reader.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include "daemon/log.h"
#include "proto/socket.h"

namespace phybin::daemon {
namespace {

using namespace std::chrono_literals;
namespace asio = boost::asio;

constexpr size_t kMaxReaders = 6;
// Of one user: being read at a time, waiting, and hanging before he is refused.
constexpr unsigned kActiveOfUser = 3;
constexpr size_t kWaitingOfUser = 4096;
constexpr unsigned kHungOfUser = 4;

constexpr auto kExamineTime = 5s;
// Reading may be as slow as this.
constexpr auto kReadTime = 30s;
constexpr uint64_t kBytesPerSecond = 8 << 20;

std::chrono::seconds patience(const ReadRequest& request) {
  if (request.kind == ReadKind::kExamine) return kExamineTime;
  return kReadTime + std::chrono::seconds(request.limit / kBytesPerSecond);
}

ReadReply failed(int error) {
  ReadReply reply;
  reply.error = error;
  return reply;
}

}  // namespace

struct FileReader::Reader {
  explicit Reader(asio::io_context& io) : socket(io), deadline(io) {}

  asio::generic::seq_packet_protocol::socket socket;
  asio::steady_timer deadline;
  pid_t pid = 0;
  bool busy = false;
  Request request{};
};

FileReader::FileReader(asio::io_context& io, Children& children) : io_(io), children_(children) {}

FileReader::~FileReader() = default;

void FileReader::read(ClientFile file, ReadKind kind, uint64_t limit, uid_t user, Done done) {
  enqueue({std::move(file), {kind, limit, {}}, user, std::move(done)});
}

void FileReader::read_path(const std::string& path, ReadKind kind, uint64_t limit, uid_t user, Done done) {
  Request request{nullptr, {kind, limit, {}}, user, std::move(done)};
  if (path.empty() || path[0] != '/' || path.size() >= sizeof request.message.path) {
    asio::post(io_, [done = std::move(request.done)] { done(failed(ENOENT), {}); });
    return;
  }
  memcpy(request.message.path, path.data(), path.size());
  enqueue(std::move(request));
}

void FileReader::enqueue(Request request) {
  const uid_t user = request.user;
  User& of_user = users_[user];
  if (of_user.queue.size() >= kWaitingOfUser || of_user.hung >= kHungOfUser) {
    asio::post(io_, [done = std::move(request.done)] { done(failed(EBUSY), {}); });
    return drop_if_unused(user);
  }
  of_user.queue.push_back(std::move(request));
  ++waiting_;
  assign();
}

void FileReader::drop_if_unused(uid_t user) {
  const auto found = users_.find(user);
  if (found == users_.end()) return;
  const User& of_user = found->second;
  if (of_user.queue.empty() && of_user.active == 0 && of_user.hung == 0) users_.erase(found);
}

FileReader::Reader* FileReader::free_reader() {
  for (Reader& reader : readers_) {
    if (!reader.busy) return &reader;
  }
  if (readers_.size() >= kMaxReaders) return nullptr;
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return nullptr;
  const Descriptor theirs(pair[1]);
  Reader& reader = readers_.emplace_back(io_);
  reader.socket.assign(asio::generic::seq_packet_protocol(AF_UNIX, 0), pair[0]);
  // If it dies by itself, its socket says so.
  reader.pid =
      children_.start(kSelf, {"phybind-reader", kReaderMode}, {}, {{theirs.get(), kReaderSocket}}, [](int) {});
  if (reader.pid < 0) {
    log(LogLevel::kError, std::string("a reader cannot be started: ") + strerror(-reader.pid));
    readers_.pop_back();
    return nullptr;
  }
  return &reader;
}

// Gives waiting requests to free readers, users in turn.
void FileReader::assign() {
  while (waiting_ != 0) {
    std::vector<uid_t> order;
    for (const auto& [id, user] : users_) {
      if (!user.queue.empty() && user.active < kActiveOfUser) order.push_back(id);
    }
    if (order.empty()) return;
    std::sort(order.begin(), order.end());
    auto next = std::upper_bound(order.begin(), order.end(), last_served_);
    if (next == order.end()) next = order.begin();
    Reader* reader = free_reader();
    if (reader == nullptr) {
      if (busy_ != 0) return;  // one of them will be free
      // No reader can be had: say so rather than let everything wait.
      for (uid_t id : order) {
        for (Request& request : std::exchange(users_[id].queue, {})) {
          --waiting_;
          asio::post(io_, [done = std::move(request.done)] { done(failed(EAGAIN), {}); });
        }
        drop_if_unused(id);
      }
      return;
    }
    last_served_ = *next;
    User& user = users_[*next];
    Request request = std::move(user.queue.front());
    user.queue.pop_front();
    ++user.active;
    --waiting_;
    begin(*reader, std::move(request));
  }
}

void FileReader::begin(Reader& reader, Request request) {
  reader.busy = true;
  ++busy_;
  reader.request = std::move(request);
  const int file = reader.request.file ? reader.request.file->get() : -1;
  const int result = proto::send_message(reader.socket.native_handle(), &reader.request.message,
                                         sizeof reader.request.message, &file, file >= 0 ? 1 : 0, MSG_DONTWAIT);
  if (result != 0) {
    asio::post(io_, [this, &reader, result] { finish(reader, failed(-result), {}); });
    return;
  }
  reader.deadline.expires_after(patience(reader.request.message));
  reader.deadline.async_wait([this, &reader](const auto& error) {
    // It may have passed just when the answer came, and this be the next request.
    if (!error && reader.busy && reader.deadline.expiry() <= asio::steady_timer::clock_type::now()) {
      finish(reader, failed(ETIME), {});
    }
  });
  reader.socket.async_wait(asio::socket_base::wait_read, [this, &reader](const auto& error) {
    if (!error && reader.busy) receive(reader);
  });
}

void FileReader::receive(Reader& reader) {
  ReadReply reply;
  int files[proto::kMaxDescriptors];
  proto::Received received;
  const int result =
      proto::receive_message(reader.socket.native_handle(), &reply, sizeof reply, files, MSG_DONTWAIT, received);
  Descriptor copy;
  if (result == 0 && received.descriptors != 0) copy.reset(files[0]);
  const bool whole =
      result == 0 && received.bytes == sizeof reply &&
      (reply.error != 0 || (reader.request.message.kind == ReadKind::kCopy) == static_cast<bool>(copy));
  if (!whole) reply = failed(EPIPE);
  finish(reader, reply, std::move(copy));
}

void FileReader::finish(Reader& reader, const ReadReply& reply, Descriptor copy) {
  Request request = std::move(reader.request);
  reader.busy = false;
  --busy_;
  --users_[request.user].active;
  if (reply.error == ETIME) {
    log(LogLevel::kWarning, "reading a file of user " + std::to_string(request.user) + " takes too long");
    ++users_[request.user].hung;
    // It may end late or never.
    const pid_t pid = reader.pid;
    children_.on_end(pid, [this, user = request.user](int) {
      --users_[user].hung;
      drop_if_unused(user);
    });
    kill(pid, SIGKILL);
    discard(reader);
  } else if (reply.error == EPIPE || reply.error == EAGAIN) {
    kill(reader.pid, SIGKILL);
    discard(reader);
  } else {
    reader.deadline.cancel();
  }
  request.done(reply, std::move(copy));
  drop_if_unused(request.user);
  assign();
}

// Handlers of the reader that are under way still name it, so it goes when they are through.
void FileReader::discard(Reader& reader) {
  boost::system::error_code ignored;
  reader.socket.close(ignored);
  reader.deadline.cancel();
  reader.busy = false;
  for (auto each = readers_.begin(); each != readers_.end(); ++each) {
    if (&*each != &reader) continue;
    retired_.splice(retired_.end(), readers_, each);
    break;
  }
  asio::post(io_, [this, &reader] { retired_.remove_if([&](const Reader& other) { return &other == &reader; }); });
}

}  // namespace phybin::daemon
