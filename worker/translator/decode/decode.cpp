// The general way through the decoder (decoder.h): all prefixes, VEX, and the end of memory.
#include "worker/translator/decode/decoder.h"

namespace phybin::decode {

[[gnu::always_inline]] inline bool Decoder::read_prefixed_opcode() {
  switch (next()) {
    case 0x66:
      prefixes_ = kPrefixOperandSize;
      mandatory_ = 1;
      break;
    case 0xf3:
      prefixes_ = kPrefixRep;
      mandatory_ = 2;
      break;
    case 0xf2:
      prefixes_ = kPrefixRepne;
      mandatory_ = 3;
      break;
    default:
      return false;
  }
  return read_plain_opcode();
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

namespace {

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

}  // namespace

DecodeStatus decode_prefixed(const uint8_t* bytes, uint64_t address, Instruction& out) {
  Decoder decoder(bytes, address);
  if (decoder.read_prefixed_opcode()) return decoder.read_rest(out);
  return decode_any(bytes, address, out).status;
}

// Fewer bytes than the decoder may look at: decodes a copy, padded with zeros. A result that depends on the padding
// is none.
DecodeStatus decode_near_end(const uint8_t* bytes, std::size_t available, uint64_t address, Instruction& out) {
  std::array<uint8_t, kReadAhead> copy{};
  std::memcpy(copy.data(), bytes, available);
  const Result result = decode_any(copy.data(), address, out);
  if (result.consumed > available && available < kMaxInstructionLength) {
    out = Instruction{};
    return DecodeStatus::kOutOfBytes;
  }
  return result.status;
}

DecodeStatus decode(const uint8_t* bytes, std::size_t available, uint64_t address, Instruction& out) {
  return decode_inline(bytes, available, address, out);
}

}  // namespace phybin::decode
