// Encodes instructions of a form with randomly chosen operands: every addressing mode, redundant prefixes included.
#include <cstring>

#include "tests/differential/layout.h"
#include "tests/differential/snippet.h"

namespace phybin::difftest {
namespace {

struct Memory {
  uint8_t mod = 0, rm = 0;
  bool has_sib = false;
  uint8_t scale = 0, index = 4, base = 5;
  bool rip = false;
  int32_t displacement = 0;
  uint8_t displacement_size = 0;
};

bool is_rm(char kind) { return kind == 'E' || kind == 'W' || kind == 'Q'; }
bool is_memory_only(char kind) { return kind == 'M'; }
bool is_register_rm(char kind) { return kind == 'R' || kind == 'U' || kind == 'N'; }
bool is_reg(char kind) { return kind == 'G' || kind == 'V' || kind == 'P'; }
bool is_general(char kind) { return kind == 'E' || kind == 'G' || kind == 'R' || kind == 'Z' || kind == 'B'; }

class Builder {
 public:
  Builder(const Form& form, const RegisterPools& pools, Constraints& constraints, Random& random)
      : form_(form), pools_(pools), constraints_(constraints), random_(random) {}

  Instruction build();

 private:
  void choose_memory(unsigned size);
  void choose_gather_memory();
  uint64_t choose_target(unsigned size);
  uint8_t general_register(unsigned size, bool high_byte_allowed);
  void choose_registers();
  void choose_immediates();
  void emit_prefixes();
  void emit_vex();
  void emit_modrm();
  int32_t sized_displacement(uint8_t size) {
    if (size == 0) return 0;
    const auto value = int32_t(random_.next());
    return size == 1 ? int8_t(value) : random_.one_in(2) ? value % 4096 : value;
  }

  const Form& form_;
  const RegisterPools& pools_;
  Constraints& constraints_;
  Random& random_;
  Instruction out_;
  Memory memory_;
  uint8_t reg_ = 0, rm_ = 0, opcode_reg_ = 0, vvvv_ = 0, is4_ = 0;
  bool reg_byte_ = false, rm_byte_ = false, opcode_byte_ = false;
  uint8_t segment_ = 0;
  uint64_t immediate_[2] = {};
  uint8_t immediate_size_[2] = {};
  uint8_t immediates_ = 0;
};

// Registers that memory operands of a form must not use as address, because the state has them fixed otherwise.
uint16_t address_registers_to_avoid(const Form& form) {
  switch (form.special) {
    case Special::kDiv:
    case Special::kIdiv:
      return 1 << kRax | 1 << kRdx;
    case Special::kDoubleShift:
      return 1 << kRcx;
    case Special::kCompareExchange:
      return 1 << kRax;
    case Special::kCompareExchangePair:
      return 1 << kRax | 1 << kRdx;
    default:
      return 0;
  }
}

// Where the operand lies: inside the arena, aligned where the instruction demands it, else mostly so.
uint64_t Builder::choose_target(unsigned size) {
  const unsigned bytes = size ? size : 8;
  if (pools_.faults && !random_.one_in(4)) {
    switch (random_.below(4)) {
      case 0:
        return ARENA_ADDRESS - random_.below(2 * bytes);
      case 1:
        return ARENA_ADDRESS + ARENA_BYTES + random_.below(1024);
      case 2:
        return ARENA_ADDRESS + random_.below(ARENA_BYTES - 64);  // misaligned
      default:
        return ARENA_ADDRESS + ARENA_BYTES - random_.below(bytes);
    }
  }
  uint64_t address = ARENA_ADDRESS + 256 + random_.below(ARENA_BYTES - 1024);
  const bool vector = bytes >= 16 && !form_.unaligned && (!form_.vex || form_.aligned);
  // Locked operands that cross a cache line are a fault on some machines.
  if (vector || form_.lock || form_.aligned) {
    address &= ~uint64_t(bytes - 1);
    if (form_.lock && bytes < 8 && random_.one_in(4)) address += random_.below(8 - bytes);
  } else if (!random_.one_in(3)) {
    address &= ~uint64_t(bytes >= 8 ? 7 : bytes - 1);
  }
  return address;
}

void Builder::choose_memory(unsigned size) {
  const uint64_t target = choose_target(size);
  out_.has_memory = true;
  out_.address = target;
  const uint16_t avoid = address_registers_to_avoid(form_);
  const uint16_t bases = uint16_t(pools_.base & ~avoid), indexes = uint16_t(pools_.index & ~avoid);
  out_.address_32 = random_.one_in(16);
  const uint64_t width = out_.address_32 ? 0xffffffff : ~uint64_t(0);
  if (random_.one_in(24)) segment_ = random_.one_in(2) ? 0x64 : 0x65;

  if (form_.special == Special::kGather) {
    choose_gather_memory();
    return;
  }
  const unsigned mode = random_.below(16);
  if (mode < 2) {
    memory_.rip = true;
    memory_.mod = 0;
    memory_.rm = 5;
    return;
  }
  if (mode == 2) {  // [disp32]
    memory_.has_sib = true;
    memory_.rm = 4;
    memory_.displacement = int32_t(target);
    memory_.displacement_size = 4;
    return;
  }
  const bool without_base = mode == 3;
  const bool with_index = mode >= 9 || without_base;
  uint64_t sum = target;  // minus what is settled
  if (with_index) {
    memory_.index = uint8_t(pick_register(indexes, random_));
    memory_.scale = uint8_t(random_.below(4));
    out_.address_registers |= uint16_t(1 << memory_.index);
    memory_.has_sib = true;
  }
  if (!without_base) {
    memory_.base = uint8_t(pick_register(bases, random_));
    out_.address_registers |= uint16_t(1 << memory_.base);
  }
  const bool same = with_index && !without_base && memory_.base == memory_.index;
  const uint64_t factor = uint64_t(1) << memory_.scale;
  if (with_index && !constraints_.known(memory_.index) && !same) {
    // Where the base is not free, only the displacement can make up for the index.
    const bool small = without_base || constraints_.known(memory_.base) || random_.one_in(2);
    const uint64_t value = small ? random_.below(256) : random_.next();
    constraints_.fix(memory_.index, value, width);
  }
  if (with_index && !same) sum -= constraints_.value[memory_.index] * factor;
  static constexpr uint8_t kSizes[4] = {0, 1, 1, 4};
  memory_.displacement_size = kSizes[random_.below(4)];
  if (without_base) {
    memory_.displacement_size = 4;
    memory_.displacement = int32_t(sum);
  } else if (same && !constraints_.known(memory_.base)) {
    const uint64_t value = (target - uint64_t(int64_t(sized_displacement(1)))) / (1 + factor);
    constraints_.fix(memory_.base, value, width);
    memory_.displacement = int32_t(target - value * (1 + factor));
    if (memory_.displacement_size == 0 || memory_.displacement != int8_t(memory_.displacement)) {
      memory_.displacement_size = memory_.displacement == int8_t(memory_.displacement) ? 1 : 4;
    }
  } else if (constraints_.known(memory_.base)) {
    if (same) sum -= constraints_.value[memory_.base] * factor;
    memory_.displacement = int32_t(sum - constraints_.value[memory_.base]);
    if (memory_.displacement_size < 4 && memory_.displacement != int8_t(memory_.displacement)) {
      memory_.displacement_size = 4;
    }
    if (memory_.displacement_size == 0 && memory_.displacement != 0) memory_.displacement_size = 1;
  } else {
    memory_.displacement = sized_displacement(memory_.displacement_size);
    constraints_.fix(memory_.base, sum - uint64_t(int64_t(memory_.displacement)), width);
  }
  if (!without_base && memory_.displacement_size == 0 && (memory_.base & 7) == 5) memory_.displacement_size = 1;
  if (without_base) {
    memory_.mod = 0;
    memory_.rm = 4;
    memory_.base = 5;
    return;
  }
  memory_.mod = memory_.displacement_size == 0 ? 0 : memory_.displacement_size == 1 ? 1 : 2;
  if ((memory_.base & 7) == 4 || random_.one_in(16)) memory_.has_sib = true;
  memory_.rm = memory_.has_sib ? 4 : memory_.base;
}

// [base + vector * scale + disp]: the state has small indexes, so the base points into the middle of the arena.
void Builder::choose_gather_memory() {
  out_.address_32 = false;
  out_.address = ARENA_ADDRESS + ARENA_BYTES / 2;
  memory_.has_sib = true;
  memory_.rm = 4;
  memory_.index = uint8_t(random_.below(16));
  memory_.scale = uint8_t(random_.below(4));
  memory_.base = uint8_t(pick_register(pools_.base, random_));
  memory_.displacement_size = random_.one_in(2) ? 1 : 4;
  memory_.mod = memory_.displacement_size == 1 ? 1 : 2;
  memory_.displacement = sized_displacement(memory_.displacement_size);
  out_.index = int8_t(memory_.index);
  constraints_.fix(memory_.base, out_.address - uint64_t(int64_t(memory_.displacement)));
}

// Numbers 16 to 19 stand for ah, ch, dh, bh.
uint8_t Builder::general_register(unsigned size, bool high_byte_allowed) {
  const auto reg = uint8_t(pick_register(pools_.general, random_));
  if (size == 1 && high_byte_allowed && reg < 4 && random_.one_in(2)) return uint8_t(reg + 16);
  return reg;
}

void Builder::choose_registers() {
  const bool high = !form_.rex_w && !form_.vex;
  for (unsigned i = 0; i < form_.operand_count; i++) {
    const Operand& operand = form_.operands[i];
    const char kind = operand.kind;
    const bool general = is_general(kind);
    uint8_t reg = general ? general_register(operand.size, high) : uint8_t(random_.below(16));
    if (kind == 'P' || kind == 'Q' || kind == 'N' || kind == 'S') reg &= 7;
    if (is_rm(kind) || is_register_rm(kind)) {
      if (out_.has_memory) continue;
      if (form_.special == Special::kDiv || form_.special == Special::kIdiv) {
        while ((reg & 15) == kRax || (reg & 15) == kRdx) reg = general_register(operand.size, high);
      }
      rm_ = reg;
      rm_byte_ = general && operand.size == 1;
      out_.rm = int8_t(reg);
    } else if (is_reg(kind)) {
      if (form_.special == Special::kBitMemory) {
        while (out_.address_registers >> reg & 1) reg = general_register(operand.size, false);
      }
      if (form_.special == Special::kGather && reg == memory_.index) reg ^= 8;
      reg_ = reg;
      reg_byte_ = general && operand.size == 1;
      out_.reg = int8_t(reg);
    } else if (kind == 'Z' || kind == 'S') {
      opcode_reg_ = reg;
      opcode_byte_ = general && operand.size == 1;
      out_.reg = int8_t(reg);
    } else if (kind == 'B' || kind == 'H') {
      // A gather's destination, index and mask are three registers.
      while (form_.special == Special::kGather && (reg == memory_.index || reg == reg_))
        reg = uint8_t((reg + 1) & 15);
      vvvv_ = reg;
      out_.vvvv = int8_t(reg);
    } else if (kind == 'X') {
      is4_ = reg;
    }
  }
}

uint64_t interesting_immediate(Random& random, unsigned size) {
  const unsigned bits = size * 8;
  switch (random.below(8)) {
    case 0:
      return 0;
    case 1:
      return 1;
    case 2:
      return ~uint64_t(0);
    case 3:
      return uint64_t(1) << (bits - 1);
    case 4:
      return (uint64_t(1) << (bits - 1)) - 1;
    case 5:
      return uint64_t(1) << random.below(bits);
    default:
      return random.next();
  }
}

void Builder::choose_immediates() {
  for (unsigned i = 0; i < form_.operand_count; i++) {
    const Operand& operand = form_.operands[i];
    if (operand.kind == 'I') {
      uint64_t value = interesting_immediate(random_, operand.size);
      if (operand.size == 1) value &= form_.immediate_mask;
      if (form_.special == Special::kEnter) value = immediates_ == 0 ? random_.below(64) : random_.below(4);
      if (form_.special == Special::kReturn) value = random_.below(8) * 8;
      // The result of a double shift by more than its 16-bit operand is undefined.
      if (form_.special == Special::kDoubleShift && form_.size == 2) value %= 17;
      immediate_[immediates_] = value;
      immediate_size_[immediates_++] = operand.size;
      out_.immediate = operand.size < 8 ? value & ((uint64_t(1) << operand.size * 8) - 1) : value;
    } else if (operand.kind == 'X') {
      immediate_[immediates_] = uint64_t(is4_) << 4;
      immediate_size_[immediates_++] = 1;
    } else if (operand.kind == 'O') {
      out_.has_memory = true;
      out_.address = choose_target(operand.size);
      immediate_[immediates_] = out_.address;
      immediate_size_[immediates_++] = 8;
    }
  }
}

void Builder::emit_prefixes() {
  if (segment_) out_.append(segment_, 1);
  if (out_.address_32) out_.append(0x67, 1);
  if (form_.lock && out_.has_memory && random_.one_in(2)) {
    out_.append(0xf0, 1);
    out_.locked = true;
  }
  if (form_.operand_size_16 || form_.prefix == 0x66) out_.append(0x66, 1);
  if (form_.rep && !random_.one_in(3)) out_.repeat = random_.one_in(2) ? 0xf2 : 0xf3;
  // REPNE is not defined for the instructions that do not compare.
  if (out_.repeat == 0xf2 && form_.flags_written == 0) out_.repeat = 0xf3;
  if (out_.repeat) out_.append(out_.repeat, 1);
  if (form_.prefix == 0xf2 || form_.prefix == 0xf3) out_.append(form_.prefix, 1);

  const uint8_t base = memory_.rip || !out_.has_memory ? 0 : memory_.base;
  const uint8_t index = memory_.index;
  const bool memory = out_.has_memory;
  auto needs = [](uint8_t reg, bool byte) { return (reg >= 8 && reg < 16) || (byte && reg >= 4 && reg < 8); };
  const bool must = form_.rex_w || needs(reg_, reg_byte_) || needs(rm_, rm_byte_) ||
                    needs(opcode_reg_, opcode_byte_) || (memory && (base >= 8 || index >= 8));
  auto high_to_low = [](uint8_t& reg) {
    if (reg >= 16) reg = uint8_t(reg - 16);
  };
  if (must) {
    high_to_low(reg_);
    high_to_low(rm_);
    high_to_low(opcode_reg_);
    if (out_.rm >= 16) out_.rm = int8_t(out_.rm - 16);
    if (out_.reg >= 16) out_.reg = int8_t(out_.reg - 16);
  }
  const bool any_high = reg_ >= 16 || rm_ >= 16 || opcode_reg_ >= 16;
  auto high_encoding = [](uint8_t& reg) {
    if (reg >= 16) reg = uint8_t(reg - 16 + 4);
  };
  high_encoding(reg_);
  high_encoding(rm_);
  high_encoding(opcode_reg_);
  if (!must && (any_high || !random_.one_in(16))) return;
  if (form_.rep || !form_.modrm) {
    if (!must) return;
  }
  const uint8_t x = memory && !memory_.rip && memory_.has_sib && index >= 8 ? 2 : 0;
  const uint8_t b = memory ? (base >= 8 ? 1 : 0) : (rm_ >= 8 || opcode_reg_ >= 8 ? 1 : 0);
  out_.append(uint64_t(0x40 | (form_.rex_w ? 8 : 0) | (reg_ >= 8 ? 4 : 0) | x | b), 1);
}

void Builder::emit_vex() {
  if (segment_) out_.append(segment_, 1);
  if (out_.address_32) out_.append(0x67, 1);
  const bool memory = out_.has_memory;
  const uint8_t base = memory_.rip || !memory ? 0 : memory_.base;
  const bool x = memory && !memory_.rip && memory_.has_sib && memory_.index >= 8;
  const bool b = memory ? base >= 8 : rm_ >= 8;
  const uint8_t last = uint8_t((~vvvv_ & 15) << 3 | form_.vex_length << 2 | form_.vex_pp);
  const uint8_t r = reg_ >= 8 ? 0 : 0x80;
  if (form_.vex_map == 1 && !x && !b && !form_.vex_w && !random_.one_in(4)) {
    out_.append(0xc5, 1);
    out_.append(uint64_t(r | last), 1);
  } else {
    out_.append(0xc4, 1);
    out_.append(uint64_t(r | (x ? 0 : 0x40) | (b ? 0 : 0x20) | form_.vex_map), 1);
    out_.append(uint64_t(form_.vex_w << 7 | last), 1);
  }
}

void Builder::emit_modrm() {
  const uint8_t reg = uint8_t((form_.digit >= 0 ? form_.digit : reg_ & 7) << 3);
  if (!out_.has_memory) {
    out_.append(uint64_t(0xc0 | reg | (rm_ & 7)), 1);
    return;
  }
  out_.append(uint64_t(memory_.mod << 6 | reg | (memory_.rm & 7)), 1);
  if (memory_.has_sib) {
    out_.append(uint64_t(memory_.scale << 6 | (memory_.index & 7) << 3 | (memory_.base & 7)), 1);
  }
  if (memory_.rip) {
    out_.rip_offset = int8_t(out_.length);
    out_.rip_target = out_.address;
    out_.append(0, 4);
  } else if (memory_.mod == 1) {
    out_.append(uint64_t(memory_.displacement), 1);
  } else if (memory_.displacement_size == 4) {
    out_.append(uint64_t(memory_.displacement), 4);
  }
}

Instruction Builder::build() {
  out_.form = &form_;
  for (unsigned i = 0; i < form_.operand_count; i++) {
    const Operand& operand = form_.operands[i];
    if (is_memory_only(operand.kind) || (is_rm(operand.kind) && !form_.no_memory && random_.one_in(2))) {
      choose_memory(operand.size);
    }
  }
  choose_registers();
  choose_immediates();
  if (form_.vex) {
    emit_vex();
  } else {
    emit_prefixes();
  }
  for (uint8_t byte : form_.opcode) out_.append(byte, 1);
  if (form_.opcode_register) out_.bytes[out_.length - 1] = uint8_t(out_.bytes[out_.length - 1] + (opcode_reg_ & 7));
  if (form_.modrm) emit_modrm();
  for (unsigned i = 0; i < immediates_; i++) out_.append(immediate_[i], immediate_size_[i]);
  for (unsigned i = 0; i < form_.operand_count; i++) {
    if (form_.operands[i].kind == 'J') {
      out_.branch_offset = int8_t(out_.length);
      out_.branch_size = form_.operands[i].size;
      out_.append(0, out_.branch_size);
    }
  }
  return out_;
}

}  // namespace

Instruction build_instruction(const Form& form, const RegisterPools& pools, Constraints& constraints,
                              Random& random) {
  return Builder(form, pools, constraints, random).build();
}

std::vector<uint8_t> place(const std::vector<Instruction>& code, uint64_t address) {
  std::vector<uint64_t> starts;
  uint64_t pc = address;
  for (const Instruction& instruction : code) {
    starts.push_back(pc);
    pc += instruction.length;
  }
  const uint64_t end = pc;
  // A removed instruction's label stands for the next one that is left.
  auto label = [&](int id) {
    for (size_t i = 0; i < code.size(); i++) {
      if (code[i].id >= id) return starts[i];
    }
    return end;
  };
  std::vector<uint8_t> bytes;
  auto store = [&](size_t at, uint64_t value, unsigned size) {
    for (unsigned i = 0; i < size; i++) bytes[at + i] = uint8_t(value >> (8 * i));
  };
  for (size_t i = 0; i < code.size(); i++) {
    const Instruction& instruction = code[i];
    const size_t at = bytes.size();
    bytes.insert(bytes.end(), instruction.bytes.begin(), instruction.bytes.begin() + instruction.length);
    const uint64_t next = starts[i] + instruction.length;
    if (instruction.rip_offset >= 0) {
      const uint64_t target = instruction.rip_label >= 0 ? label(instruction.rip_label) : instruction.rip_target;
      store(at + size_t(instruction.rip_offset), target - next, 4);
    }
    if (instruction.branch_offset >= 0) {
      store(at + size_t(instruction.branch_offset), label(instruction.branch_target) - next, instruction.branch_size);
    }
  }
  bytes.push_back(0xe9);
  bytes.resize(bytes.size() + 4);
  store(bytes.size() - 4, RETURN_ADDRESS - (end + 5), 4);
  return bytes;
}

}  // namespace phybin::difftest
