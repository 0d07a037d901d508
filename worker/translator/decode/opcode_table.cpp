// Compiles the rules of the opcodes_*.h files to the tables of opcode_table.h, all at compile time.
//
// For each opcode the rules that concern it form a small decision tree: while some rule does not accept every value
// of a selector that has not been asked yet, the tree branches on it. So an opcode pays only for the distinctions
// that its own instructions need. Instructions whose operands look alike share their forms.
#include "worker/translator/decode/opcode_table.h"

#include <span>

#include "worker/translator/decode/form.h"
#include "worker/translator/decode/opcodes_0f.h"
#include "worker/translator/decode/opcodes_0f38_0f3a.h"
#include "worker/translator/decode/opcodes_one_byte.h"
#include "worker/translator/decode/opcodes_vex.h"
#include "worker/translator/decode/opcodes_x87.h"
#include "worker/translator/decode/rule.h"

namespace phybin::decode {
namespace {

constexpr std::size_t kSelectors = static_cast<std::size_t>(Selector::kCount);

// The rules that can still match at some point of a tree, best first.
struct Candidates {
  std::array<const Rule*, 64> rules{};
  std::size_t count = 0;

  constexpr void add(const Rule* rule) {
    if (count == rules.size()) error_in_opcode_table("too many rules for one opcode");
    rules[count++] = rule;
  }
};

using ValueSets = std::array<uint8_t, kSelectors>;

class TableBuilder {
 public:
  constexpr void add_rules(std::span<const Rule> rules) {
    for (const Rule& rule : rules)
      for (unsigned i = 0; i < rule.opcode_count; ++i)
        roots_[static_cast<std::size_t>(rule.map) * 256 + rule.opcode + i].add(&rule);
  }

  constexpr void add_special(OpcodeMap map, unsigned opcode, Special special) {
    table[static_cast<std::size_t>(map) * 256 + opcode] = Entry::special(special);
  }

  constexpr void compile() {
    for (std::size_t root = 0; root < kRootCount; ++root) {
      if (roots_[root].count == 0) continue;
      if (table[root].has(kEntrySpecial)) error_in_opcode_table("an instruction where a prefix is");
      ValueSets open{};
      for (std::size_t s = 0; s < kSelectors; ++s) open[s] = static_cast<uint8_t>((1u << kSelectorValues[s]) - 1);
      opcode_ = root % 256;
      modrm_ = 0;
      for (std::size_t i = 0; i < roots_[root].count; ++i) modrm_ |= roots_[root].rules[i]->flags & kEntryModrm;
      table[root] = node(roots_[root], open);
    }
  }

  std::array<Entry, kEntryCapacity> table{};
  std::array<Form, kFormCapacity> forms{};

 private:
  // What the forms of an instruction are made of, and where they are.
  struct Shape {
    uint64_t key = 0;
    std::size_t first = 0;
    unsigned variants = 0;  // the bits of a variant that make a difference
    unsigned flags = 0;
    ImmediateKind immediate{};
  };

  constexpr const Shape& shape_of(const Rule& rule) {
    const bool vex = rule.map >= OpcodeMap::kVex0F;
    const uint64_t key = std::bit_cast<uint32_t>(rule.operands) |
                         uint64_t{static_cast<uint8_t>(rule.size_mode)} << 32 | uint64_t{vex} << 40;
    for (std::size_t i = 0; i < shape_count_; ++i)
      if (shapes_[i].key == key) return shapes_[i];
    if (shape_count_ == shapes_.size()) error_in_opcode_table("too many combinations of operands");
    Shape& shape = shapes_[shape_count_++];
    shape = {key, form_count_};
    constexpr unsigned kVariants = 8;
    std::array<Form, kVariants> all{};
    for (unsigned v = 0; v < kVariants; ++v) {
      FormBuilder builder(rule.size_mode, vex, v);
      all[v] = builder.build(rule.operands);
      shape.flags |= builder.flags();
      shape.immediate = builder.immediate();
    }
    for (unsigned v = 0; v < kVariants; ++v)
      for (unsigned bit = 1; bit < kVariants; bit *= 2)
        if (all[v] != all[v ^ bit]) shape.variants |= bit;
    for (unsigned v = 0; v <= shape.variants; ++v) {
      if (form_count_ == forms.size()) error_in_opcode_table("kFormCapacity is too small");
      forms[form_count_++] = all[v];
    }
    return shape;
  }

  constexpr Entry node(const Candidates& candidates, const ValueSets& open) {
    if (candidates.count == 0) return Entry::invalid(modrm_);
    for (std::size_t s = 0; s < kSelectors; ++s)
      if (distinguishes(candidates, open, s)) return select(candidates, open, s);
    const Rule& rule = *candidates.rules[0];
    const Shape& shape = shape_of(rule);
    const unsigned condition = (rule.flags & kEntryCondition) != 0 ? opcode_ & 15 : 0;
    return Entry::instruction(rule.mnemonic, rule.flags | shape.flags, shape.first, shape.variants, shape.immediate,
                              condition);
  }

  static constexpr bool distinguishes(const Candidates& candidates, const ValueSets& open, std::size_t selector) {
    for (std::size_t i = 0; i < candidates.count; ++i)
      if ((candidates.rules[i]->accepts[selector] & open[selector]) != open[selector]) return true;
    return false;
  }

  constexpr Entry select(const Candidates& candidates, const ValueSets& open, std::size_t selector) {
    const SelectorField field = kSelectorFields[selector];
    const std::size_t base = size_;
    size_ += field.mask + std::size_t{1};
    if (size_ > kEntryCapacity) error_in_opcode_table("kEntryCapacity is too small");
    std::array<Entry, 8> values{};
    for (std::size_t value = 0; value < kSelectorValues[selector]; ++value) {
      ValueSets narrowed = open;
      narrowed[selector] = static_cast<uint8_t>(1u << value);
      Candidates matching;
      for (std::size_t i = 0; i < candidates.count; ++i)
        if (candidates.rules[i]->accepts[selector] & narrowed[selector]) matching.add(candidates.rules[i]);
      values[value] = node(matching, narrowed);
    }
    for (unsigned i = 0; i <= field.mask; ++i) table[base + i] = values[selector_value(selector, i)];
    return Entry::select(base, field);
  }

  std::array<Candidates, kRootCount> roots_{};
  std::size_t size_ = kRootCount;
  std::array<Shape, 256> shapes_{};
  std::size_t shape_count_ = 0;
  std::size_t form_count_ = 0;
  unsigned opcode_ = 0;
  uint16_t modrm_ = 0;
};

struct Tables {
  std::array<Entry, kEntryCapacity> opcodes;
  std::array<Form, kFormCapacity> forms;
};

consteval Tables build_tables() {
  TableBuilder builder;
  builder.add_special(OpcodeMap::kOneByte, 0x0f, Special::kEscape0F);
  builder.add_special(OpcodeMap::k0F, 0x38, Special::kEscape0F38);
  builder.add_special(OpcodeMap::k0F, 0x3a, Special::kEscape0F3A);
  for (unsigned opcode : {0x26u, 0x2eu, 0x36u, 0x3eu})
    builder.add_special(OpcodeMap::kOneByte, opcode, Special::kSegmentIgnored);
  for (unsigned opcode = 0x40; opcode <= 0x4f; ++opcode)
    builder.add_special(OpcodeMap::kOneByte, opcode, Special::kRex);
  builder.add_special(OpcodeMap::kOneByte, 0x62, Special::kEvex);
  builder.add_special(OpcodeMap::kOneByte, 0x64, Special::kSegmentFs);
  builder.add_special(OpcodeMap::kOneByte, 0x65, Special::kSegmentGs);
  builder.add_special(OpcodeMap::kOneByte, 0x66, Special::kOperandSize);
  builder.add_special(OpcodeMap::kOneByte, 0x67, Special::kAddressSize);
  builder.add_special(OpcodeMap::kOneByte, 0xc4, Special::kVex3);
  builder.add_special(OpcodeMap::kOneByte, 0xc5, Special::kVex2);
  builder.add_special(OpcodeMap::kOneByte, 0xf0, Special::kLock);
  builder.add_special(OpcodeMap::kOneByte, 0xf2, Special::kRepne);
  builder.add_special(OpcodeMap::kOneByte, 0xf3, Special::kRep);
  builder.add_rules(kOneByteRules);
  builder.add_rules(kX87Rules);
  builder.add_rules(k0FRules);
  builder.add_rules(k0F38And0F3ARules);
  builder.add_rules(kVexRules);
  builder.compile();
  return {builder.table, builder.forms};
}

}  // namespace

constexpr Tables kTables = build_tables();
const std::array<Entry, kEntryCapacity> kOpcodeTable = kTables.opcodes;
const std::array<Form, kFormCapacity> kForms = kTables.forms;

}  // namespace phybin::decode
