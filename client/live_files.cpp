// See live_files.h. Files are told by device and inode, and by path: the one fails where a file system shows two
// devices for the same file (overlays, subvolumes), the other where a process sees the file under another path.
#include "client/live_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <iterator>

#include "client/host_tree.h"

namespace phybin::client {
namespace {

const HostTree kMachine{std::string()};

// What /proc/PID/fd/N and its like lead to. The file system is asked as little as possible: a dead one never answers.
bool identify(const std::string& path, FileId& id) {
  struct statx status {};
  if (statx(AT_FDCWD, path.c_str(), AT_STATX_DONT_SYNC, STATX_INO, &status) != 0) return false;
  id = {makedev(status.stx_dev_major, status.stx_dev_minor), status.stx_ino};
  return true;
}

std::string link_target(const std::string& path) {
  char target[4096];
  const ssize_t length = readlink(path.c_str(), target, sizeof target);
  return length > 0 ? std::string(target, static_cast<size_t>(length)) : std::string();
}

bool is_below(const std::string& path, const std::string& folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/' ||
                                      path.compare(folder.size(), std::string::npos, " (deleted)") == 0);
}

}  // namespace

LiveFiles::LiveFiles(const std::function<void()>& alive) {
  for (const std::string& name : kMachine.list("/proc")) {
    const std::optional<uint64_t> pid = parse_number(name);
    if (!pid || static_cast<pid_t>(*pid) == getpid()) continue;
    alive();
    read_process(static_cast<pid_t>(*pid));
  }
  read_locks();
}

void LiveFiles::read_process(pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  Process process{pid, 0, false, {}, {}};
  const std::optional<std::string> status = kMachine.read(folder + "/status");
  if (!status) return;  // it has ended
  bool is_user_program = false;
  for (const std::string& line : split_lines(*status)) {
    if (line.starts_with("VmSize:")) is_user_program = true;  // threads of the kernel have no memory
    if (!line.starts_with("Uid:")) continue;
    const std::vector<std::string> ids = split_words(std::string_view(line).substr(4));
    if (!ids.empty()) process.uid = static_cast<uid_t>(parse_number(ids[0]).value_or(0));
  }
  if (!is_user_program) return;
  const auto add = [&](const std::string& link) {
    std::string target = link_target(link);
    if (!target.starts_with("/")) return;
    FileId id;
    if (identify(link, id)) process.files.push_back(id);
    process.paths.push_back(std::move(target));
  };
  for (const char* name : {"/cwd", "/root", "/exe"}) add(folder + name);
  DIR* descriptors = opendir((folder + "/fd").c_str());
  if (descriptors == nullptr) {
    process.hidden = errno == EACCES || errno == EPERM;
  } else {
    while (const dirent* entry = readdir(descriptors)) add(folder + "/fd/" + entry->d_name);
    closedir(descriptors);
  }
  const std::optional<std::string> maps = kMachine.read(folder + "/maps");
  if (!maps && (errno == EACCES || errno == EPERM)) process.hidden = true;
  std::string last;
  for (const std::string& line : split_lines(maps.value_or(""))) {
    unsigned major = 0, minor = 0;
    unsigned long long inode = 0;
    int path_at = 0;
    if (sscanf(line.c_str(), "%*s %*s %*s %x:%x %llu %n", &major, &minor, &inode, &path_at) < 3 || inode == 0)
      continue;
    process.files.emplace_back(makedev(major, minor), static_cast<ino_t>(inode));
    std::string path = line.substr(static_cast<size_t>(path_at));
    if (path.starts_with("/") && path != last) process.paths.push_back(last = std::move(path));
  }
  processes_.push_back(std::move(process));
}

// "1: FLOCK  ADVISORY  WRITE 1234 08:02:131 0 EOF"
void LiveFiles::read_locks() {
  for (const std::string& line : split_lines(kMachine.read("/proc/locks").value_or(""))) {
    for (const std::string& word : split_words(line)) {
      unsigned major = 0, minor = 0;
      unsigned long long inode = 0;
      if (sscanf(word.c_str(), "%x:%x:%llu", &major, &minor, &inode) != 3) continue;
      locked_.emplace(makedev(major, minor), static_cast<ino_t>(inode));
    }
  }
}

std::string LiveFiles::user_of(const std::set<FileId>& files, const std::string& path) const {
  const auto is_one = [&](const FileId& id) { return files.contains(id); };
  for (const Process& process : processes_) {
    if (std::any_of(process.files.begin(), process.files.end(), is_one) ||
        std::any_of(process.paths.begin(), process.paths.end(),
                    [&](const std::string& used) { return is_below(used, path); })) {
      return "process " + std::to_string(process.pid);
    }
  }
  return std::any_of(locked_.begin(), locked_.end(), is_one) ? "a lock" : "";
}

pid_t LiveFiles::hidden_of(uid_t user) const {
  for (const Process& process : processes_) {
    // The first process starts others and uses nothing itself; from within a container it is often hidden.
    if (process.hidden && process.uid == user && process.pid != 1) return process.pid;
  }
  return 0;
}

}  // namespace phybin::client
