// The words of a translation, labels, literals and the instructions that refer to them.
//
// A word is emitted without a look at the room for it: emitting is what the assembler does most. Instead whoever
// emits a bounded number of words calls make_room() first.
//
// A label is an index into a flat array. While it is unbound, its entry holds the first word that waits for it and
// heads a chain of the others (through another flat array); binding it patches those words. The field to patch
// follows from the word itself. A branch that alone leads to a place further on needs no label: see Ahead. What a
// branch cannot reach sets failed(), and the translation is thrown away: the caller then tries a smaller region.
#pragma once

#include <array>
#include <cstdint>

#include "worker/translator/emit/a64_types.h"
#include "worker/translator/flat_array.h"

namespace phybin::a64 {

class LabelForms {
 public:
  // Working memory, which may be kept from one translation to the next.
  struct Memory {
    static constexpr uint32_t kNone = UINT32_MAX;       // end of a chain
    static constexpr uint32_t kBound = UINT32_MAX - 1;  // head of a label that is bound
    struct LabelEntry {
      uint32_t index;  // word, once bound; before that the first one that waits, or kNone
      uint32_t head;   // first further reference that waits, or kBound
    };
    struct Reference {
      uint32_t index;  // word
      uint32_t next;
    };
    struct Literal {
      uint64_t low, high;
      uint32_t index;  // word, once placed
      uint16_t next;   // of those with the same hash: number + 1, 0 = none
      bool wide;
    };
    struct LiteralUse {
      uint32_t index;  // word
      uint32_t literal;
    };

    FlatArray<LabelEntry> labels;
    FlatArray<Reference> references;
    FlatArray<Literal> literals;
    FlatArray<LiteralUse> literal_uses;
    std::array<uint16_t, 64> literal_hash{};  // first of those with the hash: number + 1, 0 = none
  };

  // A new translation, which is written into `words` from its start on.
  LabelForms(Memory& memory, FlatArray<uint32_t>& words);
  LabelForms(const LabelForms&) = delete;
  LabelForms& operator=(const LabelForms&) = delete;
  // Gives `words` the length of what has been emitted.
  void finish() { words_.set_size(size()); }
  // After it, kRoom words may be emitted: many times what any operation needs.
  static constexpr uint32_t kRoom = 1024;
  void make_room() {
    if (cursor_ > limit_) [[unlikely]]
      grow(kRoom);
  }
  // The same for any number of words.
  void make_room_for(uint32_t words) {
    if (cursor_ + words > limit_ + kRoom) [[unlikely]]
      grow(words);
  }

  void word(uint32_t encoded) { *cursor_++ = encoded; }
  // Words so far.
  uint32_t size() const { return static_cast<uint32_t>(cursor_ - first_); }
  uint32_t offset() const { return size() * 4; }
  // True once something did not fit its field.
  bool failed() const { return failed_; }
  // True if every label that is used is bound.
  bool complete() const;

  Label new_label() {
    *memory_.labels.add() = {Memory::kNone, Memory::kNone};
    return {static_cast<uint32_t>(memory_.labels.size() - 1)};
  }
  // As many labels with consecutive numbers; the first one of a translation is number 0.
  void new_labels(std::size_t count);
  void bind(Label label) {
    Memory::LabelEntry& entry = memory_.labels[label.id];
    const uint32_t here = size();
    if (entry.index != Memory::kNone) resolve(entry, here);
    entry = {here, Memory::kBound};
  }
  bool is_bound(Label label) const { return memory_.labels[label.id].head == Memory::kBound; }
  // Byte offset of a bound label.
  uint32_t offset_of(Label label) const { return memory_.labels[label.id].index * 4; }

  // A word that will lead to where arrive() is called with it: CBZ or CBNZ.
  struct Ahead {
    uint32_t index;
  };
  Ahead cbz_ahead(bool is64, Gpr rt) { return ahead(0x34000000 | uint32_t{is64} << 31 | rt); }
  Ahead cbnz_ahead(bool is64, Gpr rt) { return ahead(0x35000000 | uint32_t{is64} << 31 | rt); }
  void arrive(Ahead from) {
    const uint32_t distance = size() - from.index;
    if (distance >= 1u << 18) [[unlikely]]
      failed_ = true;
    first_[from.index] |= (distance & 0x7ffff) << 5;
  }

  void b(Label target) { refer(0x14000000, target); }
  void bl(Label target) { refer(0x94000000, target); }
  void b_cond(Cond cond, Label target) { refer(0x54000000 | static_cast<uint32_t>(cond), target); }
  void cbz(bool is64, Gpr rt, Label target) { refer(0x34000000 | uint32_t{is64} << 31 | rt, target); }
  void cbnz(bool is64, Gpr rt, Label target) { refer(0x35000000 | uint32_t{is64} << 31 | rt, target); }
  void tbz(Gpr rt, unsigned bit, Label target) { refer(0x36000000 | test_bit(bit) | rt, target); }
  void tbnz(Gpr rt, unsigned bit, Label target) { refer(0x37000000 | test_bit(bit) | rt, target); }
  void adr(Gpr rd, Label target) { refer(0x10000000 | rd, target); }

  // Loads a constant from the pool behind the code, which holds equal values once. For 128 bits the code must be
  // 16-byte aligned where it runs.
  void ldr_literal64(Gpr rt, uint64_t value) { load_literal(0x58000000 | rt, value, 0, false); }
  void ldr_literal64_v(Vec rt, uint64_t value) { load_literal(0x5c000000 | rt, value, 0, false); }
  void ldr_literal128_v(Vec rt, uint64_t low, uint64_t high) { load_literal(0x9c000000 | rt, low, high, true); }
  // Places the pool: first what needs 16 bytes of alignment, then what needs 8.
  void emit_literals();

 private:
  static constexpr uint32_t test_bit(unsigned bit) { return (bit & 32) << 26 | (bit & 31) << 19; }

  void refer(uint32_t encoded, Label target) {
    Memory::LabelEntry& entry = memory_.labels[target.id];
    const uint32_t here = size();
    word(encoded);
    if (entry.index == Memory::kNone) {
      entry.index = here;
    } else if (entry.head == Memory::kBound) {
      patch_back(here, entry.index);
    } else {
      Memory::Reference& reference = *memory_.references.add();
      reference = {here, entry.head};
      entry.head = static_cast<uint32_t>(memory_.references.size() - 1);
    }
  }
  Ahead ahead(uint32_t encoded) {
    word(encoded);
    return {size() - 1};
  }
  void resolve(const Memory::LabelEntry& entry, uint32_t here);
  void patch(uint32_t from, uint32_t to);
  void patch_back(uint32_t from, uint32_t to);
  void load_literal(uint32_t encoded, uint64_t low, uint64_t high, bool wide);
  void place_literals(bool wide);

  void grow(uint32_t words);

  uint32_t* cursor_ = nullptr;
  uint32_t* first_ = nullptr;
  uint32_t* limit_ = nullptr;  // behind it are less than kRoom words
  Memory& memory_;
  FlatArray<uint32_t>& words_;

 protected:
  bool failed_ = false;
};

}  // namespace phybin::a64
