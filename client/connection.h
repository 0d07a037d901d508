// Requests to the daemon and its answers.
//
// A request is one JSON message; the answer is one or several (docs/control.md): those with "more": true are followed
// by others, whose arrays are appended and whose other members replace earlier ones. Messages that hold "progress"
// say only how far long work has come.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "client/arguments.h"

namespace phybin::client {

using Json = nlohmann::json;

// A descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release();

 private:
  int fd_;
};

struct Answer {
  int status = kSuccess;  // kFailure: the daemon refused; kNotReachable
  bool late = false;      // kNotReachable because the time is up
  std::string error;      // one line, when status is not kSuccess
  Json body = Json::object();
  std::vector<Descriptor> descriptors;
};

// Called for each "progress" message: {"done": N, "total": N, "what": TEXT}.
using ProgressFunction = std::function<void(const Json&)>;

class Connection {
 public:
  // Connects to the socket named by --socket, or to the system's or the user's own. A peer that is neither root nor
  // the daemon's user nor this user is refused unless --socket named it. kSuccess, or another status and `error`.
  int open(const Arguments& arguments, std::string& error);

  // Sends `request` with `descriptors`, which stay the caller's, and waits for the whole answer; so long for each
  // message of it (30 s, or what set_patience() said).
  Answer ask(const Json& request, const std::vector<int>& descriptors = {}, const ProgressFunction& progress = {});

  // Seconds to wait for a message; 0: for ever.
  void set_patience(double seconds);

 private:
  Descriptor socket_;
  std::string path_;
};

// One request on a connection of its own, for commands that need no more. Reports failures on stderr.
Answer ask_once(const Arguments& arguments, const Json& request, const ProgressFunction& progress = {});

}  // namespace phybin::client
