// Binding of labels and the literal pool (a64_labels.h).
#include "worker/translator/emit/a64_labels.h"

#include <algorithm>
#include <bit>

namespace phybin::a64 {

void LabelForms::grow(uint32_t words) {
  // More than there was room for: memory that is not ours has been written.
  if (cursor_ > limit_ + kRoom) __builtin_trap();
  const uint32_t used = size();
  words_.set_size(used);
  words_.make_room(kRoom + words);
  first_ = words_.data();
  cursor_ = first_ + used;
  limit_ = first_ + words_.capacity() - kRoom;
}

LabelForms::LabelForms(Memory& memory, FlatArray<uint32_t>& words) : memory_(memory), words_(words) {
  words.clear();
  words.make_room(2 * kRoom);
  cursor_ = first_ = words.data();
  limit_ = first_ + words.capacity() - kRoom;
  memory.labels.clear();
  memory.references.clear();
  if (!memory.literals.empty()) memory.literal_hash.fill(0);
  memory.literals.clear();
  memory.literal_uses.clear();
}

bool LabelForms::complete() const {
  return std::all_of(memory_.labels.begin(), memory_.labels.end(), [](const Memory::LabelEntry& entry) {
    return entry.index == Memory::kNone || entry.head == Memory::kBound;
  });
}

void LabelForms::new_labels(std::size_t count) {
  const std::size_t first = memory_.labels.size();
  memory_.labels.set_size(first + count);
  std::fill_n(memory_.labels.begin() + first, count, Memory::LabelEntry{Memory::kNone, Memory::kNone});
}

// Writes the distance into the field that the instruction has for it: 26 bits for B and BL, 14 for TBZ and TBNZ, 21
// in two parts for ADR (in bytes), 19 for all others.
inline void LabelForms::patch(uint32_t from, uint32_t to) {
  const uint32_t encoded = first_[from];
  const uint32_t distance = to - from;  // two's complement
  const auto place = [&](unsigned width, unsigned shift) {
    const uint32_t limit = 1u << (width - 1);
    if (distance + limit >= 2 * limit) [[unlikely]]
      failed_ = true;
    first_[from] = encoded | (distance & (2 * limit - 1)) << shift;
  };
  if ((encoded & 0x7c000000) == 0x14000000) {
    place(26, 0);
  } else if ((encoded & 0x7e000000) == 0x36000000) {
    place(14, 5);
  } else {
    place(19, 5);  // ADR too: the low two bits of its byte distance are zero
  }
}

void LabelForms::patch_back(uint32_t from, uint32_t to) { patch(from, to); }

// Patches what waits for a label that is at `here`.
void LabelForms::resolve(const Memory::LabelEntry& entry, uint32_t here) {
  if (entry.head == Memory::kBound) {
    failed_ = true;
    return;
  }
  patch(entry.index, here);
  for (uint32_t reference = entry.head; reference != Memory::kNone; reference = memory_.references[reference].next)
    patch(memory_.references[reference].index, here);
}

void LabelForms::load_literal(uint32_t encoded, uint64_t low, uint64_t high, bool wide) {
  const uint64_t mixed = (low ^ std::rotl(high, 1)) * 0x9e3779b97f4a7c15;
  uint16_t& first = memory_.literal_hash[mixed >> 58];
  uint32_t number = first;
  for (; number != 0; number = memory_.literals[number - 1].next) {
    const Memory::Literal& known = memory_.literals[number - 1];
    if (known.low == low && known.high == high && known.wide == wide) break;
  }
  if (number == 0) {
    Memory::Literal& literal = *memory_.literals.add();
    literal = {low, high, 0, first, wide};
    number = static_cast<uint32_t>(memory_.literals.size());
    if (number > UINT16_MAX) failed_ = true;
    first = static_cast<uint16_t>(number);
  }
  Memory::LiteralUse& use = *memory_.literal_uses.add();
  use = {size(), number - 1};
  word(encoded);
}

void LabelForms::place_literals(bool wide) {
  bool aligned = false;
  for (Memory::Literal& literal : memory_.literals) {
    if (literal.wide != wide) continue;
    while (!aligned && offset() % (wide ? 16 : 8) != 0) word(0);
    aligned = true;
    literal.index = size();
    word(static_cast<uint32_t>(literal.low));
    word(static_cast<uint32_t>(literal.low >> 32));
    if (!wide) continue;
    word(static_cast<uint32_t>(literal.high));
    word(static_cast<uint32_t>(literal.high >> 32));
  }
}

void LabelForms::emit_literals() {
  if (memory_.literals.empty()) return;
  make_room_for(static_cast<uint32_t>(memory_.literals.size()) * 4 + 4);
  place_literals(true);
  place_literals(false);
  for (const Memory::LiteralUse& use : memory_.literal_uses) patch(use.index, memory_.literals[use.literal].index);
  memory_.literals.clear();
  memory_.literal_uses.clear();
  memory_.literal_hash.fill(0);
}

}  // namespace phybin::a64
