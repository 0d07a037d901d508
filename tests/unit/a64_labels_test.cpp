// Labels, literals, ranges of branches, and constants in registers.
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/gnu_assembler.h"

namespace phybin::a64 {
namespace {

int64_t sign_extend(uint32_t value, unsigned bits) {
  return static_cast<int64_t>(uint64_t{value} << (64 - bits)) >> (64 - bits);
}

// Where the instruction at a byte offset refers to, read as the manual says.
int64_t target_of(const FlatArray<uint32_t>& words, uint32_t offset) {
  const uint32_t word = words[offset / 4];
  if ((word >> 26 & 0x1f) == 5) return offset + 4 * sign_extend(word & 0x3ffffff, 26);       // B, BL
  if ((word >> 25 & 0x3f) == 0x1b) return offset + 4 * sign_extend(word >> 5 & 0x3fff, 14);  // TBZ, TBNZ
  if ((word >> 24 & 0x9f) == 0x10) return offset + sign_extend((word >> 3 & 0x1ffffc) | (word >> 29 & 3), 21);  // ADR
  return offset + 4 * sign_extend(word >> 5 & 0x7ffff, 19);  // B.cond, CBZ, CBNZ, LDR (literal)
}

struct Fixture {
  Assembler::Memory memory;
  FlatArray<uint32_t> words;
  Assembler a{memory, words};
};

struct Form {
  const char* name;
  void (*emit)(Assembler&, Label);
  uint32_t word;     // with a displacement of zero
  int64_t distance;  // first that is too far forwards, in words
};

constexpr Form kForms[] = {
    {"b", [](Assembler& a, Label l) { a.b(l); }, 0x14000000, 1 << 25},
    {"bl", [](Assembler& a, Label l) { a.bl(l); }, 0x94000000, 1 << 25},
    {"b.hi", [](Assembler& a, Label l) { a.b_cond(Cond::HI, l); }, 0x54000008, 1 << 18},
    {"cbz w", [](Assembler& a, Label l) { a.cbz(false, 31, l); }, 0x3400001f, 1 << 18},
    {"cbz x", [](Assembler& a, Label l) { a.cbz(true, 17, l); }, 0xb4000011, 1 << 18},
    {"cbnz w", [](Assembler& a, Label l) { a.cbnz(false, 2, l); }, 0x35000002, 1 << 18},
    {"cbnz x", [](Assembler& a, Label l) { a.cbnz(true, 30, l); }, 0xb500001e, 1 << 18},
    {"tbz", [](Assembler& a, Label l) { a.tbz(9, 63, l); }, 0xb6f80009, 1 << 13},
    {"tbnz", [](Assembler& a, Label l) { a.tbnz(31, 31, l); }, 0x37f8001f, 1 << 13},
    {"adr", [](Assembler& a, Label l) { a.adr(5, l); }, 0x10000005, 1 << 18},
};

TEST(A64Labels, EveryFormToItself) {
  for (const Form& form : kForms) {
    Fixture f;
    const Label here = f.a.new_label();
    f.a.bind(here);
    form.emit(f.a, here);
    EXPECT_EQ(f.words[0], form.word) << form.name;
  }
}

TEST(A64Labels, ForwardsAndBackwards) {
  Fixture f;
  const Label start = f.a.new_label(), end = f.a.new_label();
  f.a.bind(start);
  for (const Form& form : kForms) {
    form.emit(f.a, end);
    form.emit(f.a, start);
  }
  EXPECT_FALSE(f.a.complete());
  EXPECT_FALSE(f.a.is_bound(end));
  f.a.bind(end);
  EXPECT_TRUE(f.a.complete());
  EXPECT_TRUE(f.a.is_bound(end));
  const uint32_t length = f.a.offset();
  EXPECT_EQ(f.a.offset_of(end), length);
  for (uint32_t offset = 0; offset < length; offset += 8) {
    EXPECT_EQ(target_of(f.words, offset), length) << kForms[offset / 8].name;
    EXPECT_EQ(target_of(f.words, offset + 4), 0) << kForms[offset / 8].name;
  }
  EXPECT_FALSE(f.a.failed());
}

TEST(A64Labels, RangeIsChecked) {
  for (const Form& form : kForms) {
    if (form.distance > 1 << 18) continue;  // 128 MiB: the same code with another width
    for (const int64_t beyond : {0, 1}) {
      Fixture forwards;
      const Label end = forwards.a.new_label();
      forwards.a.make_room_for(1 << 18);
      form.emit(forwards.a, end);
      for (int64_t i = 1; i < form.distance - 1 + beyond; ++i) forwards.a.nop();
      forwards.a.bind(end);
      EXPECT_EQ(forwards.a.failed(), beyond == 1) << form.name;

      Fixture backwards;
      const Label start = backwards.a.new_label();
      backwards.a.bind(start);
      backwards.a.make_room_for(1 << 18);
      for (int64_t i = 0; i < form.distance + beyond; ++i) backwards.a.nop();
      form.emit(backwards.a, start);
      EXPECT_EQ(backwards.a.failed(), beyond == 1) << form.name;
    }
  }
  Fixture f;
  f.a.b_offset((int64_t{1} << 27) - 4);
  f.a.bl_offset(-(int64_t{1} << 27));
  EXPECT_FALSE(f.a.failed());
  f.a.b_offset(int64_t{1} << 27);
  EXPECT_TRUE(f.a.failed());
  Assembler next(f.memory, f.words);
  EXPECT_FALSE(next.failed());
  EXPECT_EQ(next.offset(), 0u);
}

TEST(A64Labels, BindingTwiceFails) {
  Fixture f;
  const Label label = f.a.new_label();
  f.a.bind(label);
  f.a.bind(label);
  EXPECT_TRUE(f.a.failed());
}

TEST(A64Labels, LiteralsAreShared) {
  Fixture f;
  std::mt19937_64 random(1);
  std::vector<uint64_t> values;
  for (int i = 0; i < 500; ++i) values.push_back(i < 100 ? static_cast<uint64_t>(i) : random());
  f.a.nop();
  f.a.make_room_for(2000);
  for (int round = 0; round < 2; ++round) {
    for (const uint64_t value : values) f.a.ldr_literal64(1, value);
    for (const uint64_t value : values) f.a.ldr_literal128_v(1, value, ~value);
  }
  const uint32_t code = f.a.offset();
  f.a.emit_literals();
  EXPECT_TRUE(f.a.complete());
  EXPECT_FALSE(f.a.failed());
  EXPECT_LE(f.a.offset(), code + 12 + 500 * 24);
  for (uint32_t offset = 4, i = 0; offset < code; offset += 4, ++i) {
    const uint64_t value = values[i % 500];
    const bool wide = i / 500 % 2 == 1;
    const auto target = static_cast<uint32_t>(target_of(f.words, offset));
    ASSERT_EQ(target % (wide ? 16 : 8), 0u);
    const auto at = [&](uint32_t index) {
      return f.words[target / 4 + index] | uint64_t{f.words[target / 4 + index + 1]} << 32;
    };
    ASSERT_EQ(at(0), value);
    if (wide) {
      ASSERT_EQ(at(2), ~value);
    }
  }
  // The next translation starts with an empty pool.
  Assembler next(f.memory, f.words);
  next.ldr_literal64(1, 7);
  next.emit_literals();
  EXPECT_EQ(next.offset(), 16u);
  EXPECT_EQ(target_of(f.words, 0), 8);
}

TEST(A64Labels, LiteralForms) {
  Fixture f;
  f.a.ldr_literal64(7, 1);
  f.a.ldr_literal64_v(10, 1);
  f.a.ldr_literal128_v(31, 1, 0);
  f.a.emit_literals();
  EXPECT_EQ(f.a.offset(), 40u);
  EXPECT_EQ(f.words[0], 0x58000007u | 8 << 5);
  EXPECT_EQ(f.words[1], 0x5c00000au | 7 << 5);
  EXPECT_EQ(f.words[2], 0x9c00001fu | 2 << 5);
}

TEST(A64Labels, LiteralsOutOfReachFail) {
  for (const uint32_t before : {0u, 1u}) {
    Fixture f;
    f.a.make_room_for(1 << 18);
    for (uint32_t i = 0; i < before; ++i) f.a.nop();
    f.a.ldr_literal64(1, 7);
    while (f.a.size() < 1 << 18) f.a.nop();
    f.a.emit_literals();
    EXPECT_EQ(f.a.failed(), before == 0);
    if (before == 1) {
      EXPECT_EQ(target_of(f.words, 4), 4 << 18);
    }
  }
}

TEST(A64Labels, BranchesAhead) {
  for (const int64_t distance : {1, 2, (1 << 18) - 1, 1 << 18}) {
    Fixture f;
    f.a.make_room_for(1 << 18);
    f.a.nop();
    const Assembler::Ahead zero = f.a.cbz_ahead(true, 17);
    const Assembler::Ahead other = f.a.cbnz_ahead(false, 3);
    for (int64_t i = 1; i < distance; ++i) f.a.nop();
    f.a.arrive(other);
    EXPECT_EQ(f.a.failed(), distance == 1 << 18) << distance;
    if (f.a.failed()) continue;
    EXPECT_EQ(f.words[2] & 0xff00001f, 0x35000003u);
    EXPECT_EQ(target_of(f.words, 8), 8 + 4 * distance);
    if (distance + 1 == 1 << 18) continue;
    f.a.arrive(zero);
    EXPECT_EQ(f.words[1] & 0xff00001f, 0xb4000011u);
    EXPECT_EQ(target_of(f.words, 4), 4 + 4 * (distance + 1));
    EXPECT_FALSE(f.a.failed());
  }
}

// The value that MOVZ, MOVN, MOVK and ORR (immediate) leave in a register.
uint64_t run_moves(const FlatArray<uint32_t>& words) {
  uint64_t value = 0xdeadbeefdeadbeef;
  for (const uint32_t word : words) {
    const bool is64 = word >> 31;
    const unsigned shift = 16 * (word >> 21 & 3);
    const uint64_t half = uint64_t{word >> 5 & 0xffff} << shift;
    switch (word & 0x7f800000) {
      case 0x12800000:
        value = ~half;
        break;
      case 0x52800000:
        value = half;
        break;
      case 0x72800000:
        value = (value & ~(uint64_t{0xffff} << shift)) | half;
        break;
      case 0x32000000: {
        EXPECT_EQ(word >> 5 & 31, 31u);
        // DecodeBitMasks of the manual
        const uint32_t n = word >> 22 & 1, immr = word >> 16 & 63, imms = word >> 10 & 63;
        const unsigned size = 1u << (31 - std::countl_zero(n << 6 | (~imms & 63)));
        const unsigned ones = (imms & (size - 1)) + 1, rotation = immr & (size - 1);
        value = 0;
        for (unsigned bit = 0; bit < 64; ++bit) {
          value |= uint64_t{(bit % size + rotation) % size < ones} << bit;
        }
        break;
      }
      default:
        ADD_FAILURE() << std::hex << word;
    }
    if (!is64) value &= 0xffffffff;
  }
  return value;
}

TEST(A64Constants, EveryValueIsExactAndShort) {
  std::vector<uint64_t> values = {0,
                                  1,
                                  0xffff,
                                  0x10000,
                                  0xffff0000,
                                  0xffffffff,
                                  0xfffffffe,
                                  0x100000000,
                                  ~uint64_t{0},
                                  ~uint64_t{1},
                                  0x8000000000000000,
                                  0x7fffffffffffffff,
                                  0x00ff00ff00ff00ff};
  std::mt19937_64 random(2);
  const uint64_t halves[] = {0, 0xffff, 0x1234, 0xff00, 0x5555};
  for (unsigned i = 0; i < 625; ++i) {
    values.push_back(halves[i % 5] | halves[i / 5 % 5] << 16 | halves[i / 25 % 5] << 32 | halves[i / 125] << 48);
  }
  for (unsigned i = 0; i < 2000; ++i) values.push_back(random() >> random() % 64);
  for (unsigned i = 0; i < 2000; ++i) values.push_back(~(random() >> random() % 64));
  Assembler::Memory memory;
  FlatArray<uint32_t> words;
  for (const uint64_t value : values) {
    Assembler a(memory, words);
    a.mov_imm(true, 3, value);
    a.finish();
    ASSERT_EQ(run_moves(words), value) << std::hex << value;
    ASSERT_EQ(words.size() == 1, Assembler::is_mov_imm(value)) << std::hex << value;
    ASSERT_LE(words.size(), 4u);
    Assembler narrow(memory, words);
    narrow.mov_imm(false, 3, value);
    narrow.finish();
    ASSERT_EQ(run_moves(words), value & 0xffffffff) << std::hex << value;
    ASSERT_LE(words.size(), 2u);
  }
  EXPECT_TRUE(Assembler::is_mov_imm(0xfffffffe));
  EXPECT_TRUE(Assembler::is_mov_imm(0x5555555555555555));
  EXPECT_FALSE(Assembler::is_mov_imm(0xffffffff12345678));
  EXPECT_FALSE(Assembler::is_mov_imm(0x123456789abcdef0));
}

TEST(A64Constants, AddImmediate) {
  for (const uint64_t value : {0u, 1u, 0xfffu, 0x1000u, 0xfff000u}) EXPECT_TRUE(is_add_imm(value));
  for (const uint64_t value : {uint64_t{0x1001}, uint64_t{0x1000000}, ~uint64_t{0}}) EXPECT_FALSE(is_add_imm(value));
}

// encode_bitmask() chooses a form; a value that fits none must not pass unnoticed.
TEST(A64Constants, ImpossibleLogicalImmediateFails) {
  Fixture f;
  f.a.and_imm(true, 1, 2, 0xff);
  EXPECT_FALSE(f.a.failed());
  f.a.and_imm(true, 1, 2, 5);
  EXPECT_TRUE(f.a.failed());
}

}  // namespace
}  // namespace phybin::a64
