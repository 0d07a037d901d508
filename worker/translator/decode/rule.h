// One line of the opcode tables: an encoding in the Intel SDM's notation, what it means, and its operands.
//
// Rules exist at compile time only; opcode_table.cpp compiles them to the table that decode() walks. An encoding is a
// list of words:
//   NP 66 F3 F2     the mandatory prefix (NP: none of them); NFx: neither F2 nor F3. Without, prefixes do not matter
//   REX.W0 REX.W1   REX.W as given; REX.B0 likewise
//   0F, 0F 38 ...   the opcode; its last byte may be 50+r (eight opcodes) or 70+cc (sixteen)
//   VEX.L.P.M.W     with L 128, 256, LIG; P NP, 66, F3, F2; M 0F, 0F38, 0F3A; W W0, W1, WIG
//   /r /0 ... /7    ModRM, its reg field as given
//   C1, C0+i        a ModRM byte as given, or with any rm
//   mem reg         only with a memory or a register operand in ModRM
//   any-mod         ModRM.mod is ignored
//   no-access       the memory operand is an address only
//   lock            LOCK is allowed with a memory destination
//   d64 f64 opb opv opz opy   the operand size, where the operands do not tell: the SDM's d64 and f64; 1; 2, 4 or 8;
//                   2 or 4; 4 or 8 by REX.W
// Of several rules that match, the first one counts.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "worker/translator/decode/opcode_table.h"
#include "worker/translator/decode/operand_types.h"

namespace phybin::decode {

struct Rule {
  OpcodeMap map = OpcodeMap::kOneByte;
  uint8_t opcode = 0;
  uint8_t opcode_count = 1;
  uint16_t flags = 0;
  SizeMode size_mode = SizeMode::kNone;
  Mnemonic mnemonic;
  std::array<uint8_t, 4> operands{};
  // For each Selector the set of values that match, bit n for value n.
  std::array<uint8_t, static_cast<std::size_t>(Selector::kCount)> accepts{0xf, 0xff, 3, 0xff, 3, 3, 3};

  consteval Rule(std::string_view encoding, Mnemonic name, std::string_view operand_names) : mnemonic(name) {
    parse_operands(operand_names);
    while (!encoding.empty()) parse_word(next_word(encoding, ' '));
    if (!have_opcode_) error_in_opcode_table("no opcode");
  }

 private:
  bool have_opcode_ = false;

  constexpr uint8_t& accepted(Selector selector) { return accepts[static_cast<std::size_t>(selector)]; }
  constexpr void accept_only(Selector selector, unsigned value) {
    accepted(selector) = static_cast<uint8_t>(1u << value);
  }

  static constexpr std::string_view next_word(std::string_view& text, char separator) {
    const std::size_t end = text.find(separator);
    const std::string_view word = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    return word;
  }

  static constexpr int hex_digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  }

  constexpr void parse_operands(std::string_view names) {
    for (std::size_t slot = 0; !names.empty(); ++slot) {
      const std::string_view name = next_word(names, ' ');
      std::size_t index = 1;
      while (index < kOperandTypes.size() && kOperandTypes[index].name != name) ++index;
      if (index == kOperandTypes.size()) error_in_opcode_table("unknown operand");
      operands[slot] = static_cast<uint8_t>(index);
      use_operand(kOperandTypes[index], slot == 0);
    }
  }

  // What an operand implies for the whole instruction.
  constexpr void use_operand(const OperandType& type, bool first) {
    if (type.source == OperandSource::kModrmReg || type.source == OperandSource::kModrmRm) flags |= kEntryModrm;
    if (type.source == OperandSource::kVvvv) flags |= kEntryVvvv;
    if (needs_memory(type.name)) accept_only(Selector::kModrmMode, 0);
    if (needs_register(type.name)) accept_only(Selector::kModrmMode, 1);
    if (type.name.starts_with("MV")) flags |= kEntryVsib | kEntryRare;
    if (type.kind == OperandKind::kControl || type.kind == OperandKind::kDebug)
      flags |= kEntryPrivilegedRegister | kEntryRare;
    if (type.source == OperandSource::kMemoryOffset || type.source == OperandSource::kImmediateU16)
      flags |= kEntryRare;
    if (type.kind == OperandKind::kGpr || type.kind == OperandKind::kMemory) {
      const uint8_t size = type.kind == OperandKind::kGpr ? type.size : type.memory_size;
      if (size == kSizeV)
        size_mode = SizeMode::kVariable;
      else if (size == kSizeZ && size_mode == SizeMode::kNone)
        size_mode = SizeMode::kVariable32;
      else if (size == kSizeY && size_mode == SizeMode::kNone)
        size_mode = SizeMode::kByW;
      else if (size == 1 && first && type.kind == OperandKind::kGpr)
        size_mode = SizeMode::kByte;
    }
  }

  constexpr void parse_word(std::string_view word) {
    if (word.starts_with("VEX.")) return parse_vex(word.substr(4));
    if (word.size() >= 2 && hex_digit(word[0]) >= 0 && hex_digit(word[1]) >= 0)
      return parse_byte(static_cast<unsigned>(hex_digit(word[0]) * 16 + hex_digit(word[1])), word.substr(2));
    if (word[0] == '/') {
      flags |= kEntryModrm;
      if (word[1] != 'r') accept_only(Selector::kModrmReg, static_cast<unsigned>(word[1] - '0'));
    } else if (word == "NP") {
      accept_only(Selector::kPrefix, 0);
    } else if (word == "NFx") {
      accepted(Selector::kPrefix) = 3;
    } else if (word == "REX.W0" || word == "REX.W1") {
      accept_only(Selector::kW, word == "REX.W1");
    } else if (word == "REX.B0") {
      accept_only(Selector::kRexB, 0);
    } else if (word == "mem" || word == "reg") {
      flags |= kEntryModrm;
      accept_only(Selector::kModrmMode, word == "reg");
    } else if (word == "any-mod") {
      flags |= kEntryModeIgnored | kEntryRare;
      accepted(Selector::kModrmMode) = 3;
    } else if (word == "no-access") {
      flags |= kEntryNoSegment;
    } else if (word == "lock") {
      flags |= kEntryLock;
    } else {
      parse_size(word);
    }
  }

  constexpr void parse_size(std::string_view word) {
    if (word == "d64")
      size_mode = SizeMode::kDefault64;
    else if (word == "f64")
      size_mode = SizeMode::kForce64;
    else if (word == "opb")
      size_mode = SizeMode::kByte;
    else if (word == "opv")
      size_mode = SizeMode::kVariable;
    else if (word == "opz")
      size_mode = SizeMode::kVariable32;
    else if (word == "opy")
      size_mode = SizeMode::kByW;
    else
      error_in_opcode_table("unknown word in an encoding");
  }

  // A byte before the opcode is a mandatory prefix or an escape, the next one the opcode, one after it ModRM.
  constexpr void parse_byte(unsigned byte, std::string_view suffix) {
    const bool escaped = map != OpcodeMap::kOneByte;
    if (have_opcode_) {
      flags |= kEntryModrm;
      accept_only(Selector::kModrmMode, byte >= 0xc0);
      accept_only(Selector::kModrmReg, byte >> 3 & 7);
      if (suffix != "+i") accept_only(Selector::kModrmRm, byte & 7);
    } else if (!escaped && byte == 0x66) {
      accept_only(Selector::kPrefix, 1);
      flags |= kEntryOwns66;
    } else if (!escaped && (byte == 0xf3 || byte == 0xf2)) {
      accept_only(Selector::kPrefix, byte == 0xf3 ? 2 : 3);
      flags |= kEntryOwnsRep;
    } else if (!escaped && byte == 0x0f) {
      map = OpcodeMap::k0F;
    } else if (map == OpcodeMap::k0F && byte == 0x38) {
      map = OpcodeMap::k0F38;
    } else if (map == OpcodeMap::k0F && byte == 0x3a) {
      map = OpcodeMap::k0F3A;
    } else {
      have_opcode_ = true;
      opcode = static_cast<uint8_t>(byte);
      if (suffix == "+r") opcode_count = 8;
      if (suffix == "+cc") {
        opcode_count = 16;
        flags |= kEntryCondition;
      }
    }
  }

  constexpr void parse_vex(std::string_view text) {
    const std::string_view length = next_word(text, '.');
    if (length != "LIG") accept_only(Selector::kL, length == "256");
    const std::string_view prefix = next_word(text, '.');
    accept_only(Selector::kPrefix, prefix == "NP" ? 0 : prefix == "66" ? 1 : prefix == "F3" ? 2 : 3);
    const std::string_view name = next_word(text, '.');
    map = name == "0F" ? OpcodeMap::kVex0F : name == "0F38" ? OpcodeMap::kVex0F38 : OpcodeMap::kVex0F3A;
    if (text != "WIG") accept_only(Selector::kW, text == "W1");
  }
};

}  // namespace phybin::decode
