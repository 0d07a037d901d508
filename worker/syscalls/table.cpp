// The table of system calls and the dispatch through it.
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>

#include "worker/syscalls/handlers.h"
#include "worker/syscalls/syscalls.h"

namespace phybin::syscalls {
namespace {

// Without pointers, which would have to be relocated whenever the worker starts.
struct Entry {
  int16_t arm64 = -1;
  bool own = false;
  uint8_t paths = 0, writes = 0;  // bit i: argument i is a path, is written to by the kernel
  char arguments[7] = {};
};

constexpr size_t kTableSize = 512;
constexpr size_t kNameSize = 24;
using Name = std::array<char, kNameSize>;  // empty: unknown

template <size_t Size>
constexpr Entry make_entry(int arm64, const char (&arguments)[Size], bool own) {
  static_assert(Size <= sizeof(Entry::arguments));
  Entry entry;
  entry.arm64 = static_cast<int16_t>(arm64);
  entry.own = own;
  for (size_t i = 0; i + 1 < Size; ++i) {
    entry.arguments[i] = arguments[i];
    if (arguments[i] == 'p') entry.paths = static_cast<uint8_t>(entry.paths | 1u << i);
    if (arguments[i] != 'p' && arguments[i] != '.') entry.writes = static_cast<uint8_t>(entry.writes | 1u << i);
  }
  return entry;
}

template <size_t Size>
constexpr Name make_name(const char (&text)[Size]) {
  static_assert(Size <= kNameSize);
  Name name{};
  std::copy(text, text + Size, name.begin());
  return name;
}

#define PHYBIN_IS_own true
#define PHYBIN_IS_pass false
#define PHYBIN_IS_none false

constexpr std::array<Entry, kTableSize> make_table() {
  std::array<Entry, kTableSize> table{};
#define SYSCALL(number, name, arm64, arguments, handler) \
  table[number] = make_entry(arm64, arguments, PHYBIN_IS_##handler);
#include "worker/syscalls/abi/syscall_list.inc"
#undef SYSCALL
  return table;
}

constexpr std::array<Name, kTableSize> make_names() {
  std::array<Name, kTableSize> names{};
#define SYSCALL(number, name, arm64, arguments, handler) names[number] = make_name(#name);
#include "worker/syscalls/abi/syscall_list.inc"
#undef SYSCALL
  return names;
}

constexpr std::array<Entry, kTableSize> kTable = make_table();
constexpr std::array<Name, kTableSize> kNames = make_names();

int64_t call_own(uint64_t number, GuestState& state, const uint64_t* arguments) {
#define PHYBIN_CASE_own(number, name) \
  case number:                        \
    return sys_##name(state, arguments);
#define PHYBIN_CASE_pass(number, name)
#define PHYBIN_CASE_none(number, name)
#define SYSCALL(number, name, arm64, arguments, handler) PHYBIN_CASE_##handler(number, name)
  switch (number) {
#include "worker/syscalls/abi/syscall_list.inc"
    default:
      return -ENOSYS;
  }
#undef SYSCALL
}

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

// With one or two paths among the arguments: those of `paths`.
int64_t pass_with_paths(const Entry& entry, uint64_t* arguments, unsigned paths) {
  if (paths == 0) return issue(entry, arguments);
  const int i = std::countr_zero(paths);
  Path path(arguments[i]);
  arguments[i] = path.host();
  return pass_with_paths(entry, arguments, paths & (paths - 1));
}

int64_t pass_on(const Entry& entry, const uint64_t* arguments) {
  for (unsigned writes = entry.writes; writes != 0; writes &= writes - 1) {
    const int i = std::countr_zero(writes);
    prepare_write(entry.arguments[i], arguments + i);
  }
  if (entry.paths == 0) return issue(entry, arguments);
  uint64_t copy[6];
  memcpy(copy, arguments, sizeof copy);
  return pass_with_paths(entry, copy, entry.paths);
}

// Each number that nobody handles is mentioned once.
void log_unknown(uint64_t number) {
  static std::atomic<uint64_t> seen[kTableSize / 64 + 1];
  uint64_t index = number < kTableSize ? number : kTableSize;
  uint64_t bit = uint64_t{1} << (index % 64);
  if (seen[index / 64].fetch_or(bit) & bit) return;
  process::log_line("system call %lu (%s) is not implemented", number,
                    number < kTableSize && kNames[number][0] ? kNames[number].data() : "unknown");
}

}  // namespace

void handle(GuestState& state) {
  uint64_t number = state.gpr[0];
  const uint64_t arguments[6] = {state.gpr[7], state.gpr[6], state.gpr[2], state.gpr[10], state.gpr[8], state.gpr[9]};
  const Entry& entry = kTable[number < kTableSize ? number : kTableSize - 1];
  int64_t result;
  if (entry.own) {
    result = call_own(number, state, arguments);
  } else if (entry.arm64 >= 0) {
    result = pass_on(entry, arguments);
  } else {
    log_unknown(number);
    result = -ENOSYS;
  }
  state.gpr[0] = static_cast<uint64_t>(result);
}

}  // namespace phybin::syscalls
