// Compares a decoded instruction with Capstone's decoding: a second opinion beside Zydis, for what compilers emit.
#pragma once

#include <capstone/capstone.h>

#include <set>
#include <string>
#include <string_view>

#include "tests/unit/decode_oracle.h"

namespace phybin::decode::test {

class Capstone {
 public:
  Capstone() {
    cs_open(CS_ARCH_X86, CS_MODE_64, &handle_);
    cs_option(handle_, CS_OPT_DETAIL, CS_OPT_ON);
    in_ = cs_malloc(handle_);
  }
  ~Capstone() {
    cs_free(in_, 1);
    cs_close(&handle_);
  }
  Capstone(const Capstone&) = delete;
  Capstone& operator=(const Capstone&) = delete;

  // Null if invalid.
  const cs_insn* decode(std::span<const uint8_t> bytes, uint64_t address) {
    const uint8_t* code = bytes.data();
    std::size_t size = bytes.size();
    return cs_disasm_iter(handle_, &code, &size, &address, in_) ? in_ : nullptr;
  }
  std::string register_name(unsigned reg) const {
    const char* name = cs_reg_name(handle_, reg);
    return name != nullptr ? name : "";
  }

 private:
  csh handle_ = 0;
  cs_insn* in_ = nullptr;
};

inline std::string general_register_name(unsigned number, unsigned size) {
  static constexpr std::array<const char*, 8> kOld = {"ax", "cx", "dx", "bx", "sp", "bp", "si", "di"};
  if (number >= 8) return "r" + std::to_string(number) + (size == 1 ? "b" : size == 2 ? "w" : size == 4 ? "d" : "");
  const std::string old = kOld[number];
  if (size == 1) return number < 4 ? old.substr(0, 1) + "l" : old + "l";
  return (size == 2 ? "" : size == 4 ? "e" : "r") + old;
}

inline std::string register_text(const Operand& operand) {
  static constexpr std::array<const char*, 4> kHigh = {"ah", "ch", "dh", "bh"};
  static constexpr std::array<const char*, 6> kSegments = {"es", "cs", "ss", "ds", "fs", "gs"};
  switch (operand.kind) {
    case OperandKind::kGpr:
      return general_register_name(operand.reg, operand.size);
    case OperandKind::kGprHigh8:
      return kHigh[operand.reg];
    case OperandKind::kVector:
      return (operand.size == 32 ? "ymm" : "xmm") + std::to_string(operand.reg);
    case OperandKind::kMmx:
      return "mm" + std::to_string(operand.reg);
    case OperandKind::kX87:
      return "st(" + std::to_string(operand.reg) + ")";
    case OperandKind::kSegment:
      return kSegments[operand.reg];
    default:
      return "?";
  }
}

// Capstone's mnemonics differ from Zydis' in the condition names and in a few others.
inline std::string capstone_name(const Instruction& in) {
  static constexpr std::array<const char*, 16> kConditions = {"o", "no", "b", "ae", "e", "ne", "be", "a",
                                                              "s", "ns", "p", "np", "l", "ge", "le", "g"};
  using enum Mnemonic;
  switch (in.mnemonic) {
    case kJcc:
      return std::string("j") + kConditions[in.condition];
    case kSetcc:
      return std::string("set") + kConditions[in.condition];
    case kCmovcc:
      return std::string("cmov") + kConditions[in.condition];
    case kFcmovcc: {
      static constexpr std::array<const char*, 12> kNames = {"",   "",    "b", "nb", "e", "ne",
                                                             "be", "nbe", "",  "",   "u", "nu"};
      return std::string("fcmov") + kNames[in.condition];
    }
    case kFwait:
      return "wait";
    case kJmpFar:
      return "ljmp";
    case kCallFar:
      return "lcall";
    case kRetFar:
      return in.operand_size == 8 ? "retfq" : "retf";
    default:
      return printed_name(in);
  }
}

// Capstone spells out the predicate of the compares and prints some instructions under a second name.
inline bool capstone_name_agrees(const Instruction& in, std::string_view theirs) {
  if (const std::size_t space = theirs.rfind(' '); space != std::string_view::npos)
    theirs.remove_prefix(space + 1);  // "lock ", "rep "
  const std::string ours = capstone_name(in);
  if (ours == theirs) return true;
  static const std::set<std::pair<std::string_view, std::string_view>> aliases = {
      {"mov", "movabs"},         {"shl", "sal"},           {"xlat", "xlatb"},   {"ud1", "ud2b"},
      {"fnop", "fdisi8087_nop"}, {"fnop", "feni8087_nop"}, {"fstp", "fstpnce"}, {"pushf", "pushfq"}};
  if (aliases.contains({ours, theirs})) return true;
  if (ours == "prefetch") return theirs.starts_with("prefetch");
  const std::size_t compare = ours.find("cmp");
  return compare != std::string::npos && theirs.starts_with(ours.substr(0, compare + 3)) &&
         theirs.ends_with(ours.substr(ours.size() - 2));
}

// Instructions that Capstone knows and the guest is not offered (FMA4, XOP, 3DNow, TSX, VMX, AVX-512 masks), and
// where it accepts what is #UD: LOCK without a memory destination, MOV to CS or to a segment register that does not
// exist, prefixes before VEX.
inline bool capstone_accepts_too_much(const cs_insn& theirs) {
  const std::string_view name = theirs.mnemonic;
  static const std::set<std::string_view> names = {"femms",   "mov",    "pmulhrw", "vaddsd", "vmread",
                                                   "vmwrite", "xabort", "xbegin",  "xend",   "xtest"};
  return names.contains(name) || name.starts_with("k") || name.starts_with("lock ") || name.starts_with("vprot") ||
         name.starts_with("vfm") || name.starts_with("vfnm");
}

// MPX as no-ops, MOV from or to a segment register with REX.R; Capstone 4.0.2 does not know VBROADCASTI128.
inline bool capstone_accepts_too_little(const Instruction& in) {
  return in.mnemonic == Mnemonic::kNop || in.mnemonic == Mnemonic::kVbroadcasti128 ||
         (in.mnemonic == Mnemonic::kMov &&
          (in.operands[0].kind == OperandKind::kSegment || in.operands[1].kind == OperandKind::kSegment));
}

// Lengths that Capstone gets wrong: a near branch with 66 has a displacement of four bytes, UD0 and UD1 have ModRM.
inline bool capstone_length_is_wrong(const Instruction& in) {
  return in.mnemonic == Mnemonic::kUd0 || in.mnemonic == Mnemonic::kUd1 ||
         (in.operands[0].kind == OperandKind::kTarget && in.has_prefix(kPrefixOperandSize));
}

// Operands that are a matter of convention (implicit operands of string operations, ST0, control registers), or where
// Zydis and the SDM agree with us: sizes of scalar memory operands, MOVSXD without REX.W, segment prefixes without
// effect.
inline bool capstone_operands_differ(const Instruction& in, const cs_x86& x86) {
  using enum Mnemonic;
  static const std::set<Mnemonic> names = {kMovs,    kCmps,      kStos,      kLods,     kScas,     kIns,    kOuts,
                                           kXchg,    kLea,       kLsl,       kMovsxd,   kComiss,   kComisd, kVcomiss,
                                           kVcomisd, kUcomiss,   kUcomisd,   kVucomiss, kVucomisd, kFnstsw, kUd0,
                                           kUd1,     kPunpcklbw, kPunpcklwd, kPunpckldq};
  if (names.contains(in.mnemonic)) return true;
  for (unsigned i = 0; i < in.operand_count; ++i)
    if (in.operands[i].kind >= OperandKind::kX87 && in.operands[i].kind <= OperandKind::kDebug) return true;
  const bool their_segment = x86.prefix[1] == X86_PREFIX_FS || x86.prefix[1] == X86_PREFIX_GS;
  return (in.memory.segment != kNoRegister) != their_segment;
}

inline std::string capstone_operand(const Capstone& capstone, const cs_x86_op& operand) {
  switch (operand.type) {
    case X86_OP_REG:
      return capstone.register_name(operand.reg);
    case X86_OP_IMM:
      return "imm" + std::to_string(operand.imm);
    case X86_OP_MEM: {
      std::string text = "[";
      if (operand.mem.segment == X86_REG_FS || operand.mem.segment == X86_REG_GS)
        text += capstone.register_name(operand.mem.segment) + ":";
      return text + capstone.register_name(operand.mem.base) + "+" + capstone.register_name(operand.mem.index) + "*" +
             std::to_string(operand.mem.index != X86_REG_INVALID ? operand.mem.scale : 1) + "+" +
             std::to_string(operand.mem.disp) + "]" + std::to_string(operand.size);
    }
    default:
      return "?";
  }
}

inline std::string our_capstone_operand(const Instruction& in, const Operand& operand, uint64_t end,
                                        const cs_x86_op& theirs) {
  if (operand.kind == OperandKind::kTarget) return "imm" + std::to_string(in.imm);
  if (operand.kind == OperandKind::kImmediate) {
    // Capstone extends in ways of its own: only the operand's own bits count.
    const int64_t value = &operand == &in.operands[in.operand_count - 1] && in.operand_count >= 2 &&
                                  in.operands[in.operand_count - 2].kind == OperandKind::kImmediate
                              ? in.imm2
                              : in.imm;
    const unsigned bits = operand.size * 8u;
    const uint64_t mask = bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
    const bool same = ((static_cast<uint64_t>(value) ^ static_cast<uint64_t>(theirs.imm)) & mask) == 0;
    return "imm" + std::to_string(same ? theirs.imm : value);
  }
  if (operand.kind != OperandKind::kMemory) return register_text(operand);
  const Memory& memory = in.memory;
  const unsigned size = memory.address32 ? 4 : 8;
  std::string text = "[";
  if (memory.segment != kNoRegister) text += memory.segment == 4 ? "fs:" : "gs:";
  int64_t disp = memory.disp;
  if (memory.base == kRipBase) {
    text += memory.address32 ? "eip" : "rip";
    disp -= static_cast<int64_t>(end);
  } else if (memory.base != kNoRegister) {
    text += general_register_name(memory.base, size);
  }
  text += "+";
  if (memory.index != kNoRegister)
    text += memory.vsib ? register_text({OperandKind::kVector, memory.index,
                                         theirs.mem.index >= X86_REG_YMM0 ? uint8_t{32} : uint8_t{16}})
                        : general_register_name(memory.index, size);
  text += "*" + std::to_string(1u << memory.scale_log2) + "+" + std::to_string(disp) + "]";
  return text + std::to_string(operand.size != 0 ? operand.size : theirs.size);
}

// An empty kind if equal.
inline Difference compare_with_capstone(const Capstone& capstone, const Instruction& in, const cs_insn& theirs) {
  if (capstone_length_is_wrong(in)) return {};
  if (in.length != theirs.size) return {"length of " + capstone_name(in) + " / " + theirs.mnemonic, ""};
  if (!capstone_name_agrees(in, theirs.mnemonic)) return {"name " + capstone_name(in) + " / " + theirs.mnemonic, ""};
  const cs_x86& x86 = theirs.detail->x86;
  if (capstone_operands_differ(in, x86)) return {};
  // The predicate of a compare is part of Capstone's mnemonic.
  const bool predicate_in_name = capstone_name(in) != theirs.mnemonic && x86.op_count + 1 == in.operand_count;
  if (in.operand_count != x86.op_count && !predicate_in_name)
    return {"operand count of " + capstone_name(in),
            std::to_string(in.operand_count) + "/" + std::to_string(x86.op_count)};
  for (unsigned i = 0; i < x86.op_count; ++i) {
    const std::string ours = our_capstone_operand(in, in.operands[i], theirs.address + theirs.size, x86.operands[i]);
    const std::string their_text = capstone_operand(capstone, x86.operands[i]);
    if (ours != their_text) return {"operand of " + capstone_name(in), ours + " / " + their_text};
  }
  return {};
}

}  // namespace phybin::decode::test
