// Whether an image file is whole, and what it is for.
#pragma once

#include <string>

#include "daemon/descriptor.h"
#include "daemon/store.h"

namespace phybin::daemon {

struct CheckedImage {
  std::string problem;  // empty: it is good
  ImageKey key;         // but for the scope, which no file knows
  uint64_t file_bytes = 0, entries = 0;
  proto::FileKey stat{};
};

// Reads all of the file. From any thread.
CheckedImage check_image(int file);

// Stat data in the form of messages; false: errno.
bool stat_file(int file, proto::FileKey& key);

}  // namespace phybin::daemon
