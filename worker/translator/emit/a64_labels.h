// Labels, literals and the instructions that refer to them.
//
// A label is an index into a flat array. While it is unbound, its entry heads a chain of the words that wait for it
// (through another flat array); binding it patches those words. The field to patch follows from the word itself. What
// a branch cannot reach sets failed(), and the translation is thrown away: the caller then tries a smaller region.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/translator/emit/a64_buffer.h"
#include "worker/translator/emit/a64_types.h"
#include "worker/translator/flat_array.h"

namespace phybin::a64 {

class LabelForms {
 public:
  explicit LabelForms(CodeBuffer& buffer) : buffer_(&buffer) {}

  // Starts a new translation, at offset 0 of the emptied buffer.
  void reset();

  void word(uint32_t encoded) { buffer_->push(encoded); }
  uint32_t offset() const { return buffer_->size() * 4; }
  // True once something did not fit its field.
  bool failed() const { return failed_; }
  // True if every label that is used is bound.
  bool complete() const { return waiting_ == 0; }

  Label new_label() {
    *labels_.add() = {0, kNone};
    return {static_cast<uint32_t>(labels_.size() - 1)};
  }
  void bind(Label label) {
    LabelEntry& entry = labels_[label.id];
    const uint32_t here = buffer_->size();
    if (entry.head != kNone) resolve(entry.head, here);
    entry = {here, kBound};
  }
  bool is_bound(Label label) const { return labels_[label.id].head == kBound; }
  // Byte offset of a bound label.
  uint32_t offset_of(Label label) const { return labels_[label.id].index * 4; }

  void b(Label target) { refer(0x14000000, target); }
  void bl(Label target) { refer(0x94000000, target); }
  void b_cond(Cond cond, Label target) { refer(0x54000000 | static_cast<uint32_t>(cond), target); }
  void cbz(bool is64, Gpr rt, Label target) { refer(0x34000000 | uint32_t{is64} << 31 | rt, target); }
  void cbnz(bool is64, Gpr rt, Label target) { refer(0x35000000 | uint32_t{is64} << 31 | rt, target); }
  void tbz(Gpr rt, unsigned bit, Label target) { refer(0x36000000 | test_bit(bit) | rt, target); }
  void tbnz(Gpr rt, unsigned bit, Label target) { refer(0x37000000 | test_bit(bit) | rt, target); }
  void adr(Gpr rd, Label target) { refer(0x10000000 | rd, target); }
  void ldr_literal(bool is64, Gpr rt, Label target) { refer(0x18000000 | uint32_t{is64} << 30 | rt, target); }
  void ldrsw_literal(Gpr rt, Label target) { refer(0x98000000 | rt, target); }
  // S, D or Q.
  void ldr_literal_v(Size size, Vec rt, Label target) { refer(0x1c000000 | (size.log2 - 2u) << 30 | rt, target); }

  // A constant in the pool behind the code, one for equal values. For 128 bits the code must be 16-byte aligned where
  // it runs.
  Label literal64(uint64_t value) { return literal(value, 0, false); }
  Label literal128(uint64_t low, uint64_t high) { return literal(low, high, true); }
  // Places the pool: first what needs 16 bytes of alignment, then what needs 8.
  void emit_literals();

 private:
  static constexpr uint32_t kNone = UINT32_MAX;       // end of a chain
  static constexpr uint32_t kBound = UINT32_MAX - 1;  // head of a label that is bound
  struct LabelEntry {
    uint32_t index;  // word, once bound
    uint32_t head;   // first waiting reference, or kBound
  };
  struct Reference {
    uint32_t index;  // word
    uint32_t next;
  };
  struct Literal {
    uint64_t low, high;
    Label label;
    bool wide;
  };

  static constexpr uint32_t test_bit(unsigned bit) { return (bit & 32) << 26 | (bit & 31) << 19; }

  void refer(uint32_t encoded, Label target) {
    LabelEntry& entry = labels_[target.id];
    const uint32_t here = buffer_->size();
    buffer_->push(encoded);
    if (entry.head == kBound) {
      patch(here, entry.index);
    } else {
      *references_.add() = {here, entry.head};
      entry.head = static_cast<uint32_t>(references_.size() - 1);
      ++waiting_;
    }
  }
  void resolve(uint32_t reference, uint32_t here);
  void patch(uint32_t from, uint32_t to);
  Label literal(uint64_t low, uint64_t high, bool wide);
  void rehash_literals();
  void forget_literals();
  uint32_t literal_slot(uint64_t low, uint64_t high, bool wide) const;

  CodeBuffer* buffer_;
  FlatArray<LabelEntry> labels_;
  FlatArray<Reference> references_;
  std::vector<Literal> literals_;
  std::vector<uint32_t> literal_hash_;  // open addressing: index into literals_ or kNone
  uint32_t waiting_ = 0;

 protected:
  bool failed_ = false;
};

}  // namespace phybin::a64
