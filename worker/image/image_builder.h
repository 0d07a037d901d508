// Makes images: the bytes of an ELF file and the entry points that processes have met in it -> an image file
// (proto/image_format.h) with code for both memory models.
//
// Pure and deterministic as the translator is: the same input gives the same file on every build host. Safe for any
// bytes and entry points: time and memory are bounded by the number of entry points, the size of the module and the
// limits of variant.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "worker/translator/host_features.h"

namespace phybin::image {

struct ImageInput {
  const uint8_t* file = nullptr;  // the whole ELF file
  size_t size = 0;
  // Offsets in the file, in any order; those with bit 31 set (proto::kUnalignedAccess) tell of instructions.
  std::vector<uint32_t> entry_points;
  HostFeatures host;
  CodeOptions options;  // the memory model does not matter
  // Leave out entry points that control-flow recovery (reachable.h) does not find.
  bool only_reachable = false;
};

// What became of the entry points.
struct ImageReport {
  uint64_t given = 0;          // each once
  uint64_t unaligned = 0;      // of them, instructions that get barriers
  uint64_t outside = 0;        // of the executable segment
  uint64_t not_reachable = 0;  // with only_reachable
  struct Variant {
    uint64_t dropped = 0;  // no room, or not an instruction that the text holds whole
    uint64_t entries = 0, code_bytes = 0, guest_instructions = 0, places = 0, slot_pairs = 0;
    uint64_t linked_exits = 0, open_exits = 0;
  } variants[2];  // ImageVariantIndex
};

// Returns why there can be no image of this file, empty when `image` holds one.
std::string build_image(const ImageInput& input, std::vector<uint8_t>& image, ImageReport& report);

}  // namespace phybin::image
