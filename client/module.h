// The program or library that --module names.
#pragma once

#include "client/connection.h"

namespace phybin::client {

// Adds it to a request, if it was given: its path, without symbolic links, and the digest of its content if it can be
// read. The daemon knows modules by both, so that images of files that are gone or were replaced are found too.
void add_module(const Arguments& arguments, Json& request);

}  // namespace phybin::client
