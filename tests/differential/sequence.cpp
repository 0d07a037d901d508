// Random sequences: straight code with flags flowing between instructions, forward jumps and small counted loops.
// Registers that addresses and loop counters depend on are set aside, so that every memory operand stays inside the
// arena whatever the other instructions do. What would let undefined flags flow into an instruction is taken back.
#include <cstdlib>

#include "tests/differential/compare.h"
#include "tests/differential/layout.h"

namespace phybin::difftest {
namespace {

constexpr int kMaxStackOffset = 200;

class SequenceBuilder {
 public:
  SequenceBuilder(const std::vector<const Form*>& forms, bool faults, Random& random);
  Snippet build();

 private:
  void add_item();
  void add_simple();
  void add_string(const Form& form);
  void add_guarded(const Form& form);
  void add_conditional();
  void add_loop();
  bool stack_allows(const Form& form, int& change) const;
  void add(Instruction instruction, int unit) {
    instruction.id = int(snippet_.code.size());
    instruction.unit = unit;
    snippet_.code.push_back(instruction);
  }
  int next_id() const { return int(snippet_.code.size()); }
  void add_move_immediate(unsigned reg, uint32_t value, int unit) {
    Instruction mov;  // mov r32, imm32
    if (reg >= 8) mov.append(0x41, 1);
    mov.append(uint64_t(0xb8 | (reg & 7)), 1);
    mov.append(value, 4);
    add(mov, unit);
  }
  void add_byte(uint8_t opcode, int unit) {
    Instruction instruction;
    instruction.append(opcode, 1);
    add(instruction, unit);
  }
  Instruction make(const Form& form) {
    Constraints constraints = current_;
    pools_.faults = faults_ && random_.one_in(8);
    return build_instruction(form, pools_, constraints, random_);
  }
  const Form& pick(const std::vector<const Form*>& forms) { return *forms[random_.below(uint32_t(forms.size()))]; }

  Random& random_;
  std::vector<const Form*> plain_, readers_, jumps_, strings_, guarded_;
  RegisterPools pools_;
  Constraints current_;  // RSP moves along the sequence
  Snippet snippet_;
  unsigned counter_ = 0;
  int stack_offset_ = 0;
  int units_ = 0;
  bool in_loop_ = false;
  bool faults_;
};

SequenceBuilder::SequenceBuilder(const std::vector<const Form*>& forms, bool faults, Random& random)
    : random_(random), faults_(faults) {
  for (const Form* form : forms) {
    if (form->no_sequence) continue;
    switch (form->special) {
      case Special::kJump:
        jumps_.push_back(form);
        continue;
      case Special::kString:
        strings_.push_back(form);
        continue;
      case Special::kDoubleShift:
        // By CL: more than 16 would leave the result undefined.
        if (form->size == 2 && form->opcode.back() % 2) continue;
        break;
      case Special::kNone:
      case Special::kShift:
      case Special::kRotate:
      case Special::kRotateCarry:
      case Special::kStack:
      case Special::kX87:
      case Special::kCompareExchange:
        break;
      default:
        continue;
    }
    plain_.push_back(form);
    if (form->flags_read && form->special != Special::kStack) readers_.push_back(form);
  }
}

// Keeps RSP near the middle of the arena.
bool SequenceBuilder::stack_allows(const Form& form, int& change) const {
  if (in_loop_) return false;
  const int bytes = form.operand_size_16 ? 2 : 8;
  change = form.mnemonic.starts_with("push") ? -bytes : bytes;
  return std::abs(stack_offset_ + change) <= kMaxStackOffset;
}

void SequenceBuilder::add_simple() {
  if (plain_.empty()) return;
  const Form& form = !readers_.empty() && random_.one_in(4) ? pick(readers_) : pick(plain_);
  int change = 0;
  if (form.special == Special::kStack && !stack_allows(form, change)) return;
  add(make(form), units_++);
  if (flag_flow(snippet_.code, -1).reads_undefined) {
    snippet_.code.pop_back();
    return;
  }
  stack_offset_ += change;
  current_.value[kRsp] += uint64_t(int64_t(change));
}

void SequenceBuilder::add_string(const Form& form) {
  const int unit = units_++;
  const bool down = random_.one_in(3);
  add_move_immediate(kRsi, ARENA_ADDRESS + 1024 + random_.below(1024), unit);
  add_move_immediate(kRdi, ARENA_ADDRESS + 1024 + random_.below(1024), unit);
  add_move_immediate(kRcx, random_.below(20), unit);
  if (down) add_byte(0xfd, unit);
  add(make(form), unit);
  if (down) add_byte(0xfc, unit);
}

// Division and bit scans, with an operand that is made not to be zero.
void SequenceBuilder::add_guarded(const Form& form) {
  const size_t before = snippet_.code.size();
  const bool division = form.special == Special::kDiv;
  Instruction instruction = make(form);
  if (instruction.has_memory) return;
  const int unit = units_++;
  const auto reg = unsigned(instruction.rm);
  if (division) add_move_immediate(kRdx, random_.below(256), unit);
  Instruction set_bit;  // or r32, 0x100
  if (reg >= 8) set_bit.append(0x41, 1);
  set_bit.append(0x81, 1);
  set_bit.append(uint64_t(0xc8 | (reg & 7)), 1);
  set_bit.append(0x100, 4);
  add(set_bit, unit);
  add(instruction, unit);
  if (flag_flow(snippet_.code, -1).reads_undefined) snippet_.code.resize(before);
}

// A forward jump over a few instructions.
void SequenceBuilder::add_conditional() {
  if (jumps_.empty()) return;
  const size_t at = snippet_.code.size();
  add(make(pick(jumps_)), units_++);
  if (flag_flow(snippet_.code, -1).reads_undefined) {
    snippet_.code.pop_back();
    return;
  }
  for (unsigned i = 1 + random_.below(4); i > 0; i--) add_simple();
  snippet_.code[at].branch_target = next_id();
}

void SequenceBuilder::add_loop() {
  const std::vector<Instruction> before = snippet_.code;
  const int unit = units_++;
  add_move_immediate(counter_, 1 + random_.below(4), unit);
  const int head = next_id();
  in_loop_ = true;
  for (unsigned i = 1 + random_.below(5); i > 0; i--) {
    if (random_.one_in(5)) {
      add_conditional();
    } else {
      add_simple();
    }
  }
  in_loop_ = false;
  Instruction decrement;  // sub r32, 1
  if (counter_ >= 8) decrement.append(0x41, 1);
  decrement.append(0x83, 1);
  decrement.append(uint64_t(0xe8 | (counter_ & 7)), 1);
  decrement.append(1, 1);
  add(decrement, unit);
  Instruction branch;  // jnz head
  branch.append(0x0f, 1);
  branch.append(0x85, 1);
  branch.branch_offset = int8_t(branch.length);
  branch.branch_size = 4;
  branch.branch_target = head;
  branch.append(0, 4);
  add(branch, unit);
  if (flag_flow(snippet_.code, -1).reads_undefined) snippet_.code = before;
}

void SequenceBuilder::add_item() {
  const unsigned kind = random_.below(24);
  if (kind < 4) {
    add_conditional();
  } else if (kind < 6) {
    add_loop();
  } else if (kind == 6 && !strings_.empty()) {
    add_string(pick(strings_));
  } else if (kind == 7 && !guarded_.empty()) {
    add_guarded(pick(guarded_));
  } else {
    add_simple();
  }
}

Snippet SequenceBuilder::build() {
  snippet_.main = -1;
  uint16_t candidates = 0xff28;  // those that no instruction uses implicitly
  auto take = [&] {
    const int reg = pick_register(candidates, random_);
    candidates = uint16_t(candidates & ~(1 << reg));
    pools_.general = uint16_t(pools_.general & ~(1 << reg));
    return unsigned(reg);
  };
  pools_.general = uint16_t(0xffff & ~(1 << kRsp));
  pools_.base = 1 << kRsp;
  current_.fix(kRsp, ARENA_ADDRESS + ARENA_BYTES / 2);
  for (int i = 0; i < 2; i++) {
    const unsigned base = take();
    pools_.base = uint16_t(pools_.base | 1 << base);
    current_.fix(base, ARENA_ADDRESS + random_.below(ARENA_BYTES));
  }
  const unsigned index = take();
  pools_.index = uint16_t(1 << index);
  current_.fix(index, random_.below(64));
  counter_ = take();
  snippet_.constraints = current_;
  const unsigned length = 2 + random_.below(29);
  for (unsigned tries = 0; snippet_.code.size() < length && tries < 4 * length; tries++) add_item();
  return snippet_;
}

}  // namespace

Snippet build_sequence(const std::vector<const Form*>& forms, bool faults, Random& random) {
  return SequenceBuilder(forms, faults, random).build();
}

}  // namespace phybin::difftest
