// Builds the first stack, in the order that Linux uses. See the System V ABI for x86_64, "Process Initialization".
#include "worker/process/initial_stack.h"

#include <elf.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "worker/process/address_space.h"
#include "worker/process/core/elf_file.h"
#include "worker/runtime/cpuid.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

namespace phybin::process {
namespace {

constexpr uint64_t kDefaultStack = 8ull << 20, kSmallestStack = 128ull << 10, kLargestStack = 1ull << 30;
// Frame of a signal with FXSAVE area, XSAVE header and YMM state, rounded up as Linux does.
constexpr uint64_t kSignalFrameSize = 2560;

// What RLIMIT_STACK allows, within reason: the whole is mapped at once, and RLIMIT_AS must leave room for the rest.
uint64_t stack_size() {
  rlimit limit;
  uint64_t size = kDefaultStack;
  if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) size = limit.rlim_cur;
  size = std::clamp(size, kSmallestStack, kLargestStack);
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    size = std::max(std::min<uint64_t>(size, limit.rlim_cur / 8), kSmallestStack);
  }
  return size & ~(page_size() - 1);
}

class Pusher {
 public:
  explicit Pusher(uint64_t top) : at_(top) {}
  uint64_t push(const void* data, size_t size) {
    at_ -= size;
    memcpy(reinterpret_cast<void*>(at_), data, size);
    return at_;
  }
  uint64_t push(const char* text) { return push(text, strlen(text) + 1); }
  void align(uint64_t alignment) { at_ &= ~(alignment - 1); }
  void skip(uint64_t size) { at_ -= size; }
  uint64_t at() const { return at_; }

 private:
  uint64_t at_;
};

// The process's own environment: the kernel has laid the strings one behind the other, so they are copied as one.
struct Environment {
  const char* const* list;
  size_t count = 0, bytes = 0;

  explicit Environment(const char* const* environment) : list(environment) {
    while (list[count]) ++count;
    if (count) bytes = static_cast<size_t>(list[count - 1] - list[0]) + strlen(list[count - 1]) + 1;
  }
};

}  // namespace

std::string build_initial_stack(const StackContents& contents, Program& program) {
  const StartRequest& request = *contents.request;
  const Environment environment(request.environment);
  uint64_t strings = request.path.size() + 64 + environment.bytes + environment.count * 8;
  for (const char* text : request.arguments) strings += strlen(text) + 9;
  const uint64_t size = stack_size();
  // Linux: arguments and environment get a quarter of the limit, at most three quarters of 8 MiB.
  if (strings > size - size / 4) return "argument list too long";

  int protection = PROT_READ | PROT_WRITE | (contents.executable ? PROT_EXEC : 0);
  uint64_t hint = guest_top() - (guest_top() >> 12) - random_pages(guest_top() >> 13) - size;
  int64_t base = map_memory(hint & ~(page_size() - 1), size, protection,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (base < 0 && base >= -4095) return "no memory for the stack";
  program.stack_start = static_cast<uint64_t>(base);
  program.stack_end = program.stack_start + size;

  Pusher stack(program.stack_end);
  stack.skip(8);
  uint64_t file_name = stack.push(request.path.c_str());
  stack.push(environment.list[0], environment.bytes);
  // What is added to an old address to make a new one.
  const uint64_t moved = stack.at() - reinterpret_cast<uint64_t>(environment.list[0]);
  program.arguments_end = stack.at();
  std::vector<uint64_t> arguments(request.arguments.size());
  for (size_t i = arguments.size(); i-- > 0;) arguments[i] = stack.push(request.arguments[i]);
  program.arguments_start = stack.at();
  stack.skip(random_pages(page_size() * 512) / page_size() * 16);
  stack.align(16);
  uint64_t platform = stack.push("x86_64");
  uint8_t random[16] = {};
  if (getrandom(random, sizeof random, 0) != sizeof random) return "no random bytes";
  stack.align(16);
  uint64_t random_bytes = stack.push(random, sizeof random);

  auto& vector = program.auxiliary_vector;
  vector.clear();
  vector.reserve(64);
  auto add = [&](uint64_t type, uint64_t value) {
    vector.push_back(type);
    vector.push_back(value);
  };
  if (program.vdso) add(AT_SYSINFO_EHDR, program.vdso);
  add(AT_MINSIGSTKSZ, kSignalFrameSize);
  add(AT_HWCAP, runtime::cpuid_1_edx());
  add(AT_PAGESZ, page_size());
  add(AT_CLKTCK, static_cast<uint64_t>(sysconf(_SC_CLK_TCK)));
  add(AT_PHDR, contents.table_address);
  add(AT_PHENT, kProgramHeaderSize);
  add(AT_PHNUM, contents.table_count);
  add(AT_BASE, contents.interpreter_base);
  add(AT_FLAGS, 0);
  add(AT_ENTRY, contents.program_entry);
  add(AT_UID, getuid());
  add(AT_EUID, geteuid());
  add(AT_GID, getgid());
  add(AT_EGID, getegid());
  add(AT_SECURE, request.secure);
  add(AT_RANDOM, random_bytes);
  add(AT_HWCAP2, 0);
  add(AT_EXECFN, file_name);
  add(AT_PLATFORM, platform);
  add(AT_NULL, 0);

  // The stack pointer, where argc stands, is aligned to 16.
  uint64_t words = 1 + arguments.size() + 1 + environment.count + 1 + vector.size();
  stack.align(16);
  stack.skip(words * 8 + (words & 1) * 8);
  auto* at = reinterpret_cast<uint64_t*>(stack.at());
  *at++ = arguments.size();
  for (uint64_t argument : arguments) *at++ = argument;
  *at++ = 0;
  for (size_t i = 0; i < environment.count; ++i) *at++ = reinterpret_cast<uint64_t>(environment.list[i]) + moved;
  *at++ = 0;
  memcpy(at, vector.data(), vector.size() * sizeof vector[0]);
  program.stack_pointer = stack.at();
  return {};
}

}  // namespace phybin::process
