// Child processes. The daemon has threads, so it does nothing between fork and exec: a child is started with
// posix_spawn(), and what a child has to do to itself (limits, seccomp) phybind does in a mode of its own after exec.
#pragma once

#include <sys/types.h>

#include <boost/asio/signal_set.hpp>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace phybin::daemon {

// A descriptor of the daemon and its number in the child. Standard input and output are /dev/null if not named, the
// error output is the daemon's; nothing else is inherited.
using ChildFiles = std::vector<std::pair<int, int>>;

// phybind itself, the same file even if it was replaced meanwhile.
inline constexpr char kSelf[] = "/proc/self/exe";
// First argument of phybind in its own child processes.
inline constexpr char kReaderMode[] = "--internal-reader";
inline constexpr char kCompileMode[] = "--internal-compile";

class Children {
 public:
  explicit Children(boost::asio::io_context& io);

  // Starts a program with these arguments (the first is its name) and this environment. Returns its id, or -errno.
  // `ended` is called on the event thread with the status of waitpid(2).
  pid_t start(const char* program, const std::vector<std::string>& arguments,
              const std::vector<std::string>& environment, const ChildFiles& files,
              std::function<void(int status)> ended);
  // Another call when that child ends, in place of the first.
  void on_end(pid_t child, std::function<void(int status)> ended);
  size_t running() const { return ended_.size(); }
  void kill_all();

 private:
  void wait();
  void collect();

  boost::asio::signal_set signals_;
  std::unordered_map<pid_t, std::function<void(int)>> ended_;
};

}  // namespace phybin::daemon
