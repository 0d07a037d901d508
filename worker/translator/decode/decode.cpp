// Decodes one instruction: prefixes, opcode, ModRM and SIB, then the operands in the order of the table's entry.
//
// Written for speed, because decoding is a large part of a cold start: the bytes are read without checks, from a
// padded copy when fewer than kReadAhead are available; the opcode table (opcode_table.h) says everything else.
#include <bit>
#include <cstring>

#include "worker/translator/decode/instruction.h"
#include "worker/translator/decode/opcode_table.h"
#include "worker/translator/decode/operand_types.h"

namespace phybin::decode {
namespace {

// More than is ever read: up to 14 prefixes, then VEX, opcode, ModRM, SIB, displacement and immediate.
constexpr std::size_t kReadAhead = 32;

constexpr uint8_t kRexB = 1;
constexpr uint8_t kRexX = 2;
constexpr uint8_t kRexR = 4;
constexpr uint8_t kRexW = 8;
constexpr uint8_t kRexPresent = 0x40;

// What the operand loop needs of kOperandTypes, in one word: it is loaded once.
class PackedType {
 public:
  constexpr PackedType() = default;
  constexpr PackedType(const OperandType& type, uint8_t register_mask)
      : bits_(uint64_t{static_cast<uint8_t>(type.source)} | uint64_t{static_cast<uint8_t>(type.kind)} << 8 |
              uint64_t{type.size} << 16 | uint64_t{type.memory_size} << 24 | uint64_t{register_mask} << 32) {}
  OperandSource source() const { return static_cast<OperandSource>(bits_ & 0xff); }
  OperandKind kind() const { return static_cast<OperandKind>(bits_ >> 8 & 0xff); }
  uint8_t size() const { return static_cast<uint8_t>(bits_ >> 16); }
  uint8_t memory_size() const { return static_cast<uint8_t>(bits_ >> 24); }
  unsigned register_mask() const { return static_cast<unsigned>(bits_ >> 32); }

 private:
  uint64_t bits_ = 0;
};

// MMX, x87 and segment register numbers have no REX extension.
constexpr uint8_t register_mask(OperandKind kind) {
  return kind == OperandKind::kMmx || kind == OperandKind::kX87 || kind == OperandKind::kSegment ? 7 : 15;
}

constexpr auto kTypes = [] {
  std::array<PackedType, kOperandTypes.size()> types{};
  for (std::size_t i = 0; i < types.size(); ++i) {
    const OperandType& type = kOperandTypes[i];
    types[i] = PackedType(type, register_mask(type.kind));
  }
  return types;
}();

// The sizes that prefixes decide, indexed by the low bits of a SizeCode; element 0 is Instruction::operand_size.
using SizeRow = std::array<uint8_t, 8>;

// Indexed by SizeMode * 8 + L * 4 + W * 2 + (66 present).
constexpr auto kSizeRows = [] {
  std::array<SizeRow, static_cast<std::size_t>(SizeMode::kCount) * 8> rows{};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto mode = static_cast<SizeMode>(i / 8);
    const bool wide = (i & 2) != 0;
    const bool narrow = (i & 1) != 0;
    uint8_t size = wide ? 8 : narrow ? 2 : 4;
    if (mode == SizeMode::kDefault64) size = narrow && !wide ? 2 : 8;
    if (mode == SizeMode::kForce64) size = 8;
    const uint8_t by_w = wide ? 8 : 4;
    const uint8_t at_most_4 = size < 4 ? size : 4;
    const uint8_t vector = (i & 4) != 0 ? 32 : 16;
    uint8_t reported = size;
    if (mode == SizeMode::kNone) reported = 0;
    if (mode == SizeMode::kByte) reported = 1;
    if (mode == SizeMode::kVariable32) reported = at_most_4;
    if (mode == SizeMode::kByW) reported = by_w;
    rows[i] = {reported,
               size,
               at_most_4,
               by_w,
               vector,
               static_cast<uint8_t>(vector / 2),
               static_cast<uint8_t>(vector / 4),
               static_cast<uint8_t>(vector / 8)};
  }
  return rows;
}();

template <typename T>
int64_t load(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return static_cast<int64_t>(value);
}

constexpr Instruction kBlank{};

// All of its state fits in registers, as long as every function on the way is inlined.
class Decoder {
 public:
  Decoder(const uint8_t* bytes, uint64_t address, Instruction& out)
      : start_(bytes), next_(bytes), address_(address), out_(out), next_operand_(out.operands.data()) {}

  DecodeStatus run();

  // Bytes looked at so far: a result depends on no others.
  std::size_t consumed() const { return static_cast<std::size_t>(next_ - start_); }

 private:
  DecodeStatus read_prefixes();
  DecodeStatus read_vex(Special form);
  DecodeStatus read_evex();
  void select_entry();
  bool is_valid() const;
  bool gather_is_valid() const;
  void read_memory();
  void read_operands();
  void add_register(PackedType type, unsigned number);
  void add_immediate(PackedType type, int64_t value);
  void finish();

  // An address relative to what has been read so far, the end of the instruction.
  int64_t target(int64_t offset) const {
    return static_cast<int64_t>(address_ + consumed() + static_cast<uint64_t>(offset));
  }
  unsigned modrm_reg() const { return (modrm_ >> 3 & 7) | (rex_ << 1 & 8); }
  unsigned modrm_rm() const { return (modrm_ & 7) | (rex_ << 3 & 8); }
  uint8_t size_of(uint8_t code) const { return code < kVariableSize ? code : (*sizes_)[code & 7]; }
  void take(const Entry& entry) {
    value_ = entry.value;
    flags_ = entry.flags;
    operands_ = std::bit_cast<uint32_t>(entry.operands);
  }
  void add(OperandKind kind, uint8_t reg, uint8_t size) { *next_operand_++ = {kind, reg, size}; }

  const uint8_t* start_;
  const uint8_t* next_;
  uint64_t address_;
  Instruction& out_;
  Operand* next_operand_;
  // The table's entry.
  unsigned value_ = 0;
  unsigned flags_ = 0;
  uint32_t operands_ = 0;  // the first one lowest
  const SizeRow* sizes_ = nullptr;
  unsigned opcode_ = 0;
  unsigned map_ = 0;
  unsigned modrm_ = 0;
  unsigned rex_ = 0;       // of VEX too, in REX's layout
  unsigned prefixes_ = 0;  // PrefixBits
  unsigned vvvv_ = 0;
  unsigned vex_l_ = 0;
  unsigned vex_prefix_ = 0;  // VEX.pp, which has the values of Selector::kPrefix
  bool vex_ = false;
  bool mode_is_register_ = true;
  bool have_immediate_ = false;
};

// Reads up to and including the opcode. REX counts only directly before the opcode.
[[gnu::always_inline]] inline DecodeStatus Decoder::read_prefixes() {
  // REX and 0F are most of what stands before opcodes; what else does goes round the loop.
  opcode_ = *next_++;
  if ((opcode_ & 0xf0) == kRexPresent) {
    rex_ = opcode_;
    opcode_ = *next_++;
  }
  if (opcode_ == 0x0f) {
    map_ = static_cast<unsigned>(OpcodeMap::k0F);
    opcode_ = *next_++;
  }
  for (;; opcode_ = *next_++) {
    take(kOpcodeTable[map_ * 256 + opcode_]);
    if (!(flags_ & kEntrySpecial)) [[likely]]
      return DecodeStatus::kOk;
    const auto special = static_cast<Special>(value_);
    if (special == Special::kRex) [[likely]] {
      rex_ = opcode_;
    } else if (special == Special::kEscape0F) {
      map_ = static_cast<unsigned>(OpcodeMap::k0F);
    } else if (special == Special::kEscape0F38 || special == Special::kEscape0F3A) {
      map_ = static_cast<unsigned>(special == Special::kEscape0F38 ? OpcodeMap::k0F38 : OpcodeMap::k0F3A);
    } else if (special == Special::kVex2 || special == Special::kVex3) {
      return read_vex(special);
    } else if (special == Special::kEvex) {
      return read_evex();
    } else {
      rex_ = 0;
      switch (special) {
        case Special::kOperandSize:
          prefixes_ |= kPrefixOperandSize;
          break;
        case Special::kAddressSize:
          out_.memory.address32 = true;
          break;
        case Special::kSegmentFs:
          out_.memory.segment = 4;
          break;
        case Special::kSegmentGs:
          out_.memory.segment = 5;
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
    if (consumed() >= kMaxInstructionLength) return DecodeStatus::kTooLong;
  }
}

// Legacy prefixes that VEX excludes, and REX, are #UD (Intel SDM vol. 2, 2.3.2 to 2.3.4).
[[gnu::always_inline]] inline DecodeStatus Decoder::read_vex(Special form) {
  const unsigned first = *next_++;
  unsigned map = 1;
  unsigned last = first;
  unsigned rex = kRexPresent | ((first & 0x80) == 0 ? kRexR : 0u);
  if (form == Special::kVex3) {
    last = *next_++;
    rex |=
        ((first & 0x40) == 0 ? kRexX : 0u) | ((first & 0x20) == 0 ? kRexB : 0u) | ((last & 0x80) != 0 ? kRexW : 0u);
    map = first & 0x1f;
  }
  if (prefixes_ != 0 || rex_ != 0 || map < 1 || map > 3) return DecodeStatus::kInvalid;
  vex_ = true;
  vex_prefix_ = last & 3;
  rex_ = rex;
  vvvv_ = ~last >> 3 & 15;
  vex_l_ = last >> 2 & 1;
  out_.encoding = vex_l_ != 0 ? Encoding::kVex256 : Encoding::kVex128;
  opcode_ = *next_++;
  map_ = static_cast<unsigned>(OpcodeMap::kVex0F) + map - 1;
  take(kOpcodeTable[map_ * 256 + opcode_]);
  return DecodeStatus::kOk;
}

// AVX-512 is not offered to the guest; only the length is found, for disassembly. ModRM always follows the opcode, an
// immediate byte in map 0F3A and for a few opcodes of map 0F.
[[gnu::always_inline]] inline DecodeStatus Decoder::read_evex() {
  const unsigned payload0 = next_[0];
  const unsigned payload1 = next_[1];
  const unsigned opcode = next_[3];
  next_ += 4;
  const unsigned map = payload0 & 7;
  if ((payload0 & 8) != 0 || (payload1 & 4) == 0 || map == 0 || map == 4 || map == 7) return DecodeStatus::kInvalid;
  modrm_ = *next_++;
  if (modrm_ < 0xc0) read_memory();
  if (map == 3 ||
      (map == 1 && ((opcode >= 0x70 && opcode <= 0x73) || opcode == 0xc2 || (opcode >= 0xc4 && opcode <= 0xc6))))
    ++next_;
  out_ = kBlank;
  out_.encoding = Encoding::kEvex;
  out_.length = static_cast<uint8_t>(consumed());
  return DecodeStatus::kInvalid;
}

// Follows the table's branches to the instruction itself, and reads ModRM if there is one.
[[gnu::always_inline]] inline void Decoder::select_entry() {
  modrm_ = *next_;
  while (flags_ & kEntrySelect) {
    unsigned value = 0;
    switch (static_cast<Selector>(operands_ & 0xff)) {
      case Selector::kPrefix:
        if (vex_)
          value = vex_prefix_;
        else
          value = (prefixes_ & kPrefixRepne) != 0         ? 3
                  : (prefixes_ & kPrefixRep) != 0         ? 2
                  : (prefixes_ & kPrefixOperandSize) != 0 ? 1
                                                          : 0;
        break;
      case Selector::kModrmReg:
        value = modrm_ >> 3 & 7;
        break;
      case Selector::kModrmMode:
        value = modrm_ >= 0xc0;
        break;
      case Selector::kModrmRm:
        value = modrm_ & 7;
        break;
      case Selector::kW:
        value = (rex_ & kRexW) != 0;
        break;
      case Selector::kL:
        value = vex_l_;
        break;
      case Selector::kRexB:
        value = rex_ & kRexB;
        break;
      case Selector::kCount:
        break;
    }
    take(kOpcodeTable[value_ + value]);
  }
  if (flags_ & kEntryModrm) ++next_;
}

// The conditions for #UD that are not in the table.
[[gnu::always_inline]] inline bool Decoder::is_valid() const {
  if (value_ == static_cast<unsigned>(Mnemonic::kInvalid)) return false;
  if ((prefixes_ & kPrefixLock) != 0 && ((flags_ & kEntryLock) == 0 || modrm_ >= 0xc0)) return false;
  if (vvvv_ != 0 && (flags_ & kEntryVvvv) == 0) return false;
  if (flags_ & kEntryPrivilegedRegister) {
    const unsigned number = modrm_reg();
    const bool control = (opcode_ & 1) == 0;
    constexpr unsigned kControlRegisters = 0b1'0001'1101;  // CR0, CR2, CR3, CR4, CR8
    return control ? (kControlRegisters >> number & 1) != 0 : number < 8;
  }
  return true;
}

// A gather has a SIB byte, and its destination, mask and index must differ.
[[gnu::always_inline]] inline bool Decoder::gather_is_valid() const {
  const unsigned destination = modrm_reg();
  const unsigned index = out_.memory.index;
  return (modrm_ & 7) == 4 && destination != vvvv_ && destination != index && index != vvvv_;
}

[[gnu::always_inline]] inline void Decoder::read_memory() {
  const unsigned mode = modrm_ >> 6;
  const unsigned rm = modrm_ & 7;
  Memory& memory = out_.memory;
  unsigned base = rm;
  if (rm == 4) {
    const unsigned sib = *next_++;
    const unsigned index = (sib >> 3 & 7) | (rex_ << 2 & 8);
    const bool vsib = (flags_ & kEntryVsib) != 0;
    if (index != 4 || vsib) {
      memory.index = static_cast<uint8_t>(index);
      memory.scale_log2 = static_cast<uint8_t>(sib >> 6);
      memory.vsib = vsib;
    }
    base = sib & 7;
  }
  if (mode == 0 && base == 5) {
    memory.base = rm == 4 ? kNoRegister : kRipBase;
    memory.disp = load<int32_t>(next_);
    next_ += 4;
    return;
  }
  memory.base = static_cast<uint8_t>(base | (rex_ << 3 & 8));
  if (mode == 1) {
    memory.disp = load<int8_t>(next_);
    next_ += 1;
  } else if (mode == 2) {
    memory.disp = load<int32_t>(next_);
    next_ += 4;
  }
}

[[gnu::always_inline]] inline void Decoder::add_register(PackedType type, unsigned number) {
  number &= type.register_mask();
  // Without REX, byte registers 4 to 7 are AH, CH, DH, BH.
  if (type.size() == 1 && type.kind() == OperandKind::kGpr && rex_ == 0 && number >= 4)
    add(OperandKind::kGprHigh8, static_cast<uint8_t>(number - 4), 1);
  else
    add(type.kind(), static_cast<uint8_t>(number), size_of(type.size()));
}

[[gnu::always_inline]] inline void Decoder::add_immediate(PackedType type, int64_t value) {
  if (have_immediate_) [[unlikely]]
    out_.imm2 = value;  // ENTER
  else
    out_.imm = value;
  have_immediate_ = true;
  add(type.kind(), kNoRegister, size_of(type.size()));
}

[[gnu::always_inline]] inline void Decoder::read_operands() {
  for (uint32_t rest = operands_; rest != 0; rest >>= 8) {
    PackedType type = kTypes[rest & 0xff];
    switch (type.source()) {
      case OperandSource::kModrmReg:
        add_register(type, modrm_reg());
        break;
      case OperandSource::kModrmRm:
        if (mode_is_register_)
          add_register(type, modrm_rm());
        else
          add(OperandKind::kMemory, kNoRegister, size_of(type.memory_size()));
        break;
      case OperandSource::kVvvv:
        add_register(type, vvvv_);
        break;
      case OperandSource::kOpcode:
        add_register(type, (opcode_ & 7) | (rex_ << 3 & 8));
        break;
      case OperandSource::kFixed:
        add(type.kind(), type.memory_size(), size_of(type.size()));
        break;
      case OperandSource::kImmediateS8:
        add_immediate(type, load<int8_t>(next_));
        next_ += 1;
        break;
      case OperandSource::kImmediateU8:
        add_immediate(type, load<uint8_t>(next_));
        next_ += 1;
        break;
      case OperandSource::kImmediateU16:
        add_immediate(type, load<uint16_t>(next_));
        next_ += 2;
        break;
      case OperandSource::kImmediateS32:
      case OperandSource::kImmediateFull: {
        const unsigned size = (*sizes_)[kSizeV & 7];
        if (size == 2) {
          add_immediate(type, load<int16_t>(next_));
          next_ += 2;
        } else if (size == 8 && type.source() == OperandSource::kImmediateFull) {
          add_immediate(type, load<int64_t>(next_));
          next_ += 8;
        } else {
          add_immediate(type, load<int32_t>(next_));
          next_ += 4;
        }
        break;
      }
      case OperandSource::kImmediateOne:
        add_immediate(type, 1);
        break;
      case OperandSource::kRelative8:
        next_ += 1;
        add_immediate(type, target(load<int8_t>(next_ - 1)));
        break;
      case OperandSource::kRelative32:
        next_ += 4;
        add_immediate(type, target(load<int32_t>(next_ - 4)));
        break;
      case OperandSource::kMemoryOffset:
        add(OperandKind::kMemory, kNoRegister, size_of(type.memory_size()));
        out_.memory.disp = out_.memory.address32 ? load<uint32_t>(next_) : load<int64_t>(next_);
        next_ += out_.memory.address32 ? 4 : 8;
        break;
      case OperandSource::kRegisterInImm8:
        add_register(type, *next_ >> 4);
        out_.imm2 = *next_ & 15;
        next_ += 1;
        break;
      case OperandSource::kCondition:
        out_.condition = type.size();
        break;
    }
  }
}

[[gnu::always_inline]] inline void Decoder::finish() {
  out_.mnemonic = static_cast<Mnemonic>(value_);
  out_.operand_size = (*sizes_)[0];
  unsigned owned = 0;
  if (flags_ & kEntryOwns66) owned |= kPrefixOperandSize;
  if (flags_ & kEntryOwnsRep) owned |= kPrefixRep | kPrefixRepne;
  out_.prefixes = static_cast<uint8_t>(prefixes_ & ~owned);
  if (flags_ & kEntryCondition) out_.condition = opcode_ & 15;
  if (flags_ & kEntryNoSegment) out_.memory.segment = kNoRegister;
  if (out_.memory.base == kRipBase) out_.memory.disp = target(out_.memory.disp);
  out_.operand_count = static_cast<uint8_t>(next_operand_ - out_.operands.data());
  out_.length = static_cast<uint8_t>(consumed());
}

[[gnu::always_inline]] inline DecodeStatus Decoder::run() {
  out_ = kBlank;
  const DecodeStatus status = read_prefixes();
  if (status != DecodeStatus::kOk) [[unlikely]]
    return status;
  select_entry();
  if (!is_valid()) [[unlikely]] {
    out_ = kBlank;
    return DecodeStatus::kInvalid;
  }
  sizes_ = &kSizeRows[(flags_ >> kEntrySizeModeShift) * 8 + vex_l_ * 4 + ((rex_ & kRexW) != 0 ? 2u : 0u) +
                      ((prefixes_ & kPrefixOperandSize) != 0 ? 1u : 0u)];
  if ((flags_ & kEntryModrm) && modrm_ < 0xc0 && !(flags_ & kEntryModeIgnored)) {
    mode_is_register_ = false;
    read_memory();
    if ((flags_ & kEntryVsib) && !gather_is_valid()) [[unlikely]] {
      out_ = kBlank;
      return DecodeStatus::kInvalid;
    }
  }
  read_operands();
  if (consumed() > kMaxInstructionLength) [[unlikely]] {
    out_ = kBlank;
    return DecodeStatus::kTooLong;
  }
  finish();
  return DecodeStatus::kOk;
}

// Fewer bytes than the decoder may look at: decodes a copy, padded with zeros. A result that depends on the padding
// is none.
[[gnu::noinline]] DecodeStatus decode_near_end(const uint8_t* bytes, std::size_t available, uint64_t address,
                                               Instruction& out) {
  std::array<uint8_t, kReadAhead> copy{};
  std::memcpy(copy.data(), bytes, available);
  Decoder decoder(copy.data(), address, out);
  const DecodeStatus status = decoder.run();
  if (decoder.consumed() > available && available < kMaxInstructionLength) {
    out = kBlank;
    return DecodeStatus::kOutOfBytes;
  }
  return status;
}

}  // namespace

DecodeStatus decode(const uint8_t* bytes, std::size_t available, uint64_t address, Instruction& out) {
  if (available < kReadAhead) [[unlikely]]
    return decode_near_end(bytes, available, address, out);
  return Decoder(bytes, address, out).run();
}

}  // namespace phybin::decode
