// The table of system calls and the dispatch through it.
#include <sys/uio.h>

#include <array>
#include <atomic>
#include <cstring>

#include "worker/syscalls/handlers.h"
#include "worker/syscalls/syscalls.h"

namespace phybin::syscalls {
namespace {

struct Entry {
  const char* name = nullptr;  // null: unknown
  int arm64 = -1;
  const char* arguments = "";
  Handler own = nullptr;
};

constexpr size_t kTableSize = 512;

#define PHYBIN_ENTRY_own(name) sys_##name
#define PHYBIN_ENTRY_pass(name) nullptr
#define PHYBIN_ENTRY_none(name) nullptr
#define SYSCALL(number, name, arm64, arguments, handler) \
  table[number] = {#name, arm64, arguments, PHYBIN_ENTRY_##handler(name)};
constexpr std::array<Entry, kTableSize> make_table() {
  std::array<Entry, kTableSize> table{};
#include "worker/syscalls/abi/syscall_list.inc"
  return table;
}
#undef SYSCALL

constexpr std::array<Entry, kTableSize> kTable = make_table();

constexpr uint64_t kSmall = 256, kLarge = 4096;

void before_vector_write(uint64_t vector, uint64_t count) {
  for (uint64_t i = 0; i < count && i < IOV_MAX; ++i) {
    iovec part;
    if (!runtime::read_guest(vector + i * sizeof part, part)) return;
    runtime::before_kernel_writes(word(part.iov_base), part.iov_len);
  }
}

void before_message_write(uint64_t address) {
  struct {
    uint64_t name;
    uint32_t name_length, pad;
    uint64_t vector, vector_length, control, control_length;
  } message;
  if (!runtime::read_guest(address, message)) return;
  runtime::before_kernel_writes(address, kSmall);
  if (message.name) runtime::before_kernel_writes(message.name, message.name_length);
  if (message.control) runtime::before_kernel_writes(message.control, message.control_length);
  before_vector_write(message.vector, message.vector_length);
}

void before_messages_write(uint64_t address, uint64_t count) {
  constexpr uint64_t kMessageSize = 64;  // struct mmsghdr
  for (uint64_t i = 0; i < count && i < IOV_MAX; ++i) before_message_write(address + i * kMessageSize);
}

void prepare_write(char kind, const uint64_t* argument) {
  if (*argument == 0) return;
  switch (kind) {
    case 'b':
      runtime::before_kernel_writes(argument[0], argument[1]);
      break;
    case 's':
      runtime::before_kernel_writes(argument[0], kSmall);
      break;
    case 'S':
      runtime::before_kernel_writes(argument[0], kLarge);
      break;
    case 'v':
      before_vector_write(argument[0], argument[1]);
      break;
    case 'm':
      before_message_write(argument[0]);
      break;
    case 'M':
      before_messages_write(argument[0], static_cast<uint32_t>(argument[1]));
      break;
    default:
      break;
  }
}

int64_t issue(const Entry& entry, const uint64_t* a) {
  return runtime::interruptible_syscall(entry.arm64, a[0], a[1], a[2], a[3], a[4], a[5]);
}

// With one or two paths among the arguments.
int64_t pass_with_paths(const Entry& entry, uint64_t* arguments, unsigned from) {
  for (unsigned i = from; entry.arguments[i]; ++i) {
    if (entry.arguments[i] != 'p') continue;
    Path path(arguments[i]);
    arguments[i] = path.host();
    return pass_with_paths(entry, arguments, i + 1);
  }
  return issue(entry, arguments);
}

int64_t pass_on(const Entry& entry, const uint64_t* arguments) {
  if (!*entry.arguments) return issue(entry, arguments);
  uint64_t copy[6];
  memcpy(copy, arguments, sizeof copy);
  bool has_path = false;
  for (unsigned i = 0; entry.arguments[i]; ++i) {
    if (entry.arguments[i] == 'p')
      has_path = true;
    else
      prepare_write(entry.arguments[i], arguments + i);
  }
  return has_path ? pass_with_paths(entry, copy, 0) : issue(entry, copy);
}

// Each number that nobody handles is mentioned once.
void log_unknown(uint64_t number, const char* name) {
  static std::atomic<uint64_t> seen[kTableSize / 64 + 1];
  uint64_t index = number < kTableSize ? number : kTableSize;
  uint64_t bit = uint64_t{1} << (index % 64);
  if (seen[index / 64].fetch_or(bit) & bit) return;
  process::log_line("system call %lu (%s) is not implemented", number, name ? name : "unknown");
}

}  // namespace

void handle(GuestState& state) {
  uint64_t number = state.gpr[0];
  const uint64_t arguments[6] = {state.gpr[7], state.gpr[6], state.gpr[2], state.gpr[10], state.gpr[8], state.gpr[9]};
  const Entry& entry = kTable[number < kTableSize ? number : kTableSize - 1];
  int64_t result;
  if (entry.own) {
    result = entry.own(state, arguments);
  } else if (entry.arm64 >= 0) {
    result = pass_on(entry, arguments);
  } else {
    log_unknown(number, entry.name);
    result = -ENOSYS;
  }
  state.gpr[0] = static_cast<uint64_t>(result);
}

}  // namespace phybin::syscalls
