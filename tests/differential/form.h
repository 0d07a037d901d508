// Instruction forms: what the generator knows about the instruction set.
//
// The tables (forms_*.cpp) are lines of text in the notation of the Intel SDM's opcode tables,
//     mnemonic | opcode | operands | attributes
// for example "add | 01 /r | Ev,Gv | lock w=OSZAPC". parse_forms expands each line into one Form per operand size.
//
// Operands are a kind and a size. Kinds: E r/m register or memory, R r/m register only, M memory only, G reg field,
// Z register in the opcode, B VEX.vvvv register, I immediate, J branch target, O moffs; V, W, U, H the same as G, E,
// R, B for xmm/ymm; P, Q, N the same as G, E, R for mmx; X register in the immediate (is4); S x87 register in the
// opcode; lower-case names are implicit operands and only for reading. Sizes: b w d q x(16) L(vector length) l(half
// of it) m(quarter) n(eighth) t(10) v(16/32/64 by form) y(32/64 by form) z(immediate of v, at most 32 bits), 0
// (unknown); a memory operand of another size says it in brackets, as in M[28]. Where register and memory operand
// differ in size (movss), the size is that of the memory.
//
// Attributes: lock (may be locked in its memory form), w= r= u= flags written, read, undefined; d64 (64-bit operands
// need no REX.W, no 32-bit form); hint=i8|i16|i32|i64|f32|f64|f80|count (what to put into vectors, x87 and memory);
// s=NAME (Special); unaligned/aligned (memory operand of 16 bytes or more); noseq (not for random sequences);
// rep (string instruction: rep prefixes); imm=N (mask of the immediate); cc=DIGITS (x87 condition
// codes that are defined afterwards, C1 if not said); approx (result is an approximation); nomem
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace phybin::difftest {

enum Flag : uint32_t {
  kCf = 0x1,
  kPf = 0x4,
  kAf = 0x10,
  kZf = 0x40,
  kSf = 0x80,
  kDf = 0x400,
  kOf = 0x800,
  kStatusFlags = kCf | kPf | kAf | kZf | kSf | kOf,
};

// Forms that need more than "random registers": operands inside the arena, no faults, flags that depend on operands.
enum class Special : uint8_t {
  kNone,
  kDiv,
  kIdiv,
  kShift,        // shl shr sar sal
  kRotate,       // rol ror
  kRotateCarry,  // rcl rcr
  kDoubleShift,
  kBitMemory,  // bt* m, r: the register reaches beyond the operand
  kBitScan,    // a 32-bit operand of zero leaves the upper half undefined
  kString,
  kStack,
  kEnter,
  kLeave,
  kXlat,
  kCompareExchange,
  kCompareExchangePair,
  kJump,          // jcc, jmp
  kLoop,          // loop*, jrcxz
  kCall,          // call rel32 and ret inside the snippet
  kJumpIndirect,  // jmp r/m
  kCallIndirect,
  kReturn,
  kMaskMove,  // maskmovdqu
  kGather,
  kX87,
  kLoadMxcsr,
};

enum class Hint : uint8_t { kNone, kI8, kI16, kI32, kI64, kF32, kF64, kF80, kCount };

struct Operand {
  char kind = 0;
  uint8_t size = 0;  // bytes
};

struct Form {
  std::string name;  // "add32 Ev,Gv"
  std::string mnemonic;
  std::string group;
  std::vector<uint8_t> opcode;
  uint8_t prefix = 0;  // mandatory 66, F2 or F3
  bool modrm = false;
  int8_t digit = -1;  // opcode extension in the reg field
  bool opcode_register = false;
  bool rex_w = false;
  bool operand_size_16 = false;
  bool vex = false;
  uint8_t vex_length = 0, vex_pp = 0, vex_map = 0, vex_w = 0;
  std::array<Operand, 4> operands{};
  uint8_t operand_count = 0;
  uint8_t immediate_mask = 0xff;
  uint16_t condition_codes = 0x200;  // bits of the x87 status word that are defined
  uint8_t size = 0;                  // of "v"/"y" forms, else that of the first operand
  bool lock = false, rep = false, no_sequence = false, approximate = false, no_memory = false;
  bool unaligned = false, aligned = false;
  bool vendors_differ = false;  // tested against Intel's CPUs only: others choose another NaN, or other x87 flags
  bool vendors_align = false;   // memory operands likewise: Intel's CPUs want them aligned, others do not
  Special special = Special::kNone;
  Hint hint = Hint::kNone;
  uint32_t flags_written = 0, flags_read = 0, flags_undefined = 0;
};

// Every form of every group, in a fixed order; only those of which CPUs of all vendors make the same, or also those
// that are tested where the oracle is an Intel CPU.
enum class Vendors : uint8_t { kAny, kIntel };
const std::vector<Form>& all_forms(Vendors vendors);
// Of this machine's CPU.
Vendors oracle_vendor();

// Groups that are tested without being asked for.
bool group_is_default(std::string_view group);

// Adds the forms of a table to `forms`. A bad line ends the program: the tables are part of it.
void parse_forms(std::string_view group, std::string_view table, std::vector<Form>& forms);

void add_integer_forms(std::vector<Form>& forms);
void add_sse_forms(std::vector<Form>& forms);
void add_x87_forms(std::vector<Form>& forms);
void add_avx_forms(std::vector<Form>& forms);

}  // namespace phybin::difftest
