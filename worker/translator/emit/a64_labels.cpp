// Binding of labels and the literal pool (a64_labels.h).
#include "worker/translator/emit/a64_labels.h"

#include <algorithm>

namespace phybin::a64 {

void CodeBuffer::grow() {
  const size_t used = static_cast<size_t>(cursor_ - words_.get());
  const size_t capacity = used == 0 ? 4096 : used * 2;
  std::unique_ptr<uint32_t[]> bigger(new uint32_t[capacity]);
  std::copy(words_.get(), cursor_, bigger.get());
  words_ = std::move(bigger);
  cursor_ = words_.get() + used;
  end_ = words_.get() + capacity;
}

void LabelForms::reset() {
  buffer_->clear();
  labels_.clear();
  references_.clear();
  forget_literals();
  waiting_ = 0;
  failed_ = false;
}

// Patches what waits for a label that is at `here`, `reference` first.
void LabelForms::resolve(uint32_t reference, uint32_t here) {
  if (reference == kBound) {
    failed_ = true;
    return;
  }
  for (; reference != kNone; reference = references_[reference].next) {
    patch(references_[reference].index, here);
    --waiting_;
  }
}

// Writes the distance into the field that the instruction has for it: 26 bits for B and BL, 14 for TBZ and TBNZ, 21
// in two parts for ADR (in bytes), 19 for all others.
void LabelForms::patch(uint32_t from, uint32_t to) {
  uint32_t& encoded = (*buffer_)[from];
  const int64_t distance = int64_t{to} - int64_t{from};
  const auto place = [&](unsigned width, unsigned shift) {
    const int64_t limit = int64_t{1} << (width - 1);
    if (distance < -limit || distance >= limit) failed_ = true;
    encoded |= (static_cast<uint32_t>(distance) & ((1u << width) - 1)) << shift;
  };
  if ((encoded & 0x7c000000) == 0x14000000) {
    place(26, 0);
  } else if ((encoded & 0x7e000000) == 0x36000000) {
    place(14, 5);
  } else {
    place(19, 5);  // ADR too: the low two bits of its byte distance are zero
  }
}

uint32_t LabelForms::literal_slot(uint64_t low, uint64_t high, bool wide) const {
  const auto mask = static_cast<uint32_t>(literal_hash_.size() - 1);
  const uint64_t mixed = (low ^ (high << 1 | high >> 63)) * 0x9e3779b97f4a7c15;
  uint32_t slot = static_cast<uint32_t>(mixed >> 40) & mask;
  for (; literal_hash_[slot] != kNone; slot = (slot + 1) & mask) {
    const Literal& known = literals_[literal_hash_[slot]];
    if (known.low == low && known.high == high && known.wide == wide) break;
  }
  return slot;
}

void LabelForms::rehash_literals() {
  literal_hash_.assign(std::max<size_t>(64, literals_.size() * 4), kNone);
  for (uint32_t i = 0; i < literals_.size(); ++i) {
    literal_hash_[literal_slot(literals_[i].low, literals_[i].high, literals_[i].wide)] = i;
  }
}

Label LabelForms::literal(uint64_t low, uint64_t high, bool wide) {
  if (literals_.size() * 2 >= literal_hash_.size()) rehash_literals();
  uint32_t& slot = literal_hash_[literal_slot(low, high, wide)];
  if (slot == kNone) {
    slot = static_cast<uint32_t>(literals_.size());
    literals_.push_back({low, high, new_label(), wide});
  }
  return literals_[slot].label;
}

void LabelForms::emit_literals() {
  for (const bool wide : {true, false}) {
    bool aligned = false;
    for (const Literal& literal : literals_) {
      if (literal.wide != wide) continue;
      while (!aligned && offset() % (wide ? 16 : 8) != 0) word(0);
      aligned = true;
      bind(literal.label);
      word(static_cast<uint32_t>(literal.low));
      word(static_cast<uint32_t>(literal.low >> 32));
      if (!wide) continue;
      word(static_cast<uint32_t>(literal.high));
      word(static_cast<uint32_t>(literal.high >> 32));
    }
  }
  forget_literals();
}

void LabelForms::forget_literals() {
  if (literals_.empty()) return;
  literals_.clear();
  std::fill(literal_hash_.begin(), literal_hash_.end(), kNone);
}

}  // namespace phybin::a64
