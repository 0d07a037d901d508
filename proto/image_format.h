// The image file: the translations of one ELF module, as the daemon keeps them and workers map them.
//
// An image is never written after it was published and never relocated: the worker maps the file read-only beside the
// module, at a displacement fixed when it was made, and private copies of its slots over their place. Everything
// the hot path needs (index, code, slots) stands in front, tables that only faults and signals read stand behind.
// docs/image-format.md describes the format byte by byte; all numbers are little-endian.
//
// An image holds two variants of the code, one for each memory model, with everything of their own; a process uses
// one at a time.
#pragma once

#include <cstdint>

namespace phybin::proto {

inline constexpr char kImageMagic[8] = {'P', 'h', 'y', 'B', 'i', 'n', 'I', 'm'};
inline constexpr uint32_t kImageFormat = 1;
// What is mapped on its own begins and ends at a multiple of this, so that hosts with 64 KiB pages can map it.
inline constexpr uint64_t kImageAlignment = 64 << 10;
// B and BL reach 128 MiB; a variant stays below half of that, veneers included.
inline constexpr uint64_t kMaxVariantCodeBytes = 64 << 20;

// Larger modules have none; addresses in the text are 32-bit numbers here, and ADRP reaches everything near it.
inline constexpr uint64_t kMaxImageTextBytes = uint64_t{1} << 30;

// Bit 31 of the entry points that an image is made from, which are offsets in the module's file: not an entry point,
// but an instruction whose ordered accesses are unaligned often. Code that holds it has barriers in their place.
inline constexpr uint32_t kUnalignedAccess = uint32_t{1} << 31;

using Digest = uint8_t[32];  // SHA-256

// An entry of the index. Open addressing: probing starts at bucket image_index_hash(key) & mask and goes on to the
// next one until the key or an empty bucket is found; at most half of the buckets are used, and no key needs more
// than kMaxImageProbes.
struct ImageIndexBucket {
  uint32_t key;   // guest address - text_address + 1; 0: empty
  uint32_t code;  // bytes from the start of the variant's code, a multiple of 4; bit 0: takes canonical flags
};
static_assert(sizeof(ImageIndexBucket) == 8);

inline constexpr uint64_t kImageIndexMultiplier = 0x9e3779b97f4a7c15;
constexpr uint32_t image_index_hash(uint32_t key) { return static_cast<uint32_t>(key * kImageIndexMultiplier >> 32); }

inline constexpr unsigned kMaxImageProbes = 128;

// A pair of slots (docs/design.md, "Flags at exits"). Zero at first.
struct ImageSlotPair {
  uint64_t plain;  // host address of code that takes no flags
  uint64_t flags;  // of code that takes canonical flags
  int64_t target;  // guest address that the pair leads to, relative to text_address
};
static_assert(sizeof(ImageSlotPair) == 24);

// A place in the code from which guest state can be rebuilt (translator/emit/location.h). Ascending by `code`, each
// once.
struct ImagePlace {
  uint32_t code;  // of the A64 instruction, bytes from the start of the variant's code
  int32_t guest;  // of the guest instruction, relative to text_address
  uint8_t flag_form, pf, af_a, af_b;
};
static_assert(sizeof(ImagePlace) == 12);
inline constexpr uint8_t kLastFlagForm = 3;
inline constexpr uint8_t kPlaceGoesBack = 0x80;  // bit of `pf`: emit::kGoesBack

// Offsets are from the start of the file and lie within it; sections do not overlap.
struct ImageVariant {
  uint64_t index_offset;  // ImageIndexBucket[index_mask + 1]; a multiple of 8
  uint64_t index_mask;    // number of buckets - 1; the number is a power of two
  uint64_t code_offset;   // a multiple of 4096
  uint64_t code_bytes;
  uint64_t slots_offset;  // ImageSlotPair[slot_pairs]; a multiple of kImageAlignment
  uint64_t slot_pairs;
  uint64_t places_offset;  // ImagePlace[places]; a multiple of 4
  uint64_t places;
  uint64_t entries;  // used buckets of the index
};

enum ImageVariantIndex : unsigned { kWeakVariant, kTsoVariant, kVariants };

struct ImageHeader {
  char magic[8];
  uint32_t format;
  uint32_t header_bytes;  // sizeof(ImageHeader)
  // Identity: what the image was made from and for.
  Digest module_digest;     // of the whole ELF file
  Digest translator_build;  // of the translator's sources and flags
  uint32_t host_features;   // HostFeatures as bits, in the order of its fields; from kTscShiftBit on, tsc_shift
  uint32_t code_options;    // CodeOptionBits
  uint64_t module_bytes;    // size of the ELF file
  // Where the module's executable segment is: the image is attached when that segment is mapped like this.
  uint64_t text_file_offset;  // p_offset and p_vaddr of the segment, rounded down to 4096
  uint64_t text_address;
  uint64_t text_bytes;  // of the segment in the file, from there on
  // Where the image goes: 0 for ET_EXEC, whose code holds absolute addresses and may lie anywhere; else its address
  // among the module's own (link-time) addresses, a multiple of kImageAlignment.
  uint64_t image_address;
  uint64_t file_bytes;    // size of the file, a multiple of kImageAlignment; all of it is mapped
  uint64_t slots_offset;  // [slots_offset, slots_end) is mapped privately and writable: the slots of both variants
  uint64_t slots_end;
  ImageVariant variants[kVariants];
  Digest content_digest;  // of the file with this field zero
};

// HostFeatures::tsc_shift are the highest bits of ImageHeader::host_features, from this one on.
inline constexpr unsigned kTscShiftBit = 27, kMostTscShift = 31;

// What of CodeOptions (translator/host_features.h) is part of an image's identity. The memory model is not: an image
// holds both.
enum CodeOptionBits : uint32_t {
  kOptionFastMath = 1,
  kOptionNoSseCheck = 2,
};

}  // namespace phybin::proto
