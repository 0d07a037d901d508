// Checks of image files. An image is code that a process will execute: the daemon checks the whole file before it
// hands it out, the worker checks the header of what it got, so that it looks for nothing outside of the file.
//
// Both are safe for any bytes whatever and return what is wrong, or null if nothing is.
#pragma once

#include <cstddef>
#include <cstdint>

#include "proto/image_format.h"

namespace phybin::proto {

// The header of a file of `file_bytes`. Whether the image is the one that is wanted (digests, features, options) is
// for the caller to say.
const char* check_image_header(const ImageHeader& header, uint64_t file_bytes);

// The whole file, `size` bytes that do not change meanwhile: header, digest, and that indexes, slots and tables hold
// nothing that misleads who uses them. That the code is what the translator makes of the module can be told only by
// translating again.
const char* verify_image(const uint8_t* file, size_t size);

// SHA-256 of an image file as ImageHeader::content_digest holds it: of all bytes, with that field zero. `size` is at
// least sizeof(ImageHeader).
void image_content_digest(const uint8_t* file, size_t size, Digest& digest);

}  // namespace phybin::proto
