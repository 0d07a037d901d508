// Texts about failing cases.
#include <capstone/capstone.h>
#include <sys/wait.h>

#include <cstring>

#include "tests/differential/compare.h"

namespace phybin::difftest {
namespace {

constexpr const char* kGprNames[16] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                       "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};

template <typename... Arguments>
std::string format(const char* pattern, Arguments... arguments) {
  char buffer[256];
  std::snprintf(buffer, sizeof(buffer), pattern, arguments...);
  return buffer;
}

std::string flag_names(uint64_t flags) {
  static constexpr struct {
    uint32_t bit;
    const char* name;
  } kNames[] = {{kCf, "CF "}, {kPf, "PF "}, {kAf, "AF "}, {kZf, "ZF "}, {kSf, "SF "}, {kDf, "DF "}, {kOf, "OF "}};
  std::string text;
  for (const auto& flag : kNames) {
    if (flags & flag.bit) text += flag.name;
  }
  return text.empty() ? "-" : text;
}

std::string hex_bytes(const uint8_t* bytes, size_t size) {
  std::string text;
  for (size_t i = size; i-- > 0;) {
    text += format("%02x", bytes[i]);
    if (i % 8 == 0 && i) text += '_';
  }
  return text;
}

}  // namespace

std::string describe_case(const Case& item, uint64_t address) {
  std::string text;
  csh handle = 0;
  const bool open = cs_open(CS_ARCH_X86, CS_MODE_64, &handle) == CS_ERR_OK;
  const std::vector<uint8_t> bytes = place(item.snippet->code, address);
  size_t at = 0;
  for (size_t i = 0; i < item.snippet->code.size(); i++) {
    const size_t length = item.snippet->code[i].length;
    std::string encoding;
    for (size_t b = 0; b < length; b++) encoding += format("%02x", bytes[at + b]);
    cs_insn* instruction = nullptr;
    const size_t count = open ? cs_disasm(handle, bytes.data() + at, length, address + at, 1, &instruction) : 0;
    const bool is_main = static_cast<int>(i) == item.snippet->main;
    text += format("  %s %08llx  %-24s ", is_main ? ">" : " ", static_cast<unsigned long long>(address) + at,
                   encoding.c_str());
    text += count ? format("%s %s\n", instruction->mnemonic, instruction->op_str) : std::string("?\n");
    if (count) cs_free(instruction, count);
    at += length;
  }
  if (open) cs_close(&handle);
  text += "    before:";
  for (unsigned i = 0; i < 16; i++) {
    text += format(" %s=%llx", kGprNames[i], static_cast<unsigned long long>(item.state.gpr[i]));
    if (i == 7) text += "\n           ";
  }
  text += "\n            flags " + flag_names(item.state.flags) +
          format(" mxcsr %x\n", static_cast<unsigned>(item.state.mxcsr));
  bool seen[16] = {};
  for (const Instruction& instruction : item.snippet->code) {
    if (instruction.has_memory && instruction.form) {
      uint8_t memory[32];
      const unsigned size = 16;
      for (unsigned i = 0; i < size; i++) memory[i] = item.state.pattern[(instruction.address + i) % PATTERN_BYTES];
      text += format("    [%llx] = ", static_cast<unsigned long long>(instruction.address)) +
              hex_bytes(memory, size) + "\n";
    }
    if (!instruction.form) continue;
    for (const Operand& operand : instruction.form->operands) {
      if (operand.kind != 'V' && operand.kind != 'W' && operand.kind != 'U' && operand.kind != 'H') continue;
      const int reg = operand.kind == 'V' ? instruction.reg : operand.kind == 'H' ? instruction.vvvv : instruction.rm;
      if (reg < 0 || seen[reg]) continue;
      seen[reg] = true;
      text += format("    xmm%d = ", reg) + hex_bytes(item.state.vector[reg], instruction.form->vex ? 32 : 16) + "\n";
    }
  }
  if (item.state.options & OPTION_FX) {
    uint16_t control, status;
    std::memcpy(&control, item.state.fx, 2);
    std::memcpy(&status, item.state.fx + 2, 2);
    text += format("    fcw %04x fsw %04x tags %02x\n", control, status, item.state.fx[4]);
    for (unsigned i = 0; i < 8; i++)
      text += format("    st%u = ", i) + hex_bytes(item.state.fx + 32 + 16 * i, 10) + "\n";
  }
  return text;
}

std::string describe_difference(const Case& item, const Outcome& expected, const Outcome& actual,
                                const CompareOptions& options) {
  if (actual.kind == Outcome::kTimeout) return "    hangs\n";
  if (actual.kind == Outcome::kDied) {
    const std::string message = actual.message.empty() ? "" : "    " + actual.message + "\n";
    if (WIFSIGNALED(actual.status)) return format("    dies of signal %d\n", WTERMSIG(actual.status)) + message;
    return format("    ends with exit status %d\n", WEXITSTATUS(actual.status)) + message;
  }
  const ResultRecord a = canonical(item, expected.result, options), b = canonical(item, actual.result, options);
  std::string text;
  if (a.signal != b.signal || a.signal_code != b.signal_code) {
    text +=
        format("    signal expected %u code %d got %u code %d\n", a.signal, a.signal_code, b.signal, b.signal_code);
  }
  if (a.rip != b.rip || a.fault_address != b.fault_address) {
    text +=
        format("    rip expected %llx got %llx, fault address expected %llx got %llx\n",
               static_cast<unsigned long long>(a.rip), static_cast<unsigned long long>(b.rip),
               static_cast<unsigned long long>(a.fault_address), static_cast<unsigned long long>(b.fault_address));
  }
  for (unsigned i = 0; i < 16; i++) {
    if (a.gpr[i] != b.gpr[i]) {
      text += format("    %-5s expected %016llx got %016llx\n", kGprNames[i],
                     static_cast<unsigned long long>(a.gpr[i]), static_cast<unsigned long long>(b.gpr[i]));
    }
  }
  if (a.flags != b.flags) {
    text += "    flags expected " + flag_names(a.flags) + " got " + flag_names(b.flags) + "\n";
  }
  if (a.mxcsr != b.mxcsr) text += format("    mxcsr expected %04x got %04x\n", unsigned(a.mxcsr), unsigned(b.mxcsr));
  for (unsigned i = 0; i < 16; i++) {
    const size_t size = item.state.options & OPTION_YMM ? 32 : 16;
    if (std::memcmp(a.vector[i], b.vector[i], size) != 0) {
      text += format("    xmm%-2u expected ", i) + hex_bytes(a.vector[i], size) + "\n          got      " +
              hex_bytes(b.vector[i], size) + "\n";
    }
  }
  if (std::memcmp(a.fx, b.fx, 2) != 0)
    text += "    fcw expected " + hex_bytes(a.fx, 2) + " got " + hex_bytes(b.fx, 2) + "\n";
  if (std::memcmp(a.fx + 2, b.fx + 2, 2) != 0) {
    text += "    fsw expected " + hex_bytes(a.fx + 2, 2) + " got " + hex_bytes(b.fx + 2, 2) + "\n";
  }
  if (a.fx[4] != b.fx[4]) text += format("    tags expected %02x got %02x\n", a.fx[4], b.fx[4]);
  for (unsigned i = 0; i < 8; i++) {
    const size_t at = 32 + 16 * i;
    if (std::memcmp(a.fx + at, b.fx + at, 10) != 0) {
      text +=
          format("    st%u   expected ", i) + hex_bytes(a.fx + at, 10) + " got " + hex_bytes(b.fx + at, 10) + "\n";
    }
  }
  unsigned shown = 0;
  if (a.digest != b.digest && expected.arena.size() == actual.arena.size()) {
    for (size_t i = 0; i < expected.arena.size() && shown < 4; i += 8) {
      if (std::memcmp(&expected.arena[i], &actual.arena[i], 8) == 0) continue;
      text += format("    [%zx] expected ", ARENA_ADDRESS + i) + hex_bytes(&expected.arena[i], 8) + " got " +
              hex_bytes(&actual.arena[i], 8) + "\n";
      shown++;
    }
  }
  if (text.empty()) text = a.digest != b.digest ? "    memory differs\n" : "    (not seen again when run alone)\n";
  return text;
}

}  // namespace phybin::difftest
