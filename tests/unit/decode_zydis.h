// Compares a decoded instruction with what Zydis makes of the same bytes, field by field.
#pragma once

#include <Zydis/Zydis.h>

#include <set>
#include <string>
#include <string_view>

#include "tests/unit/decode_oracle.h"

namespace phybin::decode::test {

struct ZydisResult {
  bool valid = false;
  ZydisDecodedInstruction in;
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;

  ZydisResult(const uint8_t* bytes, std::size_t available) {
    static const ZydisDecoder decoder = [] {
      ZydisDecoder made;
      ZydisDecoderInit(&made, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
      return made;
    }();
    valid = ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, available, &in, operands.data()));
  }
  std::string name() const { return ZydisMnemonicGetString(in.mnemonic); }
};

// Instruction sets that PhyBin does not offer to its guests; their encodings may be invalid for us.
inline bool is_supported(const ZydisResult& zydis) {
  if (zydis.in.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX || zydis.in.encoding == ZYDIS_INSTRUCTION_ENCODING_MVEX ||
      zydis.in.encoding == ZYDIS_INSTRUCTION_ENCODING_XOP || zydis.in.encoding == ZYDIS_INSTRUCTION_ENCODING_3DNOW)
    return false;
  // VPERMIL2PD and VPERMIL2PS belong to XOP, though VEX-encoded.
  if (zydis.in.mnemonic == ZYDIS_MNEMONIC_VPERMIL2PD || zydis.in.mnemonic == ZYDIS_MNEMONIC_VPERMIL2PS) return false;
  // Valid only in system management mode; only on old AMD processors.
  if (zydis.in.mnemonic == ZYDIS_MNEMONIC_RSM || zydis.in.mnemonic == ZYDIS_MNEMONIC_FEMMS) return false;
  switch (zydis.in.meta.isa_ext) {
    case ZYDIS_ISA_EXT_AVX512VEX:
    case ZYDIS_ISA_EXT_AMX_BF16:
    case ZYDIS_ISA_EXT_AMX_INT8:
    case ZYDIS_ISA_EXT_AMX_TILE:
    case ZYDIS_ISA_EXT_AMD_INVLPGB:
    case ZYDIS_ISA_EXT_AVX_VNNI:
    case ZYDIS_ISA_EXT_CET:
    case ZYDIS_ISA_EXT_CLZERO:
    case ZYDIS_ISA_EXT_ENQCMD:
    case ZYDIS_ISA_EXT_FMA4:
    case ZYDIS_ISA_EXT_HRESET:
    case ZYDIS_ISA_EXT_KEYLOCKER:
    case ZYDIS_ISA_EXT_KEYLOCKER_WIDE:
    case ZYDIS_ISA_EXT_KNC:
    case ZYDIS_ISA_EXT_KNCE:
    case ZYDIS_ISA_EXT_KNCV:
    case ZYDIS_ISA_EXT_MCOMMIT:
    case ZYDIS_ISA_EXT_MONITORX:
    case ZYDIS_ISA_EXT_MOVDIR:
    case ZYDIS_ISA_EXT_MPX:
    case ZYDIS_ISA_EXT_PADLOCK:
    case ZYDIS_ISA_EXT_PCONFIG:
    case ZYDIS_ISA_EXT_PKU:
    case ZYDIS_ISA_EXT_PT:
    case ZYDIS_ISA_EXT_RDPRU:
    case ZYDIS_ISA_EXT_RTM:
    case ZYDIS_ISA_EXT_SERIALIZE:
    case ZYDIS_ISA_EXT_SGX:
    case ZYDIS_ISA_EXT_SGX_ENCLV:
    case ZYDIS_ISA_EXT_SMX:
    case ZYDIS_ISA_EXT_SNP:
    case ZYDIS_ISA_EXT_SSE4A:
    case ZYDIS_ISA_EXT_SVM:
    case ZYDIS_ISA_EXT_TBM:
    case ZYDIS_ISA_EXT_TDX:
    case ZYDIS_ISA_EXT_TSX_LDTRK:
    case ZYDIS_ISA_EXT_UINTR:
    case ZYDIS_ISA_EXT_VMFUNC:
    case ZYDIS_ISA_EXT_VTX:
    case ZYDIS_ISA_EXT_WAITPKG:
      return false;
    default:
      return true;
  }
}

inline std::string zydis_operand(const ZydisDecodedOperand& operand, uint64_t address,
                                 const ZydisDecodedInstruction& in) {
  switch (operand.type) {
    case ZYDIS_OPERAND_TYPE_REGISTER: {
      const ZydisRegister reg = operand.reg.value;
      std::string name = ZydisRegisterGetString(reg);
      if (reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH)
        return "high" + std::to_string(reg - ZYDIS_REGISTER_AH);
      const std::string id = std::to_string(ZydisRegisterGetId(reg));
      switch (ZydisRegisterGetClass(reg)) {
        case ZYDIS_REGCLASS_GPR8:
          return "gpr" + std::to_string(ZydisRegisterGetId(reg) - (reg >= ZYDIS_REGISTER_SPL ? 4 : 0)) + ":1";
        case ZYDIS_REGCLASS_GPR16:
          return "gpr" + id + ":2";
        case ZYDIS_REGCLASS_GPR32:
          return "gpr" + id + ":4";
        case ZYDIS_REGCLASS_GPR64:
          return "gpr" + id + ":8";
        case ZYDIS_REGCLASS_XMM:
          return "vector" + id + ":16";
        case ZYDIS_REGCLASS_YMM:
          return "vector" + id + ":32";
        case ZYDIS_REGCLASS_MMX:
          return "mmx" + id;
        case ZYDIS_REGCLASS_X87:
          return "st" + id;
        case ZYDIS_REGCLASS_SEGMENT:
          return "segment" + id;
        case ZYDIS_REGCLASS_CONTROL:
          return "cr" + id;
        case ZYDIS_REGCLASS_DEBUG:
          return "dr" + id;
        default:
          return name;
      }
    }
    case ZYDIS_OPERAND_TYPE_IMMEDIATE: {
      if (!operand.imm.is_relative) return "imm";
      return "target" + std::to_string(address + in.length + operand.imm.value.u);
    }
    case ZYDIS_OPERAND_TYPE_MEMORY:
      return "mem";
    default:
      return "?";
  }
}

inline std::string our_operand(const Operand& operand, const Instruction& in) {
  const std::string reg = std::to_string(operand.reg);
  switch (operand.kind) {
    case OperandKind::kGpr:
      return "gpr" + reg + ":" + std::to_string(operand.size);
    case OperandKind::kGprHigh8:
      return "high" + reg;
    case OperandKind::kVector:
      return "vector" + reg + (operand.size == 32 ? ":32" : ":16");
    case OperandKind::kMmx:
      return "mmx" + reg;
    case OperandKind::kX87:
      return "st" + reg;
    case OperandKind::kSegment:
      return "segment" + reg;
    case OperandKind::kControl:
      return "cr" + reg;
    case OperandKind::kDebug:
      return "dr" + reg;
    case OperandKind::kImmediate:
      return "imm";
    case OperandKind::kTarget:
      return "target" + std::to_string(static_cast<uint64_t>(in.imm));
    case OperandKind::kMemory:
      return "mem";
    case OperandKind::kNone:
      break;
  }
  return "none";
}

inline std::string zydis_memory(const ZydisDecodedOperand& operand, uint64_t address,
                                const ZydisDecodedInstruction& in, bool vector_index) {
  const ZydisDecodedOperandMem& mem = operand.mem;
  std::string text;
  uint64_t disp = static_cast<uint64_t>(mem.disp.value);
  if (mem.base == ZYDIS_REGISTER_RIP || mem.base == ZYDIS_REGISTER_EIP) {
    text = "rip";
    disp += address + in.length;
  } else if (mem.base != ZYDIS_REGISTER_NONE) {
    text = "b" + std::to_string(ZydisRegisterGetId(mem.base));
  }
  if (mem.index != ZYDIS_REGISTER_NONE)
    text += std::string(vector_index ? "v" : "i") + std::to_string(ZydisRegisterGetId(mem.index)) + "*" +
            std::to_string(mem.scale);
  text += "+" + std::to_string(disp);
  if (mem.segment == ZYDIS_REGISTER_FS) text += " fs";
  if (mem.segment == ZYDIS_REGISTER_GS) text += " gs";
  if (in.address_width == 32) text += " a32";
  return text;
}

inline std::string our_memory(const Memory& memory) {
  std::string text;
  if (memory.base == kRipBase)
    text = "rip";
  else if (memory.base != kNoRegister)
    text = "b" + std::to_string(memory.base);
  if (memory.index != kNoRegister)
    text += std::string(memory.vsib ? "v" : "i") + std::to_string(memory.index) + "*" +
            std::to_string(1u << memory.scale_log2);
  text += "+" + std::to_string(static_cast<uint64_t>(memory.disp));
  if (memory.segment == 4) text += " fs";
  if (memory.segment == 5) text += " gs";
  if (memory.address32) text += " a32";
  return text;
}

// Instructions whose operands Zydis lists otherwise: the memory and registers of string operations and other implicit
// operands, and hints, of which only the length matters.
inline bool operands_differ_by_convention(const Instruction& in) {
  using enum Mnemonic;
  static const std::set<Mnemonic> implicit = {kMovs, kCmps, kStos, kLods, kScas, kIns, kOuts, kXlat, kNop};
  return implicit.contains(in.mnemonic);
}

// Where Zydis is wrong or describes something else:
// - it sign-extends the 32-bit address of a MOV with an address-size prefix, which the processor zero-extends;
// - MOVSXD with 66 reads 16 bits (Intel SDM), not 32; CLFLUSH's operand is a byte (SDM), not a line; UD0 and UD1 have
// no size;
// - it reads a base register from a SIB byte without base when both 67 and REX.B are there;
// - MOVMSKPS and MOVMSKPD write 32 bits, the rest is zero with REX.W or without;
// - LSL's source selector has the operand size (SDM: r32/m16, of which 16 bits count);
// - FUCOMP alone of its family lists ST0.
inline bool is_known_difference(const Instruction& in) {
  using enum Mnemonic;
  if (in.memory.address32 && in.memory.base == kNoRegister) return true;
  switch (in.mnemonic) {
    case kMovsxd:
      return in.operand_size == 2;
    case kClflush:
    case kClflushopt:
    case kClwb:
    case kLsl:
    case kMovmskpd:
    case kMovmskps:
    case kUd0:
    case kUd1:
    case kFucomp:
      return true;
    default:
      return false;
  }
}

inline bool names_agree(const Instruction& in, const ZydisResult& zydis) {
  const std::string theirs = zydis.name();
  const std::string ours = printed_name(in);
  if (ours == theirs) return true;
  static const std::set<std::pair<std::string_view, std::string_view>> aliases = {
      {"nop", "endbr32"},       {"nop", "rdsspd"},         {"nop", "rdsspq"},   {"nop", "bndcl"},
      {"nop", "bndcu"},         {"nop", "bndcn"},          {"nop", "bndmov"},   {"nop", "bndmk"},
      {"nop", "bndldx"},        {"nop", "bndstx"},         {"nop", "cldemote"}, {"fnop", "fdisi8087_nop"},
      {"fnop", "feni8087_nop"}, {"fnop", "fsetpm287_nop"}, {"fstp", "fstpnce"},
  };
  return aliases.contains({ours, theirs}) || (ours == "prefetch" && theirs.starts_with("prefetch"));
}

// Everything but validity and length: an empty kind if equal, else what differs.
inline Difference compare_with_zydis(const Instruction& in, const ZydisResult& zydis, uint64_t address) {
  if (!names_agree(in, zydis)) return {"name " + printed_name(in) + " / " + zydis.name(), ""};
  if (operands_differ_by_convention(in) || is_known_difference(in)) return {};
  const std::string name = printed_name(in);
  std::string ours;
  std::string theirs;
  unsigned immediates = 0;
  for (unsigned i = 0; i < in.operand_count; ++i) ours += our_operand(in.operands[i], in) + " ";
  for (unsigned i = 0; i < zydis.in.operand_count_visible; ++i)
    theirs += zydis_operand(zydis.operands[i], address, zydis.in) + " ";
  if (ours != theirs) return {"operands of " + name, ours + "/ " + theirs};
  for (unsigned i = 0; i < in.operand_count; ++i) {
    const ZydisDecodedOperand& operand = zydis.operands[i];
    if (in.operands[i].kind == OperandKind::kMemory) {
      const std::string our_text = our_memory(in.memory);
      const std::string their_text = zydis_memory(operand, address, zydis.in, in.memory.vsib);
      if (our_text != their_text) return {"memory of " + name, our_text + " / " + their_text};
      if (in.operands[i].size != 0 && in.operands[i].size * 8u != operand.size)
        return {"memory size of " + name,
                std::to_string(in.operands[i].size) + " / " + std::to_string(operand.size / 8)};
    }
    if (in.operands[i].kind == OperandKind::kImmediate) {
      const int64_t ours_value = immediates++ == 0 ? in.imm : in.imm2;
      const unsigned bits = std::min(64u, in.operands[i].size * 8u);
      const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
      if ((static_cast<uint64_t>(ours_value) & mask) != (operand.imm.value.u & mask))
        return {"immediate of " + name, ""};
    }
  }
  return {};
}

}  // namespace phybin::decode::test
