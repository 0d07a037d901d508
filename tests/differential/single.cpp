// Builds the snippet that tests one form alone, with the scaffolding that control flow and the stack need.
#include "tests/differential/layout.h"
#include "tests/differential/snippet.h"

namespace phybin::difftest {
namespace {

class SingleBuilder {
 public:
  SingleBuilder(const Form& form, bool faults, Random& random) : form_(form), random_(random) {
    snippet_.faults = pools_.faults = faults;
  }
  Snippet build();

 private:
  Instruction make() { return build_instruction(form_, pools_, snippet_.constraints, random_); }
  void add(Instruction instruction) {
    instruction.id = int(snippet_.code.size());
    snippet_.code.push_back(instruction);
  }
  void add_main(const Instruction& instruction) {
    snippet_.main = int(snippet_.code.size());
    add(instruction);
  }
  int next_id() const { return int(snippet_.code.size()); }
  // inc-like and without flags: shows whether it was executed.
  void add_marker(unsigned reg, int8_t amount) {
    Instruction marker;  // lea r, [r + amount]
    marker.append(uint64_t(0x48 | (reg >= 8 ? 5 : 0)), 1);
    marker.append(0x8d, 1);
    marker.append(uint64_t(0x40 | (reg & 7) << 3 | (reg & 7)), 1);
    if ((reg & 7) == kRsp) marker.append(0x24, 1);
    marker.append(uint8_t(amount), 1);
    add(marker);
  }
  void add_label_address(unsigned reg, int label) {
    Instruction lea;  // lea r, [rip + label]
    lea.append(uint64_t(0x48 | (reg >= 8 ? 4 : 0)), 1);
    lea.append(0x8d, 1);
    lea.append(uint64_t(5 | (reg & 7) << 3), 1);
    lea.rip_offset = int8_t(lea.length);
    lea.rip_label = label;
    lea.append(0, 4);
    add(lea);
  }
  void add_store(uint64_t address, unsigned reg) {
    Instruction mov;  // mov [disp32], r
    mov.append(uint64_t(0x48 | (reg >= 8 ? 4 : 0)), 1);
    mov.append(0x89, 1);
    mov.append(uint64_t(4 | (reg & 7) << 3), 1);
    mov.append(0x25, 1);
    mov.append(address, 4);
    add(mov);
  }
  void add_jump(int label) {
    Instruction jump;
    jump.append(0xeb, 1);
    jump.branch_offset = 1;
    jump.branch_size = 1;
    jump.branch_target = label;
    jump.append(0, 1);
    add(jump);
  }
  void add_return() {
    Instruction ret;
    ret.append(0xc3, 1);
    add(ret);
  }
  unsigned scratch_register(uint16_t avoid) {
    return unsigned(pick_register(uint16_t(~avoid & ~(1 << kRsp)), random_));
  }
  void fix_stack() {
    uint64_t top = ARENA_ADDRESS + 1024 + random_.below(ARENA_BYTES - 2048);
    if (!random_.one_in(4)) top &= ~uint64_t(7);
    if (pools_.faults)
      top = random_.one_in(2) ? ARENA_ADDRESS + random_.below(9) : ARENA_ADDRESS + ARENA_BYTES - random_.below(9);
    snippet_.constraints.fix(kRsp, top);
  }
  void build_branch();
  void build_call();
  void build_indirect();
  void build_return();

  const Form& form_;
  Random& random_;
  RegisterPools pools_;
  Snippet snippet_;
};

void SingleBuilder::build_branch() {
  Instruction branch = make();
  const unsigned skipped = 1 + random_.below(3);
  const unsigned marker = scratch_register(0);
  branch.branch_target = next_id() + 1 + int(skipped);
  add_main(branch);
  for (unsigned i = 0; i < skipped; i++) add_marker(marker, int8_t(1 << i));
  add_marker(marker, 64);
}

// call f; jmp end; f: marker; ret; end:
void SingleBuilder::build_call() {
  fix_stack();
  Instruction call = make();
  call.branch_target = next_id() + 3;
  add_main(call);
  add_marker(scratch_register(0), 3);
  add_jump(next_id() + 3);
  add_marker(scratch_register(0), 5);
  add_return();
}

// lea r, target; (mov [operand], r;) jmp operand; skipped marker; target:
void SingleBuilder::build_indirect() {
  const bool is_call = form_.special == Special::kCallIndirect;
  if (is_call) fix_stack();
  Instruction branch = make();
  while (!branch.has_memory && branch.rm == kRsp) branch = make();
  const bool memory = branch.has_memory;
  const unsigned reg = memory ? scratch_register(branch.address_registers) : unsigned(branch.rm);
  const int branch_id = next_id() + (memory ? 2 : 1);
  // As in build_call; a jump just skips a marker.
  const int target = branch_id + (is_call ? 3 : 2);
  add_label_address(reg, target);
  if (memory) add_store(branch.address, reg);
  add_main(branch);
  add_marker(scratch_register(0), 3);
  if (is_call) {
    add_jump(target + 2);
    add_marker(scratch_register(0), 5);
    add_return();
  }
}

// lea r, target; push r; ret; skipped marker; target:
void SingleBuilder::build_return() {
  fix_stack();
  const unsigned reg = scratch_register(0);
  add_label_address(reg, next_id() + 4);
  Instruction push;
  if (reg >= 8) push.append(0x41, 1);
  push.append(uint64_t(0x50 | (reg & 7)), 1);
  add(push);
  add_main(make());
  add_marker(scratch_register(0), 3);
}

Snippet SingleBuilder::build() {
  switch (form_.special) {
    case Special::kJump:
    case Special::kLoop:
      build_branch();
      return snippet_;
    case Special::kCall:
      build_call();
      return snippet_;
    case Special::kJumpIndirect:
    case Special::kCallIndirect:
      build_indirect();
      return snippet_;
    case Special::kReturn:
      build_return();
      return snippet_;
    case Special::kStack:
      fix_stack();
      break;
    case Special::kEnter:
    case Special::kLeave:
      fix_stack();
      snippet_.constraints.fix(kRbp, ARENA_ADDRESS + 1024 + random_.below(1024));
      break;
    case Special::kXlat:
      snippet_.constraints.fix(kRbx, ARENA_ADDRESS + random_.below(1024));
      break;
    case Special::kMaskMove:
      snippet_.constraints.fix(kRdi, ARENA_ADDRESS + 512 + random_.below(1024));
      break;
    default:
      break;
  }
  add_main(make());
  return snippet_;
}

}  // namespace

Snippet build_single(const Form& form, bool faults, Random& random) {
  return SingleBuilder(form, faults, random).build();
}

}  // namespace phybin::difftest
