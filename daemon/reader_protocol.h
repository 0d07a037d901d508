// What the daemon and its reader processes say to each other, over a SOCK_SEQPACKET pair. Both are the same program.
#pragma once

#include <cstdint>

#include "daemon/digest.h"
#include "proto/messages.h"

namespace phybin::daemon {

// What is known of a file without reading it.
struct FileFacts {
  proto::FileKey key{};
  Digest file_system{};    // names the file system, also after it was mounted again
  uint32_t owner = 0;      // user id
  bool memorable = false;  // as long as the key is the same, so is the content
  bool everyone = false;   // memorable, and only root can change it
};

// Number of its socket in a reader process.
inline constexpr int kReaderSocket = 3;

enum class ReadKind : uint32_t {
  kExamine,  // facts only
  kDigest,   // and the digest of the content
  kCopy,     // and a sealed copy of the content
};

// With the file's descriptor, or without one and with its path.
struct ReadRequest {
  ReadKind kind;
  uint64_t limit;  // of the file's size
  char path[1024];
};

// With a descriptor of the copy for kCopy.
struct ReadReply {
  int32_t error = 0;  // an errno; ESTALE: it changed while it was read
  FileFacts facts;
  Digest digest{};
};

// The reader process: serves requests from `socket` until it is closed. The exit status.
int run_reader(int socket);

}  // namespace phybin::daemon
