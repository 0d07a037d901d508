// Which files and folders the processes of this machine use at the moment.
#pragma once

#include <sys/types.h>

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace phybin::client {

// Device and inode.
using FileId = std::pair<dev_t, ino_t>;

// Taken once; processes go on.
class LiveFiles {
 public:
  // Reads all of /proc, and calls alive() before each process. A file of a dead server can stop it.
  explicit LiveFiles(const std::function<void()>& alive);

  // A descriptor, a working or root directory, an executable, a mapping or a lock of some process is one of these
  // files, or is the folder `path` or below it. Says whose: "process 123", "a lock", or an empty string.
  std::string user_of(const std::set<FileId>& files, const std::string& path) const;
  // A process of that user that could not be looked into; 0: there is none.
  pid_t hidden_of(uid_t user) const;

 private:
  struct Process {
    pid_t pid;
    uid_t uid;
    bool hidden;
    std::vector<FileId> files;
    std::vector<std::string> paths;
  };

  void read_process(pid_t pid);
  void read_locks();

  std::vector<Process> processes_;
  std::set<FileId> locked_;
};

}  // namespace phybin::client
