// The decoder itself, for those to whom the call of decode() matters: discovery, which does nothing else.
//
// Written for speed, because decoding is a large part of a cold start. The bytes are read without checks, from a
// padded copy when fewer than kReadAhead are available. The opcode table (opcode_table.h) says what an opcode is, and
// its form (form.h) what the result looks like, so that what is left to do is to merge register numbers and to store
// words.
//
// There are two ways to the table's entry: the short one knows REX and 0F, which are most of what stands before
// opcodes, and gives up if it meets anything else; the general one (decode.cpp) knows it all, and takes the short one
// too behind a single prefix. What follows is one
// piece of code, compiled for each of them, in which the compiler drops what the short way excludes.
#pragma once

#include <array>
#include <bit>
#include <cstring>
#include <new>

#include "worker/translator/decode/form.h"
#include "worker/translator/decode/instruction.h"
#include "worker/translator/decode/opcode_table.h"
#include "worker/translator/decode/operand_types.h"

namespace phybin::decode {

// More than is ever read: up to 14 prefixes, then VEX, opcode, ModRM, SIB, displacement and immediate.
inline constexpr std::size_t kReadAhead = 32;

inline constexpr unsigned kRexB = 1;
inline constexpr unsigned kRexX = 2;
inline constexpr unsigned kRexR = 4;
inline constexpr unsigned kRexW = 8;
inline constexpr unsigned kRexPresent = 0x40;

// Memory's first word, without registers; what prefixes and addressing put into it.
inline constexpr uint64_t kNoMemory = 0xff00'ffff;
static_assert(offsetof(Memory, base) == 0 && offsetof(Memory, index) == 1 && offsetof(Memory, scale_log2) == 2 &&
              offsetof(Memory, segment) == 3 && offsetof(Memory, address32) == 4 && offsetof(Memory, vsib) == 5);
inline constexpr unsigned kIndexShift = 8, kScaleShift = 16, kSegmentShift = 24, kAddress32Shift = 32,
                          kVsibShift = 40;
inline constexpr uint64_t kByte = 0xff;

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
  // The short way behind one of 66, F2, F3.
  bool read_prefixed_opcode();
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
  unsigned rex_ = 0;        // of VEX too, in REX's layout
  unsigned prefixes_ = 0;   // PrefixBits
  unsigned mandatory_ = 0;  // of these or of VEX.pp, the value of Selector::kPrefix
  // What only the general way meets.
  unsigned vvvv_ = 0;
  unsigned vex_l_ = 0;
  bool general_ = false, vex_ = false, evex_ = false;
  // The result.
  std::array<uint64_t, 2> operands_{};
  uint64_t memory_ = kNoMemory;
  int64_t displacement_ = 0, immediate_ = 0, immediate2_ = 0;
};

[[gnu::always_inline]] inline bool Decoder::read_plain_opcode() {
  uint64_t ahead = load<uint64_t>(bytes_ + at_);
  const unsigned first = ahead & 0xff;
  const bool has_rex = (first & 0xf0) == kRexPresent;
  rex_ = has_rex ? first : 0;
  at_ += has_rex ? 2 : 1;
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
  if (prefixes_ != 0) {
    unsigned owned = 0;
    if (entry_.has(kEntryOwns66)) owned |= kPrefixOperandSize;
    if (entry_.has(kEntryOwnsRep)) owned |= kPrefixRep | kPrefixRepne;
    header |= uint64_t{prefixes_ & ~owned} << kPrefixesShift;
  }
  if (general_) {
    if (at_ > kMaxInstructionLength) return DecodeStatus::kTooLong;
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

// Decodes an instruction that has other prefixes than REX, or is rare.
DecodeStatus decode_prefixed(const uint8_t* bytes, uint64_t address, Instruction& out);
// One of which fewer than kReadAhead bytes are available.
DecodeStatus decode_near_end(const uint8_t* bytes, std::size_t available, uint64_t address, Instruction& out);

// decode() without a call in most cases.
[[gnu::always_inline]] inline DecodeStatus decode_inline(const uint8_t* bytes, std::size_t available,
                                                         uint64_t address, Instruction& out) {
  if (available < kReadAhead) [[unlikely]]
    return decode_near_end(bytes, available, address, out);
  Decoder decoder(bytes, address);
  if (!decoder.read_plain_opcode()) [[unlikely]]
    return decode_prefixed(bytes, address, out);
  return decoder.read_rest(out);
}

}  // namespace phybin::decode
