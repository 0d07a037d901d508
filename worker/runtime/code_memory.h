// Code memory: chunks that hold translations and the slots they are linked through.
//
// A chunk is 1 MiB of address space: code from the front, slots in the back part, so that LDR (literal) reaches every
// slot. A pair of slots is three words: the two slots and the guest address that they lead to. The code part is
// mapped twice, writable at one place and executable at another (W^X), and written once: it is appended to, never
// changed, and freed as a whole. Slots are ordinary private data. Everything here is called with the code lock held
// (regions.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "worker/runtime/links.h"
#include "worker/translator/translate.h"

namespace phybin::runtime {

inline constexpr size_t kChunkBytes = 1 << 20;
inline constexpr size_t kSlotBytes = 256 << 10;
inline constexpr size_t kSlotPairBytes = 24;
inline constexpr size_t kCodeBytes = kChunkBytes - kSlotBytes;

// A place in the code from which guest state can be rebuilt: a LocationEntry, ready for use.
struct KnownPlace {
  uint64_t guest;   // address of the guest instruction
  uint32_t offset;  // of the A64 instruction in the chunk or image
  emit::FlagForm flag_form;
  uint8_t pf, af_a, af_b;
};
static_assert(sizeof(KnownPlace) == 16);

struct Chunk {
  uint32_t id;
  char* code = nullptr;      // executable, kCodeBytes; the slots follow
  char* writable = nullptr;  // null in a forked child: closed for new code
  size_t used = 0;           // bytes of code
  FlatArray<SlotPairRecord> pairs;
  FlatArray<uint32_t> regions;     // ascending by code address
  FlatArray<RegionEntry> entries;  // of all regions, one after another
  FlatArray<KnownPlace> places;    // ascending
  bool retired = false;
  uint64_t retire_epoch = 0;

  uint64_t* slot(size_t pair) { return reinterpret_cast<uint64_t*>(code + kCodeBytes + pair * kSlotPairBytes); }
  bool has_room(size_t code_bytes, size_t new_pairs) const {
    return writable != nullptr && used + code_bytes <= kCodeBytes &&
           (pairs.size() + new_pairs) * kSlotPairBytes <= kSlotBytes;
  }
};

// A fresh chunk; null when there is no memory.
Chunk* new_chunk(uint32_t id);
void free_chunk(Chunk* chunk);
// Forked child: the parent goes on appending to the same memory, so nothing may be added here.
void close_chunk(Chunk& chunk);

// Copies the code in, points its slot instructions at fresh slots, makes it visible to instruction fetch. Returns the
// address it runs at. There must be room.
uint64_t append_code(Chunk& chunk, const RegionCode& region);

}  // namespace phybin::runtime
