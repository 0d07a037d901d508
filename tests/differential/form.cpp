// Reads the tables of instruction forms; form.h describes the notation.
#include "tests/differential/form.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

#include <cstdio>
#include <cstdlib>
#include <map>

namespace phybin::difftest {
namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::string part;
  auto flush = [&] {
    const size_t first = part.find_first_not_of(' ');
    const size_t last = part.find_last_not_of(' ');
    parts.push_back(first == std::string::npos ? "" : part.substr(first, last - first + 1));
    part.clear();
  };
  for (char c : text) {
    if (c == separator) {
      flush();
    } else {
      part += c;
    }
  }
  flush();
  return parts;
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> result;
  for (const std::string& word : split(text, ' ')) {
    if (!word.empty()) result.push_back(word);
  }
  return result;
}

[[noreturn]] void bad_line(std::string_view line) {
  std::fprintf(stderr, "difftest: bad line in a table of forms: %.*s\n", int(line.size()), line.data());
  std::exit(2);
}

uint32_t flags_of(std::string_view letters) {
  uint32_t flags = 0;
  for (char c : letters) {
    switch (c) {
      case 'O':
        flags |= kOf;
        break;
      case 'S':
        flags |= kSf;
        break;
      case 'Z':
        flags |= kZf;
        break;
      case 'A':
        flags |= kAf;
        break;
      case 'P':
        flags |= kPf;
        break;
      case 'C':
        flags |= kCf;
        break;
      case 'D':
        flags |= kDf;
        break;
      default:
        break;
    }
  }
  return flags;
}

const std::map<std::string, Special, std::less<>> kSpecials = {
    {"div", Special::kDiv},
    {"idiv", Special::kIdiv},
    {"shift", Special::kShift},
    {"rotate", Special::kRotate},
    {"rotate_carry", Special::kRotateCarry},
    {"double_shift", Special::kDoubleShift},
    {"bit_memory", Special::kBitMemory},
    {"bit_scan", Special::kBitScan},
    {"string", Special::kString},
    {"stack", Special::kStack},
    {"enter", Special::kEnter},
    {"leave", Special::kLeave},
    {"xlat", Special::kXlat},
    {"compare_exchange", Special::kCompareExchange},
    {"compare_exchange_pair", Special::kCompareExchangePair},
    {"jump", Special::kJump},
    {"loop", Special::kLoop},
    {"call", Special::kCall},
    {"jump_indirect", Special::kJumpIndirect},
    {"call_indirect", Special::kCallIndirect},
    {"return", Special::kReturn},
    {"mask_move", Special::kMaskMove},
    {"gather", Special::kGather},
    {"x87", Special::kX87},
    {"load_mxcsr", Special::kLoadMxcsr},
};

const std::map<std::string, Hint, std::less<>> kHints = {
    {"i8", Hint::kI8},   {"i16", Hint::kI16}, {"i32", Hint::kI32}, {"i64", Hint::kI64},
    {"f32", Hint::kF32}, {"f64", Hint::kF64}, {"f80", Hint::kF80}, {"count", Hint::kCount},
};

bool is_hex_byte(std::string_view word) {
  auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'); };
  return word.size() == 2 && hex(word[0]) && hex(word[1]);
}

// Fills in what the opcode column says. Returns false for a word that it does not know.
bool parse_opcode(std::string_view text, Form& form) {
  const std::vector<std::string> parts = words(text);
  for (size_t i = 0; i < parts.size(); i++) {
    const std::string& word = parts[i];
    if (word.starts_with("VEX")) {
      form.vex = true;
      for (const std::string& field : split(word, '.')) {
        if (field == "256") form.vex_length = 1;
        if (field == "66") form.vex_pp = 1;
        if (field == "F3") form.vex_pp = 2;
        if (field == "F2") form.vex_pp = 3;
        if (field == "0F") form.vex_map = 1;
        if (field == "0F38") form.vex_map = 2;
        if (field == "0F3A") form.vex_map = 3;
        if (field == "W1") form.vex_w = 1;
      }
    } else if (word == "REX.W") {
      form.rex_w = true;
    } else if (word == "/r") {
      form.modrm = true;
    } else if (word[0] == '/') {
      form.modrm = true;
      form.digit = int8_t(word[1] - '0');
    } else if (word == "+r") {
      form.opcode_register = true;
    } else if (is_hex_byte(word)) {
      const auto byte = uint8_t(std::stoul(word, nullptr, 16));
      const bool more = i + 1 < parts.size() && is_hex_byte(parts[i + 1]);
      if (form.opcode.empty() && more && (byte == 0x66 || byte == 0xf2 || byte == 0xf3)) {
        form.prefix = byte;
      } else {
        form.opcode.push_back(byte);
      }
    } else {
      return false;
    }
  }
  return !form.opcode.empty();
}

bool parse_operands(std::string_view text, Form& form) {
  for (const std::string& word : split(text, ',')) {
    if (word.empty() || (word[0] >= 'a' && word[0] <= 'z')) continue;
    if (form.operand_count == form.operands.size() || word.size() < 2) return false;
    Operand& operand = form.operands[form.operand_count++];
    operand.kind = word[0];
    const uint8_t vector_bytes = form.vex_length ? 32 : 16;
    switch (word[1]) {
      case '0':
        operand.size = 0;
        break;
      case 'b':
        operand.size = 1;
        break;
      case 'w':
        operand.size = 2;
        break;
      case 'd':
        operand.size = 4;
        break;
      case 'q':
        operand.size = 8;
        break;
      case 't':
        operand.size = 10;
        break;
      case 'x':
        operand.size = 16;
        break;
      case 'L':
        operand.size = vector_bytes;
        break;
      case 'l':
        operand.size = vector_bytes / 2;
        break;
      case 'm':
        operand.size = vector_bytes / 4;
        break;
      case 'n':
        operand.size = vector_bytes / 8;
        break;
      case 'v':
      case 'y':
        operand.size = form.size;
        break;
      case 'z':
        operand.size = form.size < 4 ? form.size : 4;
        break;
      case '[':
        operand.size = uint8_t(std::stoul(word.substr(2)));
        break;
      default:
        return false;
    }
  }
  return true;
}

bool parse_attributes(std::string_view text, Form& form) {
  for (const std::string& word : words(text)) {
    const std::string value = word.substr(word.find('=') + 1);
    if (word == "lock") {
      form.lock = true;
    } else if (word == "rep") {
      form.rep = true;
    } else if (word == "noseq") {
      form.no_sequence = true;
    } else if (word == "intel") {
      form.vendors_differ = true;
    } else if (word == "intelmemory") {
      form.vendors_align = true;
    } else if (word == "approx") {
      form.approximate = form.no_sequence = true;
    } else if (word == "nomem") {
      form.no_memory = true;
    } else if (word == "unaligned") {
      form.unaligned = true;
    } else if (word == "aligned") {
      form.aligned = true;
    } else if (word == "d64") {
    } else if (word.starts_with("imm=")) {
      form.immediate_mask = uint8_t(std::stoul(value));
    } else if (word.starts_with("cc=")) {
      static constexpr uint16_t kBits[4] = {0x100, 0x200, 0x400, 0x4000};
      form.condition_codes = 0;
      for (char digit : value) form.condition_codes |= kBits[digit & 3];
    } else if (word.starts_with("w=")) {
      form.flags_written = flags_of(value);
    } else if (word.starts_with("r=")) {
      form.flags_read = flags_of(value);
    } else if (word.starts_with("u=")) {
      form.flags_undefined = flags_of(value);
    } else if (word.starts_with("s=") && kSpecials.contains(value)) {
      form.special = kSpecials.find(value)->second;
    } else if (word.starts_with("hint=") && kHints.contains(value)) {
      form.hint = kHints.find(value)->second;
    } else {
      return false;
    }
  }
  return true;
}

void parse_line(std::string_view group, std::string_view line, std::vector<Form>& forms) {
  const std::vector<std::string> columns = split(line, '|');
  if (columns.size() < 2 || columns.size() > 4) bad_line(line);
  const std::string operands = columns.size() > 2 ? columns[2] : "";
  const std::string attributes = columns.size() > 3 ? columns[3] : "";
  auto has_size = [&](char size) {
    for (const std::string& word : split(operands, ',')) {
      if (word.size() >= 2 && word[1] == size) return true;
    }
    return false;
  };
  const bool default_64 = (' ' + attributes + ' ').find(" d64 ") != std::string::npos;
  std::vector<uint8_t> sizes = {0};
  if (has_size('v')) {
    sizes = default_64 ? std::vector<uint8_t>{2, 8} : std::vector<uint8_t>{2, 4, 8};
  } else if (has_size('y')) {
    sizes = {4, 8};
  }
  // "VEX.x" stands for both vector lengths.
  std::vector<std::string> opcodes = {columns[1]};
  if (columns[1].starts_with("VEX.x")) {
    opcodes = {"VEX.128" + columns[1].substr(5), "VEX.256" + columns[1].substr(5)};
  }
  for (const std::string& opcode : opcodes) {
    for (uint8_t size : sizes) {
      Form form;
      form.group = group;
      form.mnemonic = columns[0];
      form.size = size;
      if (!parse_opcode(opcode, form) || !parse_operands(operands, form) || !parse_attributes(attributes, form)) {
        bad_line(line);
      }
      if (form.vex) {
        form.vex_w |= size == 8;
      } else {
        form.operand_size_16 = size == 2;
        form.rex_w |= size == 8 && !default_64;
      }
      form.name = form.mnemonic;
      if (size) form.name += std::to_string(size * 8);
      if (form.vex && form.vex_length) form.name += ".256";
      if (!operands.empty()) form.name += ' ' + operands;
      if (form.size == 0 && form.operand_count) form.size = form.operands[0].size;
      forms.push_back(std::move(form));
    }
  }
}

}  // namespace

void parse_forms(std::string_view group, std::string_view table, std::vector<Form>& forms) {
  for (const std::string& line : split(table, '\n')) {
    if (!line.empty()) parse_line(group, line, forms);
  }
}

Vendors oracle_vendor() {
#ifdef __x86_64__
  unsigned highest, b, c, d;
  if (__get_cpuid(0, &highest, &b, &c, &d) != 0 && b == signature_INTEL_ebx) return Vendors::kIntel;
#endif
  return Vendors::kAny;
}

const std::vector<Form>& all_forms(Vendors vendors) {
  const auto make = [](bool any) {
    std::vector<Form> result;
    add_integer_forms(result);
    add_sse_forms(result);
    add_x87_forms(result);
    add_avx_forms(result);
    if (any) {
      std::erase_if(result, [](const Form& form) { return form.vendors_differ; });
      for (Form& form : result) form.no_memory |= form.vendors_align;
    }
    return result;
  };
  static const std::vector<Form> any = make(true), intel = make(false);
  return vendors == Vendors::kAny ? any : intel;
}

bool group_is_default(std::string_view group) {
  static constexpr std::string_view kDefault[] = {
      "alu",       "shift",  "muldiv", "bit",    "move",
      "atomic",    "string", "stack",  "branch", "flags",
      "sse",       "sse2",   "mmx",    "sse3",   "ssse3",
      "ssse3_mmx", "sse41",  "sse42",  "aes",    "pclmul",
      "popcnt",    "bmi",    "sha",    "x87",    "x87_transcendental",
  };
  for (std::string_view name : kDefault) {
    if (name == group) return true;
  }
  return false;
}

}  // namespace phybin::difftest
