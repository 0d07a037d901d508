// From the path of a program to its first instruction: opening it, scripts, loading the program and its interpreter.
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <span>

#include "worker/process/address_space.h"
#include "worker/process/core/elf_file.h"
#include "worker/process/core/vdso_image.h"
#include "worker/process/descriptors.h"
#include "worker/process/initial_stack.h"
#include "worker/process/modules.h"
#include "worker/process/program.h"
#include "worker/process/raw_syscall.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

extern "C" const char* const* phybin_environment;  // start.S

namespace phybin::process {
namespace {

constexpr int kCannotRun = 126, kNotFound = 127;
constexpr unsigned kMaxScripts = 5;  // as Linux
constexpr int kAnonymous = MAP_PRIVATE | MAP_ANONYMOUS;

Program the_program;

Failure refuse(const std::string& path, const std::string& why, int status = kCannotRun) {
  return {status, path + ": " + why};
}

Failure refuse_errno(const std::string& path, const char* what, int error) {
  return refuse(path, std::string(what) + strerror(error),
                error == ENOENT || error == ENOTDIR || error == ELOOP ? kNotFound : kCannotRun);
}

struct File {
  int fd = -1;
  struct stat status;
  uint64_t size = 0;
  uint8_t head[1024];  // the program headers are mostly there too
  size_t head_size = 0;

  File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd >= 0) close(fd);
  }
  int release() {
    int result = fd;
    fd = -1;
    return result;
  }
};

bool read_fully(int fd, void* to, size_t size, uint64_t offset) {
  auto* at = static_cast<uint8_t*>(to);
  while (size > 0) {
    ssize_t count = pread(fd, at, size, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += count;
    offset += static_cast<uint64_t>(count);
    size -= static_cast<size_t>(count);
  }
  return true;
}

// Looks at an opened program.
Failure examine(const std::string& path, File& file) {
  struct stat& status = file.status;
  if (fstat(file.fd, &status) != 0) return refuse_errno(path, "", errno);
  if (S_ISDIR(status.st_mode)) return refuse(path, "is a directory");
  if (!S_ISREG(status.st_mode)) return refuse(path, "not a regular file");
  file.size = static_cast<uint64_t>(status.st_size);
  ssize_t count = pread(file.fd, file.head, sizeof file.head, 0);
  if (count < 0) return refuse_errno(path, "", errno);
  file.head_size = static_cast<size_t>(count);
  return {};
}

Failure open_file(const std::string& path, bool needs_execute, File& file) {
  char buffer[kPathBuffer];
  const char* name = host_path(path.c_str(), buffer);
  // Not blocking: the path may name a pipe.
  file.fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file.fd < 0) return refuse_errno(path, "", errno);
  Failure failure = examine(path, file);
  if (failure.status) return failure;
  if (needs_execute && faccessat(AT_FDCWD, name, X_OK, AT_EACCESS) != 0) return refuse_errno(path, "", errno);
  return {};
}

struct LoadedFile {
  ElfLayout layout;
  uint64_t bias = 0;
  uint64_t entry = 0;
  uint64_t end = 0;  // of the last segment's memory, not rounded
  unsigned table_count = 0;
};

// Where a position-independent program goes: like Linux, two thirds up, so that heap and mappings have room.
uint64_t program_base() { return (guest_top() / 3 * 2 & ~uint64_t{0xffffff}) + random_pages(guest_top() >> 7); }

// Finds room for the whole span of a position-independent file: addresses are held with an inaccessible mapping.
int64_t reserve_span(const ElfLayout& layout, bool is_main) {
  uint64_t span = layout.high - layout.low, slack = layout.alignment - page_size();
  uint64_t hint = is_main ? program_base() & ~(layout.alignment - 1) : 0;
  int64_t base = map_memory(hint, span + slack, PROT_NONE, kAnonymous | MAP_NORESERVE, -1, 0);
  if (failed(base) || slack == 0) return base;
  uint64_t start = static_cast<uint64_t>(base), end = start + span + slack;
  uint64_t aligned = (start + slack) & ~(layout.alignment - 1);
  if (aligned > start) unmap_memory(start, aligned - start);
  if (end > aligned + span) unmap_memory(aligned + span, end - aligned - span);
  return static_cast<int64_t>(aligned);
}

std::string map_segment(const Segment& segment, uint64_t bias, int fd, int fixed_flag) {
  const uint64_t mask = page_size() - 1;
  const uint64_t address = segment.address + bias, start = address & ~mask;
  const uint64_t file_end = address + segment.file_size, memory_end = (address + segment.memory_size + mask) & ~mask;
  uint64_t mapped_end = start;
  if (segment.file_size) {
    mapped_end = (file_end + mask) & ~mask;
    int64_t result = map_memory(start, mapped_end - start, segment.protection, MAP_PRIVATE | fixed_flag, fd,
                                segment.file_offset & ~mask);
    if (failed(result)) return strerror(static_cast<int>(-result));
    if (segment.memory_size > segment.file_size && file_end < mapped_end && segment.protection & PROT_WRITE) {
      memset(reinterpret_cast<void*>(file_end), 0, mapped_end - file_end);
    }
  }
  if (memory_end > mapped_end) {
    int64_t result =
        map_memory(mapped_end, memory_end - mapped_end, segment.protection, kAnonymous | fixed_flag, -1, 0);
    if (failed(result)) return strerror(static_cast<int>(-result));
  }
  return {};
}

// Maps a file whose head was examined. On failure what is mapped already stays: the process ends anyway.
Failure load_file(const std::string& path, File& file, bool is_main, LoadedFile& loaded) {
  ElfHeader header;
  std::string error = read_elf_header(file.head, file.head_size, file.size, header);
  if (!error.empty()) return refuse(path, error);
  const size_t table_size = header.table_count * kProgramHeaderSize;
  const uint8_t* table;
  std::vector<uint8_t> copy;
  if (header.table_offset + table_size <= file.head_size) {
    table = file.head + header.table_offset;
  } else {
    copy.resize(table_size);
    if (!read_fully(file.fd, copy.data(), table_size, header.table_offset)) {
      return refuse(path, "cannot read the program headers");
    }
    table = copy.data();
  }
  ElfLayout& layout = loaded.layout;
  error = read_elf_layout(header, table, table_size, file.size, page_size(), layout);
  if (!error.empty()) return refuse(path, error);

  const uint64_t mask = page_size() - 1;
  if (header.position_independent) {
    int64_t base = reserve_span(layout, is_main && layout.has_interpreter);
    if (failed(base)) return refuse(path, "no room for its segments");
    loaded.bias = static_cast<uint64_t>(base) - layout.low;
  }
  uint64_t mapped_end = 0;
  for (const Segment& segment : layout.segments) {
    const uint64_t start = (segment.address + loaded.bias) & ~mask;
    // Segments may share a page: the later one is what the page holds.
    bool replaces = header.position_independent || start < mapped_end;
    error = map_segment(segment, loaded.bias, file.fd, replaces ? MAP_FIXED : MAP_FIXED_NOREPLACE);
    if (!error.empty()) {
      char where[64];
      snprintf(where, sizeof where, "cannot map a segment at 0x%lx: ", segment.address + loaded.bias);
      return refuse(path, where + error);
    }
    // The span was reserved as a whole; between segments nothing is mapped.
    if (header.position_independent && mapped_end && start > mapped_end) unmap_memory(mapped_end, start - mapped_end);
    loaded.end = segment.address + segment.memory_size + loaded.bias;
    mapped_end = (loaded.end + mask) & ~mask;
  }
  loaded.entry = header.entry + loaded.bias;
  loaded.table_count = header.table_count;
  return {};
}

Failure load_interpreter(const std::string& program_path, File& file, const ElfLayout& layout, LoadedFile& loaded) {
  std::string path(layout.interpreter_size, '\0');
  if (!read_fully(file.fd, path.data(), path.size(), layout.interpreter_offset) || path.back() != '\0') {
    return refuse(program_path, "interpreter path is not a string");
  }
  path.resize(strlen(path.c_str()));
  File interpreter;
  Failure failure = open_file(path, true, interpreter);
  if (failure.status == 0) {
    FileKind kind = classify(interpreter.head, interpreter.head_size);
    failure =
        kind == FileKind::kX64 ? load_file(path, interpreter, false, loaded) : refuse(path, "not an x86_64 ELF file");
  }
  if (failure.status) failure.message = program_path + ": interpreter " + failure.message;
  return failure;
}

// The kernel runs natives; this returns only if it will not.
Failure run_native(const std::string& path, const StartRequest& request) {
  std::vector<const char*> arguments = request.arguments;
  arguments.push_back(nullptr);
  execve(path.c_str(), const_cast<char**>(arguments.data()), const_cast<char**>(request.environment));
  return refuse_errno(path, "", errno);
}

std::string path_of_descriptor(int fd, const std::string& otherwise) {
  char link[64], target[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, target, sizeof target);
  std::string path = length > 0 ? std::string(target, static_cast<size_t>(length)) : otherwise;
  const std::string& root = the_program.options.rootfs;
  // Inside the root the guest's own names hold.
  if (!root.empty() && path.size() > root.size() && path.compare(0, root.size(), root) == 0 &&
      path[root.size()] == '/') {
    path.erase(0, root.size());
  }
  return path;
}

// Where the heap begins: behind the program with a random gap. Behind a program at a low address a large heap would
// take all that MAP_32BIT can give out, so it goes above that.
uint64_t heap_place(uint64_t program_end, uint64_t size) {
  constexpr uint64_t kGap = 32 << 20, kLowStart = 0x40000000, kLowEnd = 0x80000000, kAbove = 0x100000000;
  uint64_t start = (program_end + page_size() - 1) & ~(page_size() - 1);
  if (start < kLowEnd && start + kGap + size > kLowStart) start = kAbove;
  return start + random_pages(kGap);
}

Failure load_elf(const StartRequest& request, const std::string& path, File& file) {
  Program& program = the_program;
  program.executable = path_of_descriptor(file.fd, path);
  for (const char* text : request.arguments) program.arguments.append(text, strlen(text) + 1);
  tell_program(file.fd, file.status, program.executable.c_str() + program.executable.rfind('/') + 1);
  LoadedFile main_file, interpreter;
  Failure failure = load_file(path, file, true, main_file);
  if (failure.status) return failure;
  // The heap before everything else that goes to free places, so that it keeps its room.
  const uint64_t image_end = image_end_behind(main_file.bias + main_file.layout.low, main_file.end);
  place_heap(heap_place(std::max(main_file.end, image_end), program.options.heap_size), program.options.heap_size);
  if (main_file.layout.has_interpreter) {
    failure = load_interpreter(path, file, main_file.layout, interpreter);
    if (failure.status) return failure;
  }
  program.entry = interpreter.entry ? interpreter.entry : main_file.entry;

  const std::span<const uint8_t> vdso = vdso_image();
  int64_t vdso_at = map_memory(0, vdso.size(), PROT_READ | PROT_WRITE, kAnonymous, -1, 0);
  if (!failed(vdso_at)) {
    program.vdso = static_cast<uint64_t>(vdso_at);
    program.vdso_end = program.vdso + page_size();
    memcpy(reinterpret_cast<void*>(program.vdso), vdso.data(), vdso.size());
    protect_memory(program.vdso, vdso.size(), PROT_READ | PROT_EXEC);
  }

  StackContents contents;
  contents.request = &request;
  contents.table_address = main_file.layout.table_address ? main_file.layout.table_address + main_file.bias : 0;
  contents.table_count = main_file.table_count;
  contents.interpreter_base = interpreter.bias + interpreter.layout.low;
  contents.program_entry = main_file.entry;
  contents.executable = main_file.layout.executable_stack;
  std::string error = build_initial_stack(contents, program);
  if (!error.empty()) return refuse(path, error);
  keep_descriptor(OwnDescriptor::kProgram, file.release());
  return {};
}

}  // namespace

const char* const* environment() { return phybin_environment; }

const Program& program() { return the_program; }
Program& program_for_start() { return the_program; }

Failure load_program(const StartRequest& original) {
  StartRequest request = original;
  std::deque<std::string> texts;  // arguments that scripts add
  std::string path = request.path;
  for (unsigned depth = 0;; ++depth) {
    File file;
    Failure failure;
    if (request.fd >= 0 && depth == 0) {
      file.fd = request.fd;
      failure = examine(path, file);
    } else {
      failure = open_file(path, true, file);
    }
    if (failure.status) return failure;
    switch (classify(file.head, file.head_size)) {
      case FileKind::kX64:
        return load_elf(request, path, file);
      case FileKind::kNative:
        return run_native(path, request);
      case FileKind::kOtherElf:
        return refuse(path, describe_machine(file.head, file.head_size) + "; only 64-bit x86_64 programs can be run");
      case FileKind::kEmpty:
        return refuse(path, "empty file");
      case FileKind::kUnknown:
        return refuse(path, "neither an ELF program nor a script with #!");
      case FileKind::kScript: {
        ScriptLine line;
        if (!read_script_line(reinterpret_cast<const char*>(file.head), file.head_size, line)) {
          return refuse(path, "bad interpreter line");
        }
        if (depth == kMaxScripts) return refuse(path, "too many nested scripts");
        std::vector<const char*> arguments{texts.emplace_back(line.interpreter).c_str()};
        if (line.has_argument) arguments.push_back(texts.emplace_back(line.argument).c_str());
        arguments.push_back(texts.emplace_back(path).c_str());
        if (!request.arguments.empty()) {
          arguments.insert(arguments.end(), request.arguments.begin() + 1, request.arguments.end());
        }
        request.arguments = std::move(arguments);
        path = line.interpreter;
        break;
      }
    }
  }
}

}  // namespace phybin::process
