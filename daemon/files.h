// Small work with files and folders.
#pragma once

#include <sys/types.h>

#include <string>

namespace phybin::daemon {

// Makes the folder and those above it that are missing. An empty string, or what is wrong.
std::string make_directories(const std::string& path, mode_t mode);

// fsync() of a folder, so that names in it survive a power failure. 0 or errno.
int sync_directory(const std::string& path);

// Writes all of it at the file's position. 0 or errno.
int write_all(int fd, const void* data, size_t bytes);

}  // namespace phybin::daemon
