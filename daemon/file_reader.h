// Reads files of clients without ever touching them: reader processes do (reader_child.cpp), each with a deadline,
// and are killed when it passes. One user's files that hang cost that user's requests only.
#pragma once

#include <boost/asio/generic/seq_packet_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>

#include "daemon/children.h"
#include "daemon/closer.h"
#include "daemon/descriptor.h"
#include "daemon/reader_protocol.h"

namespace phybin::daemon {

class FileReader {
 public:
  // error: 0 or an errno; ETIME: the deadline passed, EBUSY: too many of this user's files wait.
  using Done = std::function<void(const ReadReply& reply, Descriptor copy)>;

  FileReader(boost::asio::io_context& io, Children& children);
  ~FileReader();

  // Starts a reader ahead of the first request, which has somebody waiting.
  void prepare() { free_reader(); }
  // Does `kind` with the file. `done` is called on the event thread, later.
  void read(ClientFile file, ReadKind kind, uint64_t limit, uid_t user, Done done);

  // The same with a file that is opened by its name.
  void read_path(const std::string& path, ReadKind kind, uint64_t limit, uid_t user, Done done);

  bool idle() const { return waiting_ == 0 && busy_ == 0; }

 private:
  struct Request {
    ClientFile file;
    ReadRequest message;
    uid_t user;
    Done done;
  };
  struct Reader;
  struct User {
    std::deque<Request> queue;
    unsigned active = 0;  // being read
    unsigned hung = 0;    // readers that were killed and have not ended yet
  };

  void enqueue(Request request);
  void assign();
  Reader* free_reader();
  void begin(Reader& reader, Request request);
  void receive(Reader& reader);
  void finish(Reader& reader, const ReadReply& reply, Descriptor copy);
  void discard(Reader& reader);
  void drop_if_unused(uid_t user);

  boost::asio::io_context& io_;
  Children& children_;
  std::list<Reader> readers_, retired_;
  std::unordered_map<uid_t, User> users_;
  uid_t last_served_ = 0;
  size_t waiting_ = 0, busy_ = 0;
};

}  // namespace phybin::daemon
