// The list of system calls against the kernel's headers for x86_64; the numbers of ARM64 are compared in
// syscall_list_arm64.cpp, because both headers define the same names.
#include <asm/unistd_64.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <set>
#include <string_view>
#include <vector>

#include "syscall_list_arm64.h"
#include "worker/syscalls/abi/convert.h"

namespace phybin::syscalls {
namespace {

enum Kind { own, pass, none };  // NOLINT(readability-identifier-naming): words of the list
struct Listed {
  int number;
  int by_header;
  const char* name;
  int arm64;
  const char* arguments;
  Kind kind;
};
#define SYSCALL(number, name, arm64, arguments, kind) {number, __NR_##name, #name, arm64, arguments, kind},
constexpr Listed kList[] = {
#include "worker/syscalls/abi/syscall_list.inc"
};
#undef SYSCALL

TEST(SyscallList, NumbersAreThoseOfTheHeader) {
  std::set<int> seen;
  for (const Listed& entry : kList) {
    EXPECT_EQ(entry.number, entry.by_header) << entry.name;
    EXPECT_TRUE(seen.insert(entry.number).second) << entry.name;
  }
  // Nothing up to the last number before the gap is missing.
  for (int number = 0; number <= 334; ++number) EXPECT_TRUE(seen.count(number)) << number;
  for (int number = 424; number <= 449; ++number) EXPECT_TRUE(seen.count(number)) << number;
}

TEST(SyscallList, NumbersOfArm64AreThoseOfTheHeader) {
  unsigned count;
  const Arm64Number* numbers = arm64_numbers(count);
  for (unsigned i = 0; i < count; ++i) EXPECT_EQ(numbers[i].listed, numbers[i].by_header) << numbers[i].name;
}

TEST(SyscallList, KindsAndArguments) {
  for (const Listed& entry : kList) {
    if (entry.kind == pass) {
      EXPECT_GE(entry.arm64, 0) << entry.name;
    }
    if (entry.kind == none) {
      EXPECT_EQ(entry.arm64, -1) << entry.name;
    }
    if (entry.kind != pass) {
      EXPECT_STREQ(entry.arguments, "") << entry.name;
    }
    EXPECT_LE(strlen(entry.arguments), 6u) << entry.name;
    EXPECT_EQ(strspn(entry.arguments, ".pbsSvmM"), strlen(entry.arguments)) << entry.name;
    size_t last = strlen(entry.arguments);
    if (last) {
      EXPECT_EQ(strchr("bvM", entry.arguments[last - 1]), nullptr) << entry.name << ": size is missing";
    }
  }
}

TEST(Convert, OpenFlags) {
  // <asm/fcntl.h>, octal as there.
  constexpr struct {
    uint64_t x86_64, arm64;
  } kFlags[] = {{040000, 0200000}, {0100000, 0400000}, {0200000, 040000}, {0400000, 0100000}};
  for (auto [guest, host] : kFlags) {
    EXPECT_EQ(open_flags_to_host(guest), host);
    EXPECT_EQ(open_flags_to_guest(host), guest);
  }
  for (uint64_t flag = 1; flag < 1u << 24; flag <<= 1) {
    EXPECT_EQ(open_flags_to_guest(open_flags_to_host(flag | 2)), flag | 2);
    if (flag < 040000 || flag > 0400000) {
      EXPECT_EQ(open_flags_to_host(flag), flag);
    }
  }
}

TEST(Convert, Stat) {
  // This test runs on x86_64 or ARM64; either way the guest's layout is x86_64's.
  struct stat host {};
  host.st_dev = 1;
  host.st_ino = 2;
  host.st_nlink = 3;
  host.st_mode = 4;
  host.st_uid = 5;
  host.st_gid = 6;
  host.st_rdev = 7;
  host.st_size = 8;
  host.st_blksize = 9;
  host.st_blocks = 10;
  host.st_atim = {11, 12};
  host.st_mtim = {13, 14};
  host.st_ctim = {15, 16};
  GuestStat guest = to_guest_stat(host);
#ifdef __x86_64__
  static_assert(sizeof guest == sizeof host);
  EXPECT_EQ(memcmp(&guest, &host, sizeof guest), 0);
#endif
  uint64_t words[18];
  memcpy(words, &guest, sizeof words);
  EXPECT_EQ(words[2], 3u);
  EXPECT_EQ(words[6], 8u);
  EXPECT_EQ(words[9], 11u);
  EXPECT_EQ(words[14], 16u);
}

TEST(Convert, Dirents) {
  std::vector<uint8_t> buffer;
  auto add = [&](uint64_t inode, uint8_t type, std::string_view name) {
    size_t at = buffer.size(), length = (19 + name.size() + 1 + 7) & ~size_t{7};
    buffer.resize(at + length);
    memcpy(&buffer[at], &inode, 8);
    uint16_t record = static_cast<uint16_t>(length);
    memcpy(&buffer[at + 16], &record, 2);
    buffer[at + 18] = type;
    memcpy(&buffer[at + 19], name.data(), name.size());
  };
  add(5, 4, ".");
  add(6, 8, "twelve-chars");
  add(7, 10, "a-name-of-some-length");
  size_t length = buffer.size();
  EXPECT_EQ(dirents_to_old(buffer.data(), length), length);
  size_t at = 0;
  constexpr struct {
    const char* name;
    uint8_t type;
  } kExpected[] = {{".", 4}, {"twelve-chars", 8}, {"a-name-of-some-length", 10}};
  for (auto [name, type] : kExpected) {
    uint16_t record;
    memcpy(&record, &buffer[at + 16], 2);
    EXPECT_STREQ(reinterpret_cast<char*>(&buffer[at + 18]), name);
    EXPECT_EQ(buffer[at + record - 1], type);
    at += record;
  }
  EXPECT_EQ(at, length);
  // Damaged records end the walk.
  buffer[16] = buffer[17] = 0xff;
  dirents_to_old(buffer.data(), length);
}

}  // namespace
}  // namespace phybin::syscalls
