// Messages with descriptors over a SOCK_SEQPACKET socket. Plain system calls: the worker uses this as well, where
// nothing may throw or allocate.
#pragma once

#include <cstddef>
#include <cstdint>

#include "proto/messages.h"

namespace phybin::proto {

// Sends one whole message; does not take the descriptors over. `flags` as for sendmsg(2), MSG_NOSIGNAL is added.
// 0 or -errno.
int send_message(int socket, const void* data, size_t bytes, const int* descriptors, unsigned count, int flags);

struct Received {
  size_t bytes = 0;          // 0: the other end has closed
  unsigned descriptors = 0;  // in the caller's array, close-on-exec, the caller's to close
};

// Receives one message of at most `size` bytes with at most kMaxDescriptors descriptors. `flags` as for recvmsg(2).
// 0 or -errno; -EMSGSIZE for what does not fit, and nothing stays open then.
int receive_message(int socket, void* data, size_t size, int* descriptors, int flags, Received& received);

}  // namespace phybin::proto
