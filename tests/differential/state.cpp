// Makes the initial state of a case: corner values everywhere, then what the snippet demands, then operands that
// keep the instruction under test from faulting or that make its rarer outcomes likely.
#include "tests/differential/state.h"

#include <cstring>

namespace phybin::difftest {
namespace {

class StateMaker {
 public:
  StateMaker(const Snippet& snippet, const StateOptions& options, Random& random)
      : snippet_(snippet), options_(options), random_(random) {}
  CaseRecord make();

 private:
  const Instruction& main() const { return snippet_.code[size_t(snippet_.main)]; }
  void fill_vectors(Hint hint);
  void fill_x87(Hint hint);
  void fill_memory(Hint hint);
  void fill_control();
  void adjust();
  void adjust_division(bool is_signed);
  void adjust_string();
  void adjust_x87();
  void adjust_compare_exchange();
  // Bytes of memory as the snippet will find them: the pattern repeats over the arena.
  void write_memory(uint64_t address, const void* data, size_t size) {
    for (size_t i = 0; i < size; i++) {
      state_.pattern[(address + i) % PATTERN_BYTES] = static_cast<const uint8_t*>(data)[i];
    }
  }
  uint64_t read_memory(uint64_t address, size_t size) const {
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++) value |= uint64_t(state_.pattern[(address + i) % PATTERN_BYTES]) << (8 * i);
    return value;
  }
  void write_low(unsigned reg, uint64_t value, unsigned size) { std::memcpy(&state_.gpr[reg], &value, size); }
  void write_operand(const Instruction& instruction, uint64_t value, unsigned size) {
    if (instruction.has_memory) {
      write_memory(instruction.address, &value, size);
    } else if (instruction.rm >= 16) {
      reinterpret_cast<uint8_t*>(&state_.gpr[instruction.rm - 16])[1] = uint8_t(value);
    } else {
      write_low(unsigned(instruction.rm), value, size);
    }
  }

  const Snippet& snippet_;
  const StateOptions& options_;
  Random& random_;
  CaseRecord state_{};
};

void StateMaker::fill_vectors(Hint hint) {
  for (auto& reg : state_.vector) {
    const Hint kind = hint != Hint::kNone && hint != Hint::kF80 && !random_.one_in(8) ? hint : Hint::kNone;
    fill_lanes(random_, kind, reg, sizeof(reg));
  }
}

void StateMaker::fill_memory(Hint hint) {
  if (hint == Hint::kF80) hint = random_.one_in(2) ? Hint::kF64 : Hint::kF32;
  for (size_t i = 0; i < PATTERN_BYTES; i += 64) {
    fill_lanes(random_, hint != Hint::kNone && !random_.one_in(8) ? hint : Hint::kNone, state_.pattern + i, 64);
  }
}

// An FXSAVE image: any top of stack with some registers on it, sometimes none free or holes.
void StateMaker::fill_x87(Hint hint) {
  uint16_t control = 0x37f;
  if (options_.rounding && random_.one_in(3)) control = uint16_t(control | random_.below(4) << 10);
  if (options_.precision && random_.one_in(4)) {
    control = uint16_t((control & ~0x300) | (random_.one_in(2) ? 0x000 : 0x200));
  }
  const unsigned top = random_.below(8);
  auto status = uint16_t(top << 11);
  if (random_.one_in(4)) {
    status = uint16_t(status | (random_.below(16) & 7) << 8);
    status = uint16_t(status | random_.below(2) << 14);
  }
  const unsigned depth = 1 + random_.below(7);
  uint32_t valid = ((1u << depth) - 1) << top;
  valid |= valid >> 8;
  if (snippet_.main >= 0 && random_.one_in(4)) valid = random_.one_in(2) ? 0xff : uint32_t(random_.next());
  std::memcpy(state_.fx, &control, 2);
  std::memcpy(state_.fx + 2, &status, 2);
  state_.fx[4] = uint8_t(valid);
  for (unsigned i = 0; i < 8; i++) {
    uint8_t* reg = state_.fx + 32 + 16 * i;
    if (hint == Hint::kF80) {
      float80_value(random_, reg);
    } else {
      fill_lanes(random_, hint, reg, 8);
      reg[8] = reg[9] = 0xff;
    }
  }
  const uint32_t mxcsr = 0x1f80, mask = 0xffff;
  std::memcpy(state_.fx + 24, &mxcsr, 4);
  std::memcpy(state_.fx + 28, &mask, 4);
}

void StateMaker::fill_control() {
  state_.mxcsr = 0x1f80;
  if (options_.rounding && random_.one_in(4)) state_.mxcsr |= random_.below(4) << 13;
  if (options_.ftz && random_.one_in(8)) {
    if (random_.one_in(2)) state_.mxcsr |= 0x8000;
    if (random_.one_in(2)) state_.mxcsr |= 0x40;
  }
  state_.flags = 0x202 | (random_.next() & kStatusFlags);
  const bool string = snippet_.main >= 0 && main().form->special == Special::kString;
  if (snippet_.main >= 0 && random_.one_in(string ? 3 : 16)) state_.flags |= kDf;
}

void StateMaker::adjust_division(bool is_signed) {
  if (snippet_.faults && !random_.one_in(4)) return;  // overflow, or zero
  using Wide = unsigned __int128;
  using SignedWide = __int128;
  const unsigned size = main().form->size, bits = size * 8;
  const uint64_t mask = bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1;
  auto extend = [&](uint64_t v) { return int64_t(v << (64 - bits)) >> (64 - bits); };
  uint64_t divisor = 0;
  while (divisor == 0) divisor = integer_value(random_, bits);
  uint64_t quotient = integer_value(random_, bits);
  Wide dividend = 0;
  if (is_signed) {
    const SignedWide d = extend(divisor), q = extend(quotient);
    const SignedWide magnitude = d < 0 ? -d : d;
    SignedWide rest = SignedWide(Wide(random_.next()) % Wide(magnitude));
    const bool negative = q == 0 ? random_.one_in(2) : (q < 0) != (d < 0);
    dividend = Wide(q * d + (negative ? -rest : rest));
  } else {
    dividend = Wide(quotient) * divisor + random_.next() % divisor;
  }
  write_operand(main(), divisor, size);
  if (size == 1) {
    write_low(kRax, uint64_t(dividend) & 0xffff, 2);
  } else {
    write_low(kRax, uint64_t(dividend) & mask, size);
    write_low(kRdx, uint64_t(dividend >> bits) & mask, size);
  }
}

void StateMaker::adjust_string() {
  const Instruction& instruction = main();
  const uint8_t opcode = instruction.form->opcode.back();
  const unsigned size = opcode % 2 == 0 ? 1 : instruction.form->rex_w ? 8 : instruction.form->prefix == 0x66 ? 2 : 4;
  const uint64_t count = random_.one_in(8) ? 0 : random_.below(random_.one_in(2) ? 8 : 80);
  state_.gpr[kRsi] = ARENA_ADDRESS + 1024 + random_.below(1024);
  state_.gpr[kRdi] = random_.one_in(3) ? state_.gpr[kRsi] - 16 + random_.below(32)  // overlapping
                                       : ARENA_ADDRESS + 1024 + random_.below(1024);
  state_.gpr[kRcx] = instruction.repeat ? count : random_.next();
  if (snippet_.faults) {
    // Near an end, so that the fault comes after some elements.
    uint64_t& pointer = state_.gpr[random_.one_in(2) ? kRsi : kRdi];
    pointer = random_.one_in(2) ? ARENA_ADDRESS + random_.below(64) : ARENA_ADDRESS + ARENA_BYTES - random_.below(64);
  }
  const bool compares = instruction.form->flags_written != 0;
  if (compares && !random_.one_in(3)) {
    // Long runs of equal elements, now and then another.
    const uint64_t element = integer_value(random_, size * 8);
    for (unsigned i = 0; i < PATTERN_BYTES; i += size) {
      const uint64_t value = random_.one_in(40) ? random_.next() : element;
      std::memcpy(state_.pattern + i, &value, size);
    }
    if (random_.one_in(2)) write_low(kRax, element, size);
    state_.gpr[kRsi] &= ~uint64_t(7);
    state_.gpr[kRdi] &= ~uint64_t(7);
  }
}

void StateMaker::adjust_compare_exchange() {
  const Instruction& instruction = main();
  const unsigned size = instruction.form->size;
  if (!random_.one_in(2)) return;
  if (instruction.form->special == Special::kCompareExchangePair) {
    const unsigned half = size / 2;
    write_low(kRax, read_memory(instruction.address, half), half);
    write_low(kRdx, read_memory(instruction.address + half, half), half);
    return;
  }
  if (instruction.has_memory) {
    write_low(kRax, read_memory(instruction.address, size), size);
  } else if (instruction.rm >= 16) {
    write_low(kRax, state_.gpr[instruction.rm - 16] >> 8, 1);
  } else {
    write_low(kRax, state_.gpr[instruction.rm], size);
  }
}

void StateMaker::adjust_x87() {
  const Instruction& instruction = main();
  const Form& form = *instruction.form;
  uint8_t* top = state_.fx + 32;
  auto limit_exponent = [&](uint16_t limit) {
    uint16_t exponent;
    std::memcpy(&exponent, top + 8, 2);
    if ((exponent & 0x7fff) > limit) exponent = uint16_t((exponent & 0x8000) | (limit - random_.below(64)));
    std::memcpy(top + 8, &exponent, 2);
    top[7] |= 0x80;
  };
  if (form.mnemonic == "fldcw") {
    const uint64_t control = 0x37f | (options_.rounding ? random_.below(4) << 10 : 0);
    write_memory(instruction.address, &control, 2);
  } else if (form.mnemonic == "fbld") {
    uint8_t digits[10];
    for (uint8_t& byte : digits) {
      byte = uint8_t(random_.below(10) << 4);
      byte = uint8_t(byte | random_.below(10));
    }
    digits[9] = random_.one_in(2) ? 0x80 : 0;
    write_memory(instruction.address, digits, sizeof(digits));
  } else if (form.mnemonic == "fld" && form.operands[0].size == 10) {
    uint8_t value[10];
    float80_value(random_, value);
    write_memory(instruction.address, value, sizeof(value));
  } else if (form.mnemonic == "f2xm1") {
    limit_exponent(0x3ffe);  // undefined beyond 1
  } else if (form.mnemonic == "fyl2xp1") {
    limit_exponent(0x3ffc);  // undefined beyond 1 - sqrt(2) / 2
  }
}

void StateMaker::adjust() {
  const Instruction& instruction = main();
  const Form& form = *instruction.form;
  switch (form.special) {
    case Special::kDiv:
      adjust_division(false);
      break;
    case Special::kIdiv:
      adjust_division(true);
      break;
    case Special::kString:
      adjust_string();
      break;
    case Special::kCompareExchange:
    case Special::kCompareExchangePair:
      adjust_compare_exchange();
      break;
    case Special::kBitMemory: {
      // The bit lies within 64 bytes of the operand.
      const uint64_t offset = random_.below(1024) - uint64_t(512);
      write_low(unsigned(instruction.reg), offset, form.size);
      break;
    }
    case Special::kBitScan: {
      const unsigned bits = form.size * 8;
      if (random_.one_in(3)) write_operand(instruction, uint64_t(1) << random_.below(bits), form.size);
      if (form.size != 4 || instruction.rm == instruction.reg) break;
      const uint64_t value =
          instruction.has_memory ? read_memory(instruction.address, 4) : state_.gpr[instruction.rm] & 0xffffffff;
      if (value == 0) write_operand(instruction, 1 + random_.below(1000), 4);
      break;
    }
    case Special::kDoubleShift:
      // The result of a 16-bit shift by more than 16 is undefined.
      if (form.size == 2) {
        const uint64_t ignored = random_.below(8) * 32;
        write_low(kRcx, ignored + random_.below(17), 1);
      }
      break;
    case Special::kLoop:
      if (!random_.one_in(3)) {
        state_.gpr[kRcx] = random_.below(3);
        if (random_.one_in(3)) state_.gpr[kRcx] |= random_.next() << 32;
      }
      break;
    case Special::kStack:
      if (form.mnemonic.starts_with("popf")) {
        const uint64_t flags = 0x202 | (random_.next() & (kStatusFlags | kDf));
        write_memory(state_.gpr[kRsp], &flags, 8);
      }
      break;
    case Special::kX87:
      adjust_x87();
      break;
    case Special::kGather: {
      // Indexes that stay inside the arena, whatever the scale; the base lies in its middle.
      uint8_t* index = state_.vector[instruction.index];
      const bool quadwords = form.opcode.back() & 1;
      for (unsigned i = 0; i < 32; i += quadwords ? 8 : 4) {
        const int64_t value = int64_t(random_.below(200)) - 100;
        std::memcpy(index + i, &value, quadwords ? 8 : 4);
      }
      break;
    }
    case Special::kLoadMxcsr: {
      // All exceptions masked: LDMXCSR raises none itself, but what follows it might.
      uint32_t mxcsr = 0x1f80 | (random_.below(4) << 13);
      if (options_.ftz) {
        mxcsr |= random_.below(2) << 15;
        mxcsr |= random_.below(2) << 6;
      }
      write_memory(instruction.address, &mxcsr, 4);
      break;
    }
    default:
      break;
  }
}

CaseRecord StateMaker::make() {
  Hint hint = Hint::kNone, x87_hint = Hint::kNone;
  bool wants_x87 = false, wants_ymm = false;
  for (const Instruction& instruction : snippet_.code) {
    if (!instruction.form) continue;
    const Form& form = *instruction.form;
    if (snippet_.main >= 0 ? &instruction == &main() : random_.one_in(3)) hint = form.hint;
    if (form.special == Special::kX87) wants_x87 = true;
    if (snippet_.main >= 0 && form.special == Special::kX87) x87_hint = form.hint;
    wants_ymm |= form.mnemonic.starts_with("vzero");
    for (const Operand& operand : form.operands) {
      wants_ymm |= form.vex && (operand.kind == 'V' || operand.kind == 'H' || operand.kind == 'U');
      wants_x87 |= operand.kind == 'P' || operand.kind == 'Q' || operand.kind == 'N' || operand.kind == 'S';
    }
  }
  for (uint64_t& reg : state_.gpr) {
    static constexpr unsigned kBits[4] = {8, 16, 32, 64};
    const unsigned bits = kBits[random_.below(4)];
    // Small operands with other bits above them.
    reg = integer_value(random_, bits);
    if (bits < 64 && !random_.one_in(4)) reg |= random_.next() << bits;
  }
  fill_control();
  fill_vectors(hint);
  fill_memory(hint);
  if (wants_x87) {
    fill_x87(x87_hint != Hint::kNone ? x87_hint : hint);
    state_.options |= OPTION_FX;
  }
  if (wants_ymm) state_.options |= OPTION_YMM;
  const Constraints& constraints = snippet_.constraints;
  for (unsigned i = 0; i < 16; i++) {
    state_.gpr[i] = (state_.gpr[i] & ~constraints.mask[i]) | (constraints.value[i] & constraints.mask[i]);
  }
  if (snippet_.main >= 0) adjust();
  return state_;
}

}  // namespace

CaseRecord make_state(const Snippet& snippet, const StateOptions& options, Random& random) {
  return StateMaker(snippet, options, random).make();
}

}  // namespace phybin::difftest
