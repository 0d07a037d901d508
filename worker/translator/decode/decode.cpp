// Decodes one instruction: prefixes, opcode, ModRM and SIB, displacement and immediate, each read once.
//
// Written for speed, because decoding is a large part of a cold start. The bytes are read without checks, from a
// padded copy when fewer than kReadAhead are available. The opcode table (opcode_table.h) says what an opcode is, and
// its form (form.h) what the result looks like, so that what is left to do is to merge register numbers and to store
// words.
//
// There are two ways to the table's entry: the short one knows REX and 0F, which are most of what stands before
// opcodes, and gives up if it meets anything else; the general one knows it all. What follows is one piece of code,
// compiled for each of them, in which the compiler drops what the short way excludes.
#include <cstring>
#include <new>

#include "worker/translator/decode/form.h"
#include "worker/translator/decode/instruction.h"
#include "worker/translator/decode/opcode_table.h"
#include "worker/translator/decode/operand_types.h"

namespace phybin::decode {
namespace {

// More than is ever read: up to 14 prefixes, then VEX, opcode, ModRM, SIB, displacement and immediate.
constexpr std::size_t kReadAhead = 32;

constexpr unsigned kRexB = 1;
constexpr unsigned kRexX = 2;
constexpr unsigned kRexR = 4;
constexpr unsigned kRexW = 8;
constexpr unsigned kRexPresent = 0x40;

// Memory's first word, without registers; what prefixes and addressing put into it.
constexpr uint64_t kNoMemory = 0xff00'ffff;
static_assert(offsetof(Memory, base) == 0 && offsetof(Memory, index) == 1 && offsetof(Memory, scale_log2) == 2 &&
              offsetof(Memory, segment) == 3 && offsetof(Memory, address32) == 4 && offsetof(Memory, vsib) == 5);
constexpr unsigned kIndexShift = 8, kScaleShift = 16, kSegmentShift = 24, kAddress32Shift = 32, kVsibShift = 40;
constexpr uint64_t kByte = 0xff;

template <typename T>
T load(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// All of its state fits in registers, as long as every function on the way is inlined.
class Decoder {
 public:
  Decoder(const uint8_t* bytes, uint64_t address) : bytes_(bytes), address_(address) {}

  // The short way: false if the instruction needs the general one, for which this decoder is of no use.
  bool read_plain_opcode();
  // The general way.
  DecodeStatus read_opcode();
  // What follows the opcode.
  DecodeStatus read_rest(Instruction& out);

  // Bytes looked at so far: a result depends on no others.
  std::size_t consumed() const { return at_; }
  bool is_evex() const { return evex_; }

 private:
  DecodeStatus read_vex(Special form);
  DecodeStatus read_evex();
  void select_entry();
  bool is_valid() const;
  bool gather_is_valid() const;
  void read_memory(unsigned bytes_behind);
  void number_operands(const Form& form);
  void number_vex_operands(const Form& form);
  void name_high_byte_registers();
  void read_immediate(const Form& form);

  unsigned next() { return bytes_[at_++]; }
  unsigned modrm_reg() const { return (modrm_ >> 3 & 7) | (rex_ << 1 & 8); }
  unsigned modrm_rm() const { return (modrm_ & 7) | (rex_ << 3 & 8); }

  const uint8_t* bytes_;
  std::size_t at_ = 0;
  uint64_t address_;
  Entry entry_;
  unsigned opcode_ = 0;
  unsigned modrm_ = 0;
  unsigned rex_ = 0;  // of VEX too, in REX's layout
  // What only the general way meets.
  unsigned prefixes_ = 0;   // PrefixBits
  unsigned mandatory_ = 0;  // of these or of VEX.pp, the value of Selector::kPrefix
  unsigned vvvv_ = 0;
  unsigned vex_l_ = 0;
  bool general_ = false, vex_ = false, evex_ = false;
  // The result.
  std::array<uint64_t, 2> operands_{};
  uint64_t memory_ = kNoMemory;
  int64_t displacement_ = 0, immediate_ = 0, immediate2_ = 0;
};

[[gnu::always_inline]] inline bool Decoder::read_plain_opcode() {
  uint64_t ahead = load<uint64_t>(bytes_);
  const unsigned first = ahead & 0xff;
  const bool has_rex = (first & 0xf0) == kRexPresent;
  rex_ = has_rex ? first : 0;
  at_ = has_rex ? 2 : 1;
  ahead >>= has_rex ? 8 : 0;
  const Entry* map = kOpcodeTable.data();
  if ((ahead & 0xff) == 0x0f) {
    ahead >>= 8;
    ++at_;
    map += 256 * static_cast<std::size_t>(OpcodeMap::k0F);
  }
  opcode_ = ahead & 0xff;
  modrm_ = ahead >> 8 & 0xff;
  entry_ = map[opcode_];
  select_entry();
  return !entry_.has(kEntryRare);
}

// Reads up to and including the opcode. REX counts only directly before the opcode.
[[gnu::always_inline]] inline DecodeStatus Decoder::read_opcode() {
  general_ = true;
  auto map = OpcodeMap::kOneByte;
  for (;;) {
    opcode_ = next();
    entry_ = kOpcodeTable[static_cast<std::size_t>(map) * 256 + opcode_];
    if (!entry_.has(kEntrySpecial)) [[likely]]
      break;
    const auto special = static_cast<Special>(entry_.value());
    if (special == Special::kRex) {
      rex_ = opcode_;
    } else if (special == Special::kEscape0F) {
      map = OpcodeMap::k0F;
    } else if (special == Special::kEscape0F38) {
      map = OpcodeMap::k0F38;
    } else if (special == Special::kEscape0F3A) {
      map = OpcodeMap::k0F3A;
    } else if (special == Special::kVex2 || special == Special::kVex3) {
      const DecodeStatus status = read_vex(special);
      if (status != DecodeStatus::kOk) return status;
      break;
    } else if (special == Special::kEvex) {
      return read_evex();
    } else {
      rex_ = 0;
      switch (special) {
        case Special::kOperandSize:
          prefixes_ |= kPrefixOperandSize;
          break;
        case Special::kAddressSize:
          memory_ |= uint64_t{1} << kAddress32Shift;
          break;
        case Special::kSegmentFs:
          memory_ = (memory_ & ~(kByte << kSegmentShift)) | uint64_t{4} << kSegmentShift;
          break;
        case Special::kSegmentGs:
          memory_ = (memory_ & ~(kByte << kSegmentShift)) | uint64_t{5} << kSegmentShift;
          break;
        case Special::kLock:
          prefixes_ |= kPrefixLock;
          break;
        case Special::kRep:
          prefixes_ = (prefixes_ & ~unsigned{kPrefixRepne}) | kPrefixRep;
          break;
        case Special::kRepne:
          prefixes_ = (prefixes_ & ~unsigned{kPrefixRep}) | kPrefixRepne;
          break;
        default:
          break;
      }
    }
    if (at_ >= kMaxInstructionLength) return DecodeStatus::kTooLong;
  }
  if (!vex_)
    mandatory_ = (prefixes_ & kPrefixRepne) != 0         ? 3
                 : (prefixes_ & kPrefixRep) != 0         ? 2
                 : (prefixes_ & kPrefixOperandSize) != 0 ? 1
                                                         : 0;
  modrm_ = bytes_[at_];
  select_entry();
  return DecodeStatus::kOk;
}

// Legacy prefixes that VEX excludes, and REX, are #UD (Intel SDM vol. 2, 2.3.2 to 2.3.4).
[[gnu::always_inline]] inline DecodeStatus Decoder::read_vex(Special form) {
  const unsigned first = next();
  unsigned map = 1;
  unsigned last = first;
  unsigned rex = kRexPresent | ((first & 0x80) == 0 ? kRexR : 0u);
  if (form == Special::kVex3) {
    last = next();
    rex |=
        ((first & 0x40) == 0 ? kRexX : 0u) | ((first & 0x20) == 0 ? kRexB : 0u) | ((last & 0x80) != 0 ? kRexW : 0u);
    map = first & 0x1f;
  }
  if (prefixes_ != 0 || rex_ != 0 || map < 1 || map > 3) return DecodeStatus::kInvalid;
  vex_ = true;
  mandatory_ = last & 3;
  rex_ = rex;
  vvvv_ = ~last >> 3 & 15;
  vex_l_ = last >> 2 & 1;
  opcode_ = next();
  entry_ = kOpcodeTable[(static_cast<std::size_t>(OpcodeMap::kVex0F) + map - 1) * 256 + opcode_];
  return DecodeStatus::kOk;
}

// AVX-512 is not offered to the guest; only the length is found, for disassembly. ModRM always follows the opcode, an
// immediate byte in map 0F3A and for a few opcodes of map 0F.
[[gnu::always_inline]] inline DecodeStatus Decoder::read_evex() {
  const unsigned payload0 = bytes_[at_];
  const unsigned payload1 = bytes_[at_ + 1];
  const unsigned opcode = bytes_[at_ + 3];
  at_ += 4;
  const unsigned map = payload0 & 7;
  if ((payload0 & 8) != 0 || (payload1 & 4) == 0 || map == 0 || map == 4 || map == 7) return DecodeStatus::kInvalid;
  modrm_ = next();
  if (modrm_ < 0xc0) read_memory(0);
  if (map == 3 ||
      (map == 1 && ((opcode >= 0x70 && opcode <= 0x73) || opcode == 0xc2 || (opcode >= 0xc4 && opcode <= 0xc6))))
    ++at_;
  evex_ = true;
  return DecodeStatus::kInvalid;
}

// Follows the table's branches to the instruction itself.
[[gnu::always_inline]] inline void Decoder::select_entry() {
  const unsigned key = modrm_ | (rex_ & 0xff) << kKeyRexShift | mandatory_ << kKeyPrefixShift | vex_l_ << kKeyLShift;
  while (entry_.has(kEntrySelect)) entry_ = kOpcodeTable[entry_.value() + entry_.field_of(key)];
}

// The conditions for #UD that are not in the table.
[[gnu::always_inline]] inline bool Decoder::is_valid() const {
  if (general_) {
    if ((prefixes_ & kPrefixLock) != 0 && (!entry_.has(kEntryLock) || modrm_ >= 0xc0)) return false;
    if (vvvv_ != 0 && !entry_.has(kEntryVvvv)) return false;
  }
  if (entry_.has(kEntryRare)) {
    if (entry_.value() == static_cast<unsigned>(Mnemonic::kInvalid)) return false;
    if (entry_.has(kEntryPrivilegedRegister)) {
      const unsigned number = modrm_reg();
      const bool control = (opcode_ & 1) == 0;
      constexpr unsigned kControlRegisters = 0b1'0001'1101;  // CR0, CR2, CR3, CR4, CR8
      return control ? (kControlRegisters >> number & 1) != 0 : number < 8;
    }
  }
  return true;
}

// A gather has a SIB byte, and its destination, mask and index must differ.
[[gnu::always_inline]] inline bool Decoder::gather_is_valid() const {
  const unsigned destination = modrm_reg();
  const unsigned index = memory_ >> kIndexShift & kByte;
  return (modrm_ & 7) == 4 && destination != vvvv_ && destination != index && index != vvvv_;
}

// `bytes_behind` the displacement the instruction ends.
[[gnu::always_inline]] inline void Decoder::read_memory(unsigned bytes_behind) {
  const unsigned mode = modrm_ >> 6;
  const unsigned rm = modrm_ & 7;
  unsigned base = rm;
  if (rm == 4) {
    const unsigned sib = next();
    const unsigned index = (sib >> 3 & 7) | (rex_ << 2 & 8);
    const bool vsib = general_ && entry_.has(kEntryVsib);
    if (index != 4 || vsib) {
      memory_ = (memory_ & ~(kByte << kIndexShift)) | uint64_t{index} << kIndexShift |
                uint64_t{sib >> 6} << kScaleShift | uint64_t{vsib} << kVsibShift;
    }
    base = sib & 7;
  }
  if (mode == 0 && base == 5) {
    displacement_ = load<int32_t>(bytes_ + at_);
    at_ += 4;
    if (rm == 4) return;
    memory_ = (memory_ & ~kByte) | kRipBase;
    displacement_ += static_cast<int64_t>(address_ + at_ + bytes_behind);
    return;
  }
  memory_ = (memory_ & ~kByte) | base | (rex_ << 3 & 8);
  if (mode == 1) {
    displacement_ = load<int8_t>(bytes_ + at_);
    at_ += 1;
  } else if (mode == 2) {
    displacement_ = load<int32_t>(bytes_ + at_);
    at_ += 4;
  }
}

[[gnu::always_inline]] inline void Decoder::number_operands(const Form& form) {
  // rm at bit 0, reg at bit 32, by their lower three bits and by the bit of REX.
  constexpr uint64_t kBoth = uint64_t{1} << 32 | 1;
  const uint64_t numbers =
      ((modrm_ | uint64_t{modrm_} << 29) & 7 * kBoth) | ((uint64_t{rex_} << 3 | uint64_t{rex_} << 33) & 8 * kBoth);
  const unsigned rotation = form.rotation();
  operands_[0] |= (numbers >> rotation | numbers << (-rotation & 63)) & form.numbers;
}

[[gnu::always_inline]] inline void Decoder::number_vex_operands(const Form& form) {
  for (unsigned i = 0; i < 4; ++i) {
    unsigned number = 0;
    switch (static_cast<OperandSource>(form.numbers >> 8 * i & kByte)) {
      case OperandSource::kModrmReg:
        number = modrm_reg();
        break;
      case OperandSource::kModrmRm:
        number = modrm_rm();
        break;
      case OperandSource::kVvvv:
        number = vvvv_;
        break;
      case OperandSource::kRegisterInImm8:
        number = bytes_[at_] >> 4;
        break;
      default:
        break;
    }
    operands_[i / 2] |= uint64_t{number} << (i % 2 * kOperandBits + kRegShift);
  }
}

// Without REX, byte registers 4 to 7 are AH, CH, DH, BH.
[[gnu::always_inline]] inline void Decoder::name_high_byte_registers() {
  for (unsigned shift = 0; shift < 2 * kOperandBits; shift += kOperandBits) {
    auto operand = std::bit_cast<Operand>(static_cast<uint32_t>(operands_[0] >> shift));
    if (operand.kind != OperandKind::kGpr || operand.size != 1 || operand.reg < 4) continue;
    operands_[0] += uint64_t{static_cast<unsigned>(OperandKind::kGprHigh8) - static_cast<unsigned>(OperandKind::kGpr)}
                    << shift;
    operands_[0] -= uint64_t{4} << (shift + kRegShift);
  }
}

[[gnu::always_inline]] inline void Decoder::read_immediate(const Form& form) {
  if (!entry_.has(kEntryImmediate)) return;
  const uint8_t* const bytes = bytes_ + at_;
  const uint64_t raised = load<uint64_t>(bytes) << form.immediate_shift();
  at_ += form.immediate_size();
  immediate_ = static_cast<int64_t>(raised) >> form.immediate_shift();
  const ImmediateKind kind = entry_.immediate();
  if (kind == ImmediateKind::kSigned) return;
  if (kind == ImmediateKind::kRelative) {
    immediate_ += static_cast<int64_t>(address_ + at_);
  } else if (kind == ImmediateKind::kUnsigned) {
    immediate_ = static_cast<int64_t>(raised >> form.immediate_shift());
  } else if (kind == ImmediateKind::kOne) {
    immediate_ = 1;
  } else if (general_) {
    immediate_ = 0;
    if (kind == ImmediateKind::kEnter) {
      immediate_ = load<uint16_t>(bytes);
      immediate2_ = bytes[2];
    } else if (kind == ImmediateKind::kRegister) {
      immediate2_ = bytes[0] & 15;
    } else {
      const bool address32 = (memory_ >> kAddress32Shift & 1) != 0;
      displacement_ = address32 ? load<uint32_t>(bytes) : load<int64_t>(bytes);
      at_ += address32 ? 4 : 8;
    }
  }
}

[[gnu::always_inline]] inline DecodeStatus Decoder::read_rest(Instruction& out) {
  if (!is_valid()) [[unlikely]] {
    if (entry_.has(kEntryModrm)) ++at_;
    return DecodeStatus::kInvalid;
  }
  if (general_ && entry_.has(kEntryModeIgnored)) modrm_ |= 0xc0;
  // Without ModRM the register bit means nothing: the entry leaves it out.
  const unsigned is_register = (modrm_ + 0x40) >> 8;
  const unsigned narrow_or_long = vex_ ? vex_l_ : (prefixes_ & kPrefixOperandSize) != 0;
  const unsigned variant =
      is_register * kVariantRegister | narrow_or_long * kVariantNarrow | ((rex_ & kRexW) != 0 ? kVariantWide : 0u);
  // Laundered, so that its address is computed once and not for each word.
  const Form& form = *std::launder(&kForms[entry_.form(variant)]);
  operands_[0] = form.operands[0];
  operands_[1] = form.operands[1];
  if (entry_.has(kEntryModrm)) {
    ++at_;
    if (modrm_ < 0xc0) {
      read_memory(form.immediate_size());
      if (general_ && entry_.has(kEntryVsib) && !gather_is_valid()) return DecodeStatus::kInvalid;
    }
  } else {
    modrm_ = opcode_;
  }
  if (vex_) {
    number_vex_operands(form);
  } else {
    number_operands(form);
    if (entry_.has(kEntryByteRegisters)) [[unlikely]] {
      if (rex_ == 0) name_high_byte_registers();
    }
  }
  read_immediate(form);

  uint64_t header = (form.header & ~uint64_t{0xffff}) | entry_.value();
  header |= uint64_t{at_} << kLengthShift | uint64_t{entry_.condition()} << kConditionShift;
  if (general_) {
    if (at_ > kMaxInstructionLength) return DecodeStatus::kTooLong;
    unsigned owned = 0;
    if (entry_.has(kEntryOwns66)) owned |= kPrefixOperandSize;
    if (entry_.has(kEntryOwnsRep)) owned |= kPrefixRep | kPrefixRepne;
    header |= uint64_t{prefixes_ & ~owned} << kPrefixesShift;
    const Encoding encoding = !vex_ ? Encoding::kLegacy : vex_l_ != 0 ? Encoding::kVex256 : Encoding::kVex128;
    header |= uint64_t{static_cast<uint8_t>(encoding)} << kEncodingShift;
    if (entry_.has(kEntryNoSegment)) memory_ |= uint64_t{kNoRegister} << kSegmentShift;
  }
  const auto store = [&out](unsigned word, uint64_t value) {
    std::memcpy(reinterpret_cast<unsigned char*>(&out) + sizeof value * word, &value, sizeof value);
  };
  store(0, header);
  store(1, operands_[0]);
  store(2, operands_[1]);
  store(3, memory_);
  store(4, static_cast<uint64_t>(displacement_));
  store(5, static_cast<uint64_t>(immediate_));
  store(6, static_cast<uint64_t>(immediate2_));
  return DecodeStatus::kOk;
}

struct Result {
  DecodeStatus status;
  std::size_t consumed;
};

[[gnu::noinline]] Result decode_any(const uint8_t* bytes, uint64_t address, Instruction& out) {
  Decoder decoder(bytes, address);
  DecodeStatus status = decoder.read_opcode();
  if (status == DecodeStatus::kOk) [[likely]]
    status = decoder.read_rest(out);
  if (status != DecodeStatus::kOk) [[unlikely]] {
    out = Instruction{};
    if (decoder.is_evex()) {
      out.encoding = Encoding::kEvex;
      out.length = static_cast<uint8_t>(decoder.consumed());
    }
  }
  return {status, decoder.consumed()};
}

[[gnu::noinline]] DecodeStatus decode_prefixed(const uint8_t* bytes, uint64_t address, Instruction& out) {
  return decode_any(bytes, address, out).status;
}

// Fewer bytes than the decoder may look at: decodes a copy, padded with zeros. A result that depends on the padding
// is none.
[[gnu::noinline]] DecodeStatus decode_near_end(const uint8_t* bytes, std::size_t available, uint64_t address,
                                               Instruction& out) {
  std::array<uint8_t, kReadAhead> copy{};
  std::memcpy(copy.data(), bytes, available);
  const Result result = decode_any(copy.data(), address, out);
  if (result.consumed > available && available < kMaxInstructionLength) {
    out = Instruction{};
    return DecodeStatus::kOutOfBytes;
  }
  return result.status;
}

}  // namespace

DecodeStatus decode(const uint8_t* bytes, std::size_t available, uint64_t address, Instruction& out) {
  if (available < kReadAhead) [[unlikely]]
    return decode_near_end(bytes, available, address, out);
  Decoder decoder(bytes, address);
  if (!decoder.read_plain_opcode()) [[unlikely]]
    return decode_prefixed(bytes, address, out);
  return decoder.read_rest(out);
}

}  // namespace phybin::decode
