// Links between translations, the other way round: which pairs of slots lead to a guest address, so that they can be
// emptied when the code there goes.
//
// Pairs belong to chunks and to images; a list of all pairs that are linked to one guest address runs through the
// records of both. Everything here is called with the code lock held (regions.h).
#pragma once

#include <cstdint>

namespace phybin::runtime {

inline constexpr uint32_t kNoOwner = ~0u;
// Set in the number of an image; without it the number is that of a chunk.
inline constexpr uint32_t kImageOwner = 1u << 31;

struct PairRef {
  uint32_t owner = kNoOwner, pair = 0;  // `pair` as the owner counts its records
};

// What is known of a pair of slots.
struct SlotPairRecord {
  uint64_t target;  // guest address
  PairRef next;     // linked to the same target
  bool linked;
};

struct KnownPair {
  SlotPairRecord& record;
  uint64_t* slots;
};
KnownPair pair_of_chunk(PairRef ref);  // regions.cpp
KnownPair pair_of_image(PairRef ref);  // images.cpp

// Notes that the pair is linked to its record's target.
void add_link(PairRef ref);
// Empties the pairs that are linked to `guest`, or to anything in [start, end).
void reset_links(uint64_t guest);
void reset_links_within(uint64_t start, uint64_t end);
// The pairs of `owner` are about to go: takes them out of the list of `guest`, leaving their slots alone.
void forget_links(uint64_t guest, uint32_t owner);

}  // namespace phybin::runtime
