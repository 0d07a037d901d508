// See socket.h.
#include "proto/socket.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace phybin::proto {
namespace {

// Of the control message that carries kMaxDescriptors descriptors.
constexpr size_t kControlBytes = CMSG_SPACE(kMaxDescriptors * sizeof(int));

}  // namespace

int send_message(int socket, const void* data, size_t bytes, const int* descriptors, unsigned count, int flags) {
  if (count > kMaxDescriptors || bytes > kMaxMessageBytes) return -EMSGSIZE;
  iovec part{const_cast<void*>(data), bytes};
  alignas(cmsghdr) char control[kControlBytes];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (count != 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    memset(control, 0, message.msg_controllen);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(header), descriptors, count * sizeof(int));
  }
  for (;;) {
    const ssize_t sent = sendmsg(socket, &message, flags | MSG_NOSIGNAL);
    if (sent >= 0) return 0;
    if (errno != EINTR) return -errno;
  }
}

int receive_message(int socket, void* data, size_t size, int* descriptors, int flags, Received& received) {
  iovec part{data, size};
  alignas(cmsghdr) char control[kControlBytes];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t count;
  do {
    count = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
  } while (count < 0 && errno == EINTR);
  if (count < 0) return -errno;
  received = {static_cast<size_t>(count), 0};
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t here = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    memcpy(descriptors + received.descriptors, CMSG_DATA(header), here * sizeof(int));
    received.descriptors += static_cast<unsigned>(here);
  }
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    while (received.descriptors != 0) close(descriptors[--received.descriptors]);
    return -EMSGSIZE;
  }
  return 0;
}

}  // namespace phybin::proto
