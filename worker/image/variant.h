// The code of one variant of an image: regions translated one by one, then laid out behind each other and linked.
#pragma once

#include <cstdint>
#include <vector>

#include "proto/image_format.h"
#include "worker/image/module.h"
#include "worker/translator/host_features.h"

namespace phybin::image {

// A word of the code that depends on where in the image something stands.
struct CodeFixup {
  enum class Kind : uint8_t {
    kAddressPage,  // ADRP of a linked address
    kSlotPage,     // ADRP of a slot pair
    kSlotAdd,      // ADD of the pair's place in its page
    kSlotLoad,     // LDR of the pair's first slot
  } kind;
  uint32_t code;   // bytes from the start of the code
  uint64_t value;  // linked address, or number of the pair
};

struct VariantEntry {
  uint32_t key, code;  // as in ImageIndexBucket
};

struct Variant {
  std::vector<uint32_t> words;
  std::vector<VariantEntry> entries;  // each key once, in the order of translation
  std::vector<proto::ImagePlace> places;
  std::vector<int64_t> targets;  // of the slot pairs, relative to text_address
  std::vector<CodeFixup> fixups;
  uint64_t guest_instructions = 0;  // translated; what stands in two regions counts twice
  uint64_t linked_exits = 0, open_exits = 0;
  uint64_t dropped = 0;  // entry points that found no room
};

// Offsets in the module's text, ascending.
struct Profile {
  std::vector<uint32_t> entry_points;
  std::vector<uint32_t> unaligned;  // instructions that are to have barriers in place of ordered accesses
};

// Translates the entry points. Work and memory are bounded by kMaxVariantCodeBytes; entry points beyond that are
// dropped.
void build_variant(const Module& module, const Profile& profile, const HostFeatures& host, const CodeOptions& options,
                   Variant& variant);

}  // namespace phybin::image
