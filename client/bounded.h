// Work on files that may never answer. A file system whose server is gone stops whoever asks it for something, for
// hours or for ever. So such work is done by a child process, and when nothing is heard of that any more it is left
// to itself.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace phybin::client {

// Told in the child, heard in the parent: the work goes on, and how far it is. At most 32 KiB.
using Tell = std::function<void(const std::string& text)>;

// Runs `work` in a child process of this one, which must have no other threads, and returns what it returns. Nothing:
// it was silent for `limit`, or died. The child has no descriptors of ours, and its standard streams lead nowhere.
std::optional<std::string> run_bounded(std::chrono::milliseconds limit,
                                       const std::function<std::string(const Tell& tell)>& work,
                                       const Tell& heard = {});

}  // namespace phybin::client
