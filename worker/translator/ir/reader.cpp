// See reader.h.
#include "worker/translator/ir/reader.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

namespace phybin::ir {

namespace {

using Words = std::vector<std::string_view>;

Words split(std::string_view line) {
  line = line.substr(0, line.find('#'));
  Words words;
  for (;;) {
    const std::size_t start = line.find_first_not_of(" \t\r");
    if (start == line.npos) return words;
    const std::size_t end = std::min(line.find_first_of(" \t\r", start), line.size());
    words.push_back(line.substr(start, end - start));
    line.remove_prefix(end);
  }
}

std::optional<uint64_t> number(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x")) {
    base = 16;
    text.remove_prefix(2);
  }
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Into an integer type that may be too small for the number.
template <typename T>
bool store(std::string_view text, T& to) {
  const std::optional<uint64_t> value = number(text);
  if (!value || static_cast<uint64_t>(static_cast<T>(*value)) != *value) return false;
  to = static_cast<T>(*value);
  return true;
}

bool store_flags(std::string_view text, FlagMask& to) {
  static constexpr std::string_view kNames = "nzcvpa";
  for (const char c : text) {
    const std::size_t bit = kNames.find(c);
    if (bit == kNames.npos) return false;
    to |= static_cast<FlagMask>(1u << bit);
  }
  return true;
}

std::optional<Opcode> opcode(std::string_view name) {
  for (unsigned i = 0; i < static_cast<unsigned>(Opcode::kCount); ++i) {
    if (name == kOpcodeInfo[i].name) return static_cast<Opcode>(i);
  }
  return std::nullopt;
}

class Reader {
 public:
  explicit Reader(Region& region) : region_(region) {
    region_ = Region{};
    region_.ops.emplace_back();
  }

  std::string read(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      ++line_;
      const Words words = split(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
      if (words.empty()) continue;
      if (std::string error = read_line(words); !error.empty()) return at_line(line_, error);
    }
    if (!has_region_ && !region_.blocks.empty()) region_.entry = region_.blocks.front().address;
    return resolve();
  }

 private:
  struct Reference {
    uint16_t op;
    uint8_t operand;
    std::string_view name;
    unsigned line;
  };
  struct Name {
    std::string_view name;
    ValueId value;
  };

  static std::string at_line(unsigned line, const std::string& error) {
    return "line " + std::to_string(line) + ": " + error;
  }

  std::string read_line(const Words& words) {
    if (words[0] == "region") {
      has_region_ = true;
      if (words.size() != 2 || !store(words[1], region_.entry)) return "region needs an address";
      return {};
    }
    if (words[0] == "block") return read_block(words);
    if (words[0].front() == '@') return read_instruction(words);
    if (region_.blocks.empty()) return "an operation before the first block";
    return read_op(words);
  }

  std::string read_block(const Words& words) {
    Block block;
    if (words.size() < 2 || !store(words[1], block.address)) return "block needs an address";
    for (const std::string_view word : Words(words.begin() + 2, words.end())) {
      if (word == "entry") {
        block.is_entry = true;
      } else if (word == "repeat") {
        block.is_repeat = true;
      } else if (!(word.starts_with("live_in=") && store_flags(word.substr(8), block.live_in)) &&
                 !(word.starts_with("next=") && store(word.substr(5), block.fallthrough))) {
        return "block: cannot read " + std::string(word);
      }
    }
    block.first = block.last = static_cast<uint16_t>(region_.ops.size());
    region_.blocks.push_back(block);
    return {};
  }

  std::string read_instruction(const Words& words) {
    const std::string_view word = words[0];
    const std::size_t plus = word.find('+');
    GuestInstruction instruction{};
    if (words.size() != 1 || plus == word.npos || !store(word.substr(1, plus - 1), instruction.address) ||
        !store(word.substr(plus + 1), instruction.length)) {
      return "a guest instruction is @address+length";
    }
    region_.instructions.push_back(instruction);
    return {};
  }

  std::string read_op(const Words& words) {
    Op op;
    const auto index = static_cast<uint16_t>(region_.ops.size());
    std::size_t next = 0;
    if (words[next] == "-" || words[next] == "~") {
      op.dead = words[next] == "-";
      op.sunk = words[next] == "~";
      ++next;
    }
    std::string_view result;
    if (next + 1 < words.size() && words[next].front() == '%' && words[next + 1] == "=") {
      result = words[next];
      next += 2;
    }
    if (next >= words.size()) return "an opcode is missing";
    const std::string_view word = words[next++];
    const std::size_t point = word.find('.');
    const std::optional<Opcode> code = opcode(word.substr(0, point));
    if (!code) return "no opcode " + std::string(word.substr(0, point));
    op.code = *code;
    if (point == word.npos || !store(word.substr(point + 1), op.width)) return "the width is missing";
    const OpcodeInfo& op_info = info(op.code);
    if (result.empty() != (op_info.result == ResultClass::kNone)) {
      return std::string(op_info.name) + (result.empty() ? " defines a value" : " defines no value");
    }
    if (!result.empty()) names_.push_back({result, index});
    for (uint8_t k = 0; k < 3; ++k) {
      if (op_info.operands[k] == '-') continue;
      if (next >= words.size() || (words[next].front() != '%' && words[next] != "_")) {
        return std::string(op_info.name) + ": an operand is missing";
      }
      if (words[next] != "_") references_.push_back({index, k, words[next], line_});
      ++next;
    }
    for (; next < words.size(); ++next) {
      if (!read_attribute(words[next], op)) return "cannot read " + std::string(words[next]);
    }
    if (!region_.instructions.empty()) op.instruction = static_cast<uint16_t>(region_.instructions.size() - 1);
    region_.ops.push_back(op);
    region_.blocks.back().last = static_cast<uint16_t>(region_.ops.size());
    return {};
  }

  static bool read_attribute(std::string_view word, Op& op) {
    const std::size_t equals = word.find('=');
    if (equals == word.npos) return false;
    const std::string_view key = word.substr(0, equals), value = word.substr(equals + 1);
    if (key == "imm") return store(value, op.imm);
    if (key == "aux") return store(value, op.aux);
    if (key == "aux2") return store(value, op.aux2);
    if (key == "again") return op.again = value == "1";
    if (key == "home") return store(value, op.home);
    if (key == "to") {
      op.writes_home = true;
      return store(value, op.home);
    }
    if (key == "uses") return store(value, op.uses);
    if (key == "use") return store_flags(value, op.flags_use);
    if (key == "def") return store_flags(value, op.flags_def);
    if (key == "live") return store_flags(value, op.flags_live);
    return false;
  }

  // Names become indices at the end, so that a text can use a value before it is defined: the verifier must see that.
  std::string resolve() {
    for (const Reference& reference : references_) {
      const auto name = std::find_if(names_.begin(), names_.end(),
                                     [&](const Name& candidate) { return candidate.name == reference.name; });
      if (name == names_.end()) return at_line(reference.line, "nothing defines " + std::string(reference.name));
      Op& op = region_.ops[reference.op];
      (reference.operand == 0 ? op.a : reference.operand == 1 ? op.b : op.c) = name->value;
    }
    return {};
  }

  Region& region_;
  unsigned line_ = 0;
  bool has_region_ = false;
  std::vector<Name> names_;
  std::vector<Reference> references_;
};

}  // namespace

std::string read(std::string_view text, Region& region) { return Reader(region).read(text); }

}  // namespace phybin::ir
