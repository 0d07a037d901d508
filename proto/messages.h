// What workers and the daemon say to each other on the daemon's SOCK_SEQPACKET socket.
//
// A worker's messages are structures of fixed layout: a program that starts warm executes fewer instructions in all
// than a JSON parser needs for one message. Clients (phybinctl) use the same socket with JSON; the first byte tells
// which it is: '{' begins JSON, any other byte is a MessageKind. Files go along as descriptors (SCM_RIGHTS).
//
// A worker sends Hello and waits once for the answer; everything after that is sent without waiting, and read when
// the worker comes by. Both ends take nothing on trust: sizes, counts and indexes are checked, unknown kinds end the
// connection. docs/protocol.md tells the order of messages.
#pragma once

#include <atomic>
#include <cstdint>

#include "proto/image_format.h"

namespace phybin::proto {

inline constexpr uint16_t kProtocolVersion = 1;
inline constexpr unsigned kMaxMessageBytes = 64 << 10;
inline constexpr unsigned kMaxDescriptors = 64;  // of one message

enum class MessageKind : uint8_t { kHello = 1, kWelcome = 2, kModule = 3, kImages = 4 };

struct MessageHeader {
  MessageKind kind;
  uint8_t flags;
  uint16_t version;
  uint32_t bytes;  // of the whole message
};

// A file as stat(2) shows it. As long as none of these changes, its content has not (on local file systems).
struct FileKey {
  uint64_t device, inode, size;
  int64_t modified_ns, changed_ns;  // since the epoch

  bool operator==(const FileKey&) const = default;
};
static_assert(sizeof(FileKey) == 40);

// Values of --shared-translation-cache.
enum class CachePolicy : uint32_t { kOff, kRead, kOn, kAuto };

// Worker to daemon, first. Descriptor: the program, opened for reading (may be missing: an execute-only file).
struct Hello {
  MessageHeader header;
  Digest translator_build;
  uint32_t host_features;  // as in ImageHeader
  uint32_t code_options;
  CachePolicy wanted;  // the worker's option; kOff workers do not connect
  uint32_t cpu;        // that it runs on: tells the NUMA node
  FileKey program;
  char name[64];  // of the program, for [program:NAME] policies and `phybinctl top`; ends with 0
};

// An image offered. Its descriptor stands in the message at the same position among the images.
struct ImageOffer {
  FileKey module;
  uint64_t file_bytes;
  uint64_t id;  // of the image in this daemon, for counters
};

// Daemon to worker, the answer to Hello. Descriptors: the policy page (read-only), the worker's page, then an image
// for each offer. If kMore is set in header.flags, Images messages with further offers follow at once.
struct Welcome {
  MessageHeader header;
  uint32_t policy_index;  // of PolicyPage::words
  uint32_t offers;
  // ImageOffer[offers] follow
};
inline constexpr uint8_t kMore = 1;
inline constexpr unsigned kWelcomePages = 2;

// Worker to daemon: gives a module its number. Sent when a module is mapped for which no image was offered; its
// descriptor is the file, opened for reading. And, without a descriptor, when the first entry point is noted in a
// module for which an image was offered (so the daemon knows that file). The program, number 0, is never announced.
struct ModuleMet {
  MessageHeader header;
  uint32_t module;  // number that the worker's ring entries name it by: 0 is the program, then counting up
  uint32_t reserved;
  FileKey file;
};

// Daemon to worker: images that were found later, descriptors as in Welcome.
struct Images {
  MessageHeader header;
  uint32_t offers;
  uint32_t reserved;
  // ImageOffer[offers] follow
};

// The policies in force, one page for all workers of a daemon; only the daemon can write it.
struct PolicyPage {
  static constexpr uint32_t kWords = 1024;
  std::atomic<uint32_t> words[kWords];  // CachePolicy: kOff, kRead or kOn; kAuto is decided by the daemon
};
static_assert(sizeof(PolicyPage) == 4096);

// A worker's page: counters that it alone writes, and the ring of entry points that had to be translated. The daemon
// reads it whenever it likes, also after the worker has died, and believes nothing in it without a check.
struct RingEntry {
  uint32_t module;  // ModuleMet::module
  uint32_t offset;  // of the entry point's first byte in the module's file; with kUnalignedAccess: of an instruction
};
struct WorkerPage {
  static constexpr uint32_t kRingEntries = (512 << 10) / sizeof(RingEntry);
  std::atomic<uint64_t> guest_instructions;  // translated privately
  std::atomic<uint64_t> regions;             // likewise
  std::atomic<uint64_t> code_bytes;          // private code memory in use
  std::atomic<uint64_t> images;              // attached
  std::atomic<uint64_t> image_bytes;         // of their files
  std::atomic<uint64_t> image_links;         // slots of images that were filled
  std::atomic<uint64_t> threads;
  std::atomic<uint64_t> reserved[56];
  std::atomic<uint64_t> ring_count;  // entries written so far; entry i stands at ring[i % kRingEntries]
  RingEntry ring[kRingEntries];
};
static_assert(sizeof(WorkerPage) == 512 + (512 << 10));

}  // namespace phybin::proto
