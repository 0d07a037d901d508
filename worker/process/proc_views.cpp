// Views of /proc. See proc_views.h. A view is written when it is opened, into a memory file or, where that cannot be
// had (file size limits, old kernels), into a pipe.
#include "worker/process/proc_views.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "worker/process/address_space.h"
#include "worker/process/cpu.h"
#include "worker/process/program.h"
#include "worker/process/raw_syscall.h"

namespace phybin::process {
namespace {

std::string read_whole(const char* path) {
  std::string text;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char buffer[4096];
  ssize_t count;
  while ((count = read(fd, buffer, sizeof buffer)) > 0) text.append(buffer, static_cast<size_t>(count));
  close(fd);
  return text;
}

// One line of the host's maps, split.
struct HostLine {
  uint64_t start = 0, end = 0, offset = 0;
  char device[16] = {};
  uint64_t inode = 0;
  const char* name = "";
};

bool parse_line(const char* text, HostLine& line) {
  char flags[8];
  int name_at = 0;
  if (sscanf(text, "%lx-%lx %7s %lx %15s %lu %n", &line.start, &line.end, flags, &line.offset, line.device,
             &line.inode, &name_at) < 6) {
    return false;
  }
  line.name = text + name_at;
  return true;
}

std::string maps_view() {
  std::string host = read_whole("/proc/self/maps"), out;
  const Program& self = program();
  for (size_t at = 0; at < host.size();) {
    size_t newline = std::min(host.find('\n', at), host.size());
    std::string text = host.substr(at, newline - at);
    at = newline + 1;
    HostLine line;
    if (!parse_line(text.c_str(), line)) continue;
    struct Part {
      uint64_t from, to;
      Range range;
    };
    std::vector<Part> parts;
    visit_mappings(line.start, line.end, [&](uint64_t from, uint64_t to, const Range& range) {
      parts.push_back({from, to, range});
    });
    for (const Part& part : parts) {
      const int protection = part.range.protection;
      const char* name = line.name;
      if (!*name) {
        if (part.from >= self.stack_start && part.to <= self.stack_end)
          name = "[stack]";
        else if (part.from == self.vdso && self.vdso)
          name = "[vdso]";
        else if (is_heap(part.from))
          name = "[heap]";
      } else if (*name == '[') {
        name = "";
      }
      char head[160];
      int length = snprintf(head, sizeof head, "%08lx-%08lx %c%c%c%c %08lx %s %lu ", part.from, part.to,
                            protection & PROT_READ ? 'r' : '-', protection & PROT_WRITE ? 'w' : '-',
                            protection & PROT_EXEC ? 'x' : '-', part.range.shared ? 's' : 'p',
                            line.inode ? line.offset + (part.from - line.start) : 0, line.device, line.inode);
      out.append(head, static_cast<size_t>(length));
      if (*name) {
        // As the kernel does, names begin in column 74.
        if (length < 73) out.append(static_cast<size_t>(73 - length), ' ');
        out += name;
      }
      out += '\n';
    }
  }
  return out;
}

std::string cmdline_view() { return program().arguments; }

std::string auxv_view() {
  const auto& vector = program().auxiliary_vector;
  return {reinterpret_cast<const char*>(vector.data()), vector.size() * sizeof vector[0]};
}

// The kernel's line with the fields that describe the address space replaced; proc(5) numbers them from 1.
std::string stat_view() {
  std::string line = read_whole("/proc/self/stat");
  size_t close = line.rfind(')');
  if (close == line.npos) return line;
  const Program& self = program();
  std::string out = line.substr(0, close + 1);
  unsigned field = 2;
  for (size_t at = close + 2; at < line.size();) {
    size_t end = std::min(line.find_first_of(" \n", at), line.size());
    std::string value = line.substr(at, end - at);
    at = end + 1;
    switch (++field) {
      case 28:
        value = std::to_string(self.stack_pointer);
        break;  // startstack
      case 48:
        value = std::to_string(self.arguments_start);
        break;  // arg_start
      case 49:
        value = std::to_string(self.arguments_end);
        break;  // arg_end
      default:
        break;
    }
    out += ' ' + value;
  }
  return out + '\n';
}

int write_view(const std::string& text, int flags) {
  const unsigned long cloexec = flags & O_CLOEXEC;
  int64_t fd = raw_syscall(SYS_memfd_create, word("view"), cloexec ? 1 /* MFD_CLOEXEC */ : 0);
  if (fd >= 0) {
    int memory = static_cast<int>(fd);
    // A file size limit would end the process with SIGXFSZ if the write were tried beyond it.
    if (pwrite(memory, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size())) return memory;
    close(memory);
  }
  int ends[2];
  if (pipe2(ends, flags & O_CLOEXEC) != 0) return -errno;
  fcntl(ends[1], F_SETPIPE_SZ, static_cast<int>(text.size()) + 4096);
  fcntl(ends[1], F_SETFL, O_NONBLOCK);
  bool done = write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(ends[1]);
  if (done) return ends[0];
  close(ends[0]);
  return -ENOMEM;
}

struct View {
  const char* name;
  std::string (*text)();
};
constexpr View kViews[] = {
    {"maps", maps_view}, {"cmdline", cmdline_view},  {"auxv", auxv_view},
    {"stat", stat_view}, {"/cpuinfo", cpuinfo_text},
};

}  // namespace

std::string view_of(const char* path) {
  constexpr const char* kProc = "/proc/";
  if (strncmp(path, kProc, strlen(kProc)) != 0) return {};
  path += strlen(kProc);
  if (strcmp(path, "cpuinfo") == 0) return "/cpuinfo";
  const char* slash = strchr(path, '/');
  if (!slash) return {};
  std::string folder(path, static_cast<size_t>(slash - path));
  if (folder != "self" && folder != "thread-self") {
    char* end;
    long pid = strtol(folder.c_str(), &end, 10);
    if (*end || pid != raw_syscall(SYS_getpid)) return {};
  }
  const char* name = slash + 1;
  // Threads show what their process does.
  if (strncmp(name, "task/", 5) == 0) {
    name = strchr(name + 5, '/');
    if (!name) return {};
    ++name;
    if (strcmp(name, "stat") == 0) return {};
  }
  if (strcmp(name, "exe") == 0) return name;
  for (const View& view : kViews) {
    if (strcmp(view.name, name) == 0) return name;
  }
  return {};
}

int open_view(const std::string& view, int flags) {
  if ((flags & O_ACCMODE) != O_RDONLY) return -EACCES;
  for (const View& known : kViews) {
    if (view == known.name) return write_view(known.text(), flags);
  }
  return -ENOENT;
}

}  // namespace phybin::process
