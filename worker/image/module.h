// What images need to know of an ELF file: where its code is and where an image of it goes. The bytes may be
// anything: every field is checked, and what could not be translated for every process that maps the file is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace phybin::image {

struct Module {
  const uint8_t* file = nullptr;
  size_t size = 0;
  bool position_independent = false;  // ET_DYN
  uint64_t entry = 0;
  // The one executable segment, as ImageHeader has it: file offset and linked address rounded down to 4096, bytes in
  // the file from there on.
  uint64_t text_file_offset = 0, text_address = 0, text_bytes = 0;
  uint64_t image_address = 0;  // ImageHeader::image_address
  // What is loaded of the file, ascending: [address, address + bytes) stands at `file_offset`.
  struct Segment {
    uint64_t address, file_offset, bytes;
  };
  std::vector<Segment> segments;
  uint64_t dynamic_offset = 0, dynamic_bytes = 0;  // PT_DYNAMIC in the file
  uint64_t frame_header = 0;                       // linked address of .eh_frame_hdr, 0: none

  const uint8_t* text() const { return file + text_file_offset; }
  bool in_text(uint64_t address) const { return address - text_address < text_bytes; }
  // The `bytes` loaded at a linked address; null if they are not all of the file.
  const uint8_t* loaded(uint64_t address, uint64_t bytes) const;
};

// Reads the headers of the file, which stays the caller's. Returns what is wrong, empty when nothing is.
std::string read_module(const uint8_t* file, size_t size, Module& module);

}  // namespace phybin::image
