// execve and execveat.
//
// A child that is an x86_64 program, or a script of one, starts the worker again, through the descriptor of it that
// was kept from the start, with the options of our command line; this needs no binfmt_misc. Everything else is the
// kernel's: native programs and their scripts, and set-uid programs, which must not be wrapped. What the kernel would
// refuse without harm to the caller is refused here, before anything is given up.
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "worker/process/address_space.h"
#include "worker/process/core/elf_file.h"
#include "worker/process/descriptors.h"
#include "worker/process/proc_views.h"
#include "worker/runtime/signals.h"
#include "worker/syscalls/handlers.h"

namespace phybin::syscalls {
namespace {

using process::FileKind;

constexpr unsigned kMaxScripts = 5;
constexpr size_t kMaxPath = 4096;

struct Target {
  std::string path;  // as the guest names it
  std::string host;  // as the host does
  int fd = -1;       // opened by execveat; the program is read from it
};

bool read_string(uint64_t address, std::string& text) {
  int64_t length = runtime::guest_string_length(address, kMaxPath);
  if (length < 0) return false;
  text.resize(static_cast<size_t>(length));
  return length == 0 || runtime::copy_from_guest(text.data(), address, text.size());
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

std::string on_host(const std::string& path) {
  char buffer[process::kPathBuffer];
  return process::host_path(path.c_str(), buffer);
}

// What the kernel would find wrong with the headers; 0 if nothing.
int check_x86_64(int fd, const uint8_t* head, size_t size, uint64_t file_size) {
  process::ElfHeader header;
  if (!process::read_elf_header(head, size, file_size, header).empty()) return ENOEXEC;
  std::vector<uint8_t> table(header.table_count * process::kProgramHeaderSize);
  if (pread(fd, table.data(), table.size(), static_cast<off_t>(header.table_offset)) !=
      static_cast<ssize_t>(table.size())) {
    return ENOEXEC;
  }
  process::ElfLayout layout;
  if (!process::read_elf_layout(header, table.data(), table.size(), file_size, process::page_size(), layout)
           .empty()) {
    return ENOEXEC;
  }
  if (!layout.has_interpreter) return 0;
  std::string name(layout.interpreter_size, '\0');
  if (pread(fd, name.data(), name.size(), static_cast<off_t>(layout.interpreter_offset)) !=
          static_cast<ssize_t>(name.size()) ||
      name.back() != '\0') {
    return ENOEXEC;
  }
  return access(on_host(name.c_str()).c_str(), F_OK) == 0 ? 0 : errno;
}

enum class Who : uint8_t { kWorker, kKernel };

// Decides who runs the program. Returns 0 or an errno.
int decide(const Target& target, Who& who) {
  std::string name = target.host;
  for (unsigned depth = 0;; ++depth) {
    const bool opened = depth == 0 && target.fd >= 0;
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", target.fd);
    Descriptor file(open(opened ? link : name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (file.get() < 0) {
      // Not readable but perhaps executable: the kernel knows.
      who = Who::kKernel;
      return errno == EACCES ? 0 : errno;
    }
    struct stat status;
    if (fstat(file.get(), &status) != 0) return errno;
    if (!S_ISREG(status.st_mode)) return EACCES;
    if (faccessat(AT_FDCWD, opened ? link : name.c_str(), X_OK, AT_EACCESS) != 0) return errno;
    const bool changes_id =
        (status.st_mode & S_ISUID && status.st_uid != geteuid()) ||
        ((status.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && status.st_gid != getegid());
    uint8_t head[512];
    ssize_t count = pread(file.get(), head, sizeof head, 0);
    if (count < 0) return errno;
    const auto size = static_cast<size_t>(count);
    who = Who::kKernel;
    switch (process::classify(head, size)) {
      case FileKind::kX64:
        if (depth == 0 && changes_id) return 0;
        who = Who::kWorker;
        return check_x86_64(file.get(), head, size, static_cast<uint64_t>(status.st_size));
      case FileKind::kNative:
      case FileKind::kOtherElf:
        return 0;
      case FileKind::kEmpty:
      case FileKind::kUnknown:
        // Perhaps of a format that is registered with binfmt_misc; ENOEXEC otherwise.
        return 0;
      case FileKind::kScript: {
        process::ScriptLine line;
        if (!process::read_script_line(reinterpret_cast<const char*>(head), size, line)) return ENOEXEC;
        if (depth == kMaxScripts) return ELOOP;
        name = on_host(line.interpreter);
        break;
      }
    }
  }
}

// Reads an array of string pointers up to its null; the strings stay where they are.
int read_pointers(uint64_t address, std::vector<uint64_t>& pointers) {
  constexpr size_t kMost = 1 << 20;
  if (address == 0) return 0;
  for (;; address += 8) {
    uint64_t pointer;
    if (!runtime::read_guest(address, pointer)) return EFAULT;
    if (pointer == 0) return 0;
    if (pointers.size() == kMost) return E2BIG;
    pointers.push_back(pointer);
  }
}

// Not where the worker was started without /proc, in a bare chroot: there the kernel, which has started it, starts it
// for children too.
bool can_start_worker() {
  return process::own_descriptor(process::OwnDescriptor::kWorker) >= 0 || !process::program().worker_path.empty();
}

int64_t run_worker(const std::vector<uint64_t>& arguments, const std::vector<uint64_t>& environment) {
  const process::Program& self = process::program();
  int worker = process::own_descriptor(process::OwnDescriptor::kWorker);
  int64_t result = -ENOENT;
  if (worker >= 0) {
    result = raw_syscall(SYS_execveat, extend(worker), word(""), word(arguments.data()), word(environment.data()),
                         AT_EMPTY_PATH);
  }
  // Without execveat (Linux has it since 3.19, qemu-user has not), or where the worker is an interpreted file itself.
  if ((result == -ENOSYS || result == -ENOENT) && !self.worker_path.empty()) {
    result =
        raw_syscall(SYS_execve, word(self.worker_path.c_str()), word(arguments.data()), word(environment.data()));
  }
  return result;
}

int64_t replace_process(const Target& target, uint64_t argv, uint64_t envp) {
  Who who;
  if (int error = decide(target, who)) return -error;
  if (who == Who::kWorker && !can_start_worker()) who = Who::kKernel;
  std::vector<uint64_t> arguments, environment;
  if (int error = read_pointers(argv, arguments)) return -error;
  if (int error = read_pointers(envp, environment)) return -error;
  environment.push_back(0);

  if (who == Who::kKernel) {
    arguments.push_back(0);
    if (target.fd >= 0) {
      return raw_syscall(SYS_execveat, extend(target.fd), word(""), word(arguments.data()), word(environment.data()),
                         AT_EMPTY_PATH);
    }
    return raw_syscall(SYS_execve, word(target.host.c_str()), word(arguments.data()), word(environment.data()));
  }

  // phybin OPTIONS --guest-argv0=NAME -- PROGRAM ARGUMENTS
  const process::Program& self = process::program();
  std::vector<std::string> texts;
  texts.push_back("phybin");
  texts.insert(texts.end(), self.passed_on.begin(), self.passed_on.end());
  std::string name;
  if (!arguments.empty() && !read_string(arguments[0], name)) return -EFAULT;
  texts.push_back("--guest-argv0=" + name);
  Descriptor program(target.fd >= 0 ? dup(target.fd) : -1);
  if (target.fd >= 0) {
    if (program.get() < 0) return -errno;
    texts.push_back("--guest-fd=" + std::to_string(program.get()));
  }
  texts.push_back("--");
  texts.push_back(target.path);
  std::vector<uint64_t> all;
  all.reserve(texts.size() + arguments.size() + 1);
  for (const std::string& text : texts) all.push_back(word(text.c_str()));
  if (!arguments.empty()) all.insert(all.end(), arguments.begin() + 1, arguments.end());
  all.push_back(0);
  return run_worker(all, environment);
}

// The new program inherits the guest's signal mask and what it ignores.
int64_t execute(const Target& target, uint64_t argv, uint64_t envp) {
  runtime::prepare_exec();
  const int64_t result = replace_process(target, argv, envp);
  runtime::undo_prepare_exec();
  return result;
}

// The program that runs, under its name in /proc.
bool is_self(const std::string& path) { return process::view_of(path.c_str()) == "exe"; }

int64_t execute_path(const std::string& path, uint64_t argv, uint64_t envp) {
  if (path.empty()) return -ENOENT;
  if (path.size() >= kMaxPath) return -ENAMETOOLONG;
  Target target;
  target.path = is_self(path) ? process::program().executable : path;
  target.host = on_host(target.path);
  int own = process::own_descriptor(process::OwnDescriptor::kProgram);
  if (is_self(path) && own >= 0 && access(target.host.c_str(), F_OK) != 0) target.fd = own;
  return execute(target, argv, envp);
}

}  // namespace

#define HANDLER(name) int64_t sys_##name([[maybe_unused]] GuestState& state, [[maybe_unused]] const uint64_t* a)

HANDLER(execve) {
  std::string path;
  if (!read_string(a[0], path)) return -EFAULT;
  return execute_path(path, a[1], a[2]);
}

HANDLER(execveat) {
  std::string path;
  const int folder = as_int(a[0]), flags = as_int(a[4]);
  if (flags & ~(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW)) return -EINVAL;
  if (!read_string(a[1], path)) return -EFAULT;
  if (path.empty() && !(flags & AT_EMPTY_PATH)) return -ENOENT;
  if (!path.empty() && !(flags & AT_SYMLINK_NOFOLLOW) && (path[0] == '/' || folder == AT_FDCWD)) {
    return execute_path(path, a[2], a[3]);
  }
  if (process::is_own_descriptor(folder)) return -EBADF;
  Target target;
  if (path.empty()) {
    target.fd = folder;
    target.path = "/dev/fd/" + std::to_string(folder);
    return execute(target, a[2], a[3]);
  }
  Descriptor file(openat(folder, path.c_str(), O_PATH | O_CLOEXEC | (flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0)));
  if (file.get() < 0) return -errno;
  struct stat status;
  if (fstat(file.get(), &status) == 0 && S_ISLNK(status.st_mode)) return -ELOOP;
  target.fd = file.get();
  target.path = path[0] == '/' ? path : "/dev/fd/" + std::to_string(folder) + "/" + path;
  return execute(target, a[2], a[3]);
}

}  // namespace phybin::syscalls
