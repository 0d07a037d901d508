// The connection to the daemon: one question and one answer at start, then messages in both directions that nobody
// waits for. What comes in is checked; the connection is closed at the first message that makes no sense. Callers
// hold the lock of the cache.
#pragma once

#include <string>

#include "proto/messages.h"

namespace phybin::cache {

struct Address {
  std::string socket;                    // empty: the system's, or else the user's own
  const char* runtime_folder = nullptr;  // $XDG_RUNTIME_DIR
  bool secure = false;                   // only the system's daemon will do
};

// Connects, says hello and waits at most `timeout` milliseconds for the answer. Takes over what is offered, maps the
// pages. False if there is no daemon that answers as it should: then nothing is left of it.
bool connect(const Address& address, const proto::Hello& hello, int program, unsigned timeout);
bool is_connected();
void disconnect();

// Takes images that have been offered meanwhile. True if there were some.
bool read_offers();
// Gives a module its number; `fd` is -1 if the daemon knows the file. False if it did not get through.
bool announce_module(uint32_t module, const proto::FileKey& file, int fd);

}  // namespace phybin::cache
