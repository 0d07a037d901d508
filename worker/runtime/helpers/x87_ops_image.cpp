// The x87 instructions that save and restore the whole state, in their memory formats (SDM vol. 1, 8.1.10 and
// figures 8-9 to 8-12; vol. 2, FXSAVE). Code and data segment selectors are stored as 0, as CPUs do that report
// "deprecates FPU CS and DS" (CPUID leaf 7, EBX bit 13).
#include <cstring>

#include "worker/runtime/helpers/x87_commit.h"
#include "worker/runtime/helpers/x87_ops.h"

namespace phybin::runtime::x87 {

using namespace detail;

namespace {

template <typename T>
void put(uint8_t* image, unsigned offset, T value) {
  std::memcpy(image + offset, &value, sizeof value);
}

template <typename T>
T get(const uint8_t* image, unsigned offset) {
  T value;
  std::memcpy(&value, image + offset, sizeof value);
  return value;
}

// The full tag word: two bits a physical register, 0 valid, 1 zero, 2 special, 3 empty.
uint16_t tag_word(const X87State& state) {
  const unsigned occupied = physical_tags(state);
  uint32_t tags = 0;
  for (unsigned i = 0; i < 8; ++i) {
    const Float80 v = state.registers[i];
    uint32_t tag = is_normal(v) ? 0 : is_zero(v) ? 1 : 2;
    if ((occupied >> i & 1) == 0) tag = 3;
    tags |= tag << (2 * i);
  }
  return static_cast<uint16_t>(tags);
}

// After set_status_word, which sets TOP.
void set_tag_word(X87State& state, uint16_t tags) {
  uint8_t occupied = 0;
  for (unsigned i = 0; i < 8; ++i) {
    if ((tags >> (2 * i) & 3) != 3) occupied |= static_cast<uint8_t>(1u << i);
  }
  set_physical_tags(state, occupied);
}

void set_status_word(X87State& state, uint16_t status) {
  state.status_word = static_cast<uint16_t>(status & ~kTopMask);
  state.top = status >> 11 & 7;
  update_error_summary(state);
}

void put_environment(const X87State& state, uint8_t* image, bool operand16) {
  const uint16_t words[3] = {state.control_word, full_status_word(state), tag_word(state)};
  if (operand16) {
    for (unsigned i = 0; i < 3; ++i) put(image, 2 * i, words[i]);
    put(image, 6, static_cast<uint16_t>(state.last_instruction));
    put(image, 8, uint16_t{0});
    put(image, 10, static_cast<uint16_t>(state.last_data));
    put(image, 12, uint16_t{0});
    return;
  }
  for (unsigned i = 0; i < 3; ++i) put(image, 4 * i, 0xffff0000u | words[i]);
  put(image, 12, static_cast<uint32_t>(state.last_instruction));
  put(image, 16, static_cast<uint32_t>(state.last_opcode) << 16);
  put(image, 20, static_cast<uint32_t>(state.last_data));
  put(image, 24, 0xffff0000u);
}

void get_environment(X87State& state, const uint8_t* image, bool operand16) {
  const unsigned step = operand16 ? 2 : 4;
  set_control_word(state, get<uint16_t>(image, 0));
  set_status_word(state, get<uint16_t>(image, step));
  set_tag_word(state, get<uint16_t>(image, 2 * step));
  if (operand16) {
    state.last_instruction = get<uint16_t>(image, 6);
    state.last_opcode = 0;
    state.last_data = get<uint16_t>(image, 10);
  } else {
    state.last_instruction = get<uint32_t>(image, 12);
    state.last_opcode = get<uint16_t>(image, 18) & 0x7ff;
    state.last_data = get<uint32_t>(image, 20);
  }
}

// Registers lie in stack order, `stride` bytes apart.
void put_registers(X87State& state, uint8_t* image, unsigned stride) {
  for (unsigned i = 0; i < 8; ++i) {
    put(image, i * stride, st(state, i).significand);
    put(image, i * stride + 8, st(state, i).sign_exponent);
  }
}

void get_registers(X87State& state, const uint8_t* image, unsigned stride) {
  for (unsigned i = 0; i < 8; ++i) {
    st(state, i) = {get<uint64_t>(image, i * stride), get<uint16_t>(image, i * stride + 8)};
  }
}

uint8_t* host(uint64_t address) { return reinterpret_cast<uint8_t*>(address); }

constexpr unsigned environment_size(uint64_t operand16) { return operand16 != 0 ? kEnvironment16 : kEnvironment32; }

}  // namespace

}  // namespace phybin::runtime::x87

using namespace phybin::runtime::x87;

uint64_t phybin_x87_fnstenv(X87State* state, uint64_t image, uint64_t operand16) {
  put_environment(*state, host(image), operand16 != 0);
  set_control_word(*state, state->control_word | kExceptionMask);
  return 0;
}

uint64_t phybin_x87_fldenv(X87State* state, uint64_t image, uint64_t operand16) {
  get_environment(*state, host(image), operand16 != 0);
  return 0;
}

uint64_t phybin_x87_fnsave(X87State* state, uint64_t image, uint64_t operand16) {
  put_environment(*state, host(image), operand16 != 0);
  put_registers(*state, host(image) + environment_size(operand16), 10);
  return phybin_x87_fninit(state, 0, 0);
}

uint64_t phybin_x87_frstor(X87State* state, uint64_t image, uint64_t operand16) {
  get_environment(*state, host(image), operand16 != 0);
  get_registers(*state, host(image) + environment_size(operand16), 10);
  return 0;
}

uint64_t phybin_x87_fxsave(X87State* state, uint64_t image, uint64_t wide) {
  uint8_t* const to = host(image);
  put(to, 0, state->control_word);
  put(to, 2, full_status_word(*state));
  put(to, 4, static_cast<uint16_t>(physical_tags(*state)));
  put(to, 6, state->last_opcode);
  const uint64_t mask = wide != 0 ? ~uint64_t{0} : 0xffffffff;
  put(to, 8, state->last_instruction & mask);
  put(to, 16, state->last_data & mask);
  for (unsigned i = 0; i < 8; ++i) {
    put(to, 32 + 16 * i, st(*state, i).significand);
    put(to, 40 + 16 * i, static_cast<uint64_t>(st(*state, i).sign_exponent));
  }
  return 0;
}

uint64_t phybin_x87_fxrstor(X87State* state, uint64_t image, uint64_t wide) {
  const uint8_t* const from = host(image);
  set_control_word(*state, get<uint16_t>(from, 0));
  set_status_word(*state, get<uint16_t>(from, 2));
  set_physical_tags(*state, get<uint8_t>(from, 4));
  state->last_opcode = get<uint16_t>(from, 6) & 0x7ff;
  const uint64_t mask = wide != 0 ? ~uint64_t{0} : 0xffffffff;
  state->last_instruction = get<uint64_t>(from, 8) & mask;
  state->last_data = get<uint64_t>(from, 16) & mask;
  get_registers(*state, from + 32, 16);
  return 0;
}
