// The intermediate representation of a region: flat arrays of small operations, one array for all blocks.
//
// A region is a list of blocks; each block is a range of operations that ends in one terminator. An operation
// defines at most one value, and a value is used only inside the block that defines it: what crosses blocks is guest
// state, read by kGetGpr/kGetVec and written by kSetGpr/kSetVec, which live in fixed host registers (emit/homes.h)
// and so play the part of phis without a register allocator having to place them. An operation can write its result
// to a guest register itself (writes_home). Within a block every value is defined once (SSA).
//
// Flags. N, Z, C, V are the x86 flags SF, ZF, CF, OF. They are not values: an operation with a non-empty
// `flags_def` leaves them in the host's NZCV, and the operations that read conditions use what is there. Every
// operation between a writer and a reader leaves NZCV alone (or declares kClobbersNzcv; the emitter then saves it).
// PF and AF are kept raw: PF is the parity of a value's low byte (bit 4 of which takes part in AF), AF is bit 4 of
// (a ^ b ^ PF's value) for two more values a, b. Arithmetic says in aux2 which values those are in terms of its own
// operands and result (PfName, AfKind); SetPf and SetAf name any others. They cost nothing until somebody needs them.
//
// Widths are in bits. An operation of width 32 reads the low 32 bits of its integer operands and its result has zero
// upper halves; of width 64 all; of width 8 or 16 it reads the low bits and the bits of its result above the width
// are undefined, unless the opcode says otherwise.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/translator/flat_array.h"

namespace phybin::ir {

using ValueId = uint16_t;  // index of the defining operation in Region::ops; 0 is "no value"
inline constexpr ValueId kNoValue = 0;

enum Flag : uint8_t {
  kN = 1,   // SF
  kZ = 2,   // ZF
  kC = 4,   // CF
  kV = 8,   // OF
  kP = 16,  // PF, raw
  kA = 32,  // AF, raw
};
using FlagMask = uint8_t;
inline constexpr FlagMask kNzcv = kN | kZ | kC | kV;
inline constexpr FlagMask kAllFlags = kNzcv | kP | kA;

enum OpProperty : uint16_t {
  kPure = 0,
  kCanFault = 1,        // touches guest memory or raises a guest exception: guest state must be exact before it
  kSideEffect = 2,      // never removed
  kEarlyClobber = 4,    // the expansion writes its result before it has read all operands
  kTied = 8,            // the result takes the register of operand a (copied there if a lives on)
  kClobbersTemps = 16,  // calls a helper: the allocatable integer registers are lost
  kClobbersNzcv = 32,   // the expansion uses NZCV although the guest instruction does not define flags
  kReadsNzcv = 64,      // reads the flags in `flags_use`
  kStateBarrier = 128,  // reads and writes guest state in memory: nothing is forwarded across it
  kTerminator = 256,
  // Not in the table below but in traits(): the class of the result.
  kDefinesInt = 512,
  kDefinesVec = 1024,
  kDefinesValue = kDefinesInt | kDefinesVec,
  // What passes treat apart.
  kRawFlags = 2048,       // SetPf, SetAf
  kOnlyFlags = 4096,      // nothing but flags: dead when they are
  kGuestRegister = 8192,  // reads or writes a guest register, or stands for a constant
  kMayKeepFlags = 16384,  // may leave the flags that it defines as they were
  kMovesRsp = 32768,
};

enum class ResultClass : uint8_t { kNone, kInt, kVec };

// Operand classes for the verifier, the printer and the register allocator: '-' none, 'i' integer value, 'v' vector
// value; a lower-case letter in parentheses of the table's comment says what `imm`, `aux` and `aux2` mean.
// clang-format off
#define PHYBIN_IR_OPCODES(OP)                                                                                        \
  /*  name           result  operands  properties */                                                                 \
  OP(Invalid,          None, "---", kSideEffect)                                                                     \
  OP(Nothing,          None, "---", kPure) /* what is left of a dropped operation */                                   \
  /* What needs no code mostly stands first: the emitter asks for GuestAddress and below at once. */                 \
  /* Guest state. aux = register number. */                                                                          \
  OP(GetGpr,           Int,  "---", kPure)                                                                           \
  OP(SetGpr,           None, "i--", kSideEffect)                                                                     \
  OP(Const,            Int,  "---", kPure) /* imm */                                                                 \
  OP(GuestAddress,     Int,  "---", kPure) /* imm = address inside or near the module: image-relative */             \
  OP(GetVec,           Vec,  "---", kPure)                                                                           \
  OP(SetVec,           None, "v--", kSideEffect)                                                                     \
  OP(GetState,         Int,  "---", kPure) /* imm = byte offset in GuestState, width 8..64, zero-extended */         \
  OP(SetState,         None, "i--", kSideEffect) /* imm = byte offset, width 8..64 */                                \
  OP(GetStateVec,      Vec,  "---", kPure) /* imm = byte offset, width 64 or 128 */                                  \
  OP(SetStateVec,      None, "v--", kSideEffect)                                                                     \
  /* Flags. */                                                                                                       \
  OP(SetPf,            None, "i--", kSideEffect)                                                                     \
  OP(SetAf,            None, "ii-", kSideEffect) /* aux2 = AfKind; a absent: 0; b absent: imm takes its place */     \
  OP(SetNzcv,          None, "i--", kSideEffect) /* a: bits 0..3 = CF, bit layout of x86 RFLAGS (CF 0, ZF 6, SF 7, OF 11);\
                                            defines flags_def, keeps the rest */                                     \
  OP(SetCarry,         None, "---", kSideEffect) /* imm 0/1, or 2 = complement: STC, CLC, CMC */                     \
  OP(GetRflags,        Int,  "---", kReadsNzcv) /* CF PF AF ZF SF OF in their RFLAGS places, other bits 0 */         \
  OP(SetCc,            Int,  "---", kReadsNzcv) /* aux = x86 condition: 0 or 1 */                                    \
  OP(Select,           Int,  "ii-", kReadsNzcv) /* aux = x86 condition: true a, false b; width 32/64 */              \
  /* Integer arithmetic. b may be absent: then imm takes its place. flags_def may be kNzcv or a subset. */           \
  OP(Mov,              Int,  "i--", kPure) /* width 8, 16, 32: zero-extends; 64: copies */                           \
  OP(SignExtend,       Int,  "i--", kPure) /* width = source (8, 16, 32), aux = result width (32, 64) */             \
  OP(Insert,           Int,  "ii-", kTied) /* a with width bits of b at bit aux: writes AL, AH, AX */                \
  OP(Extract,          Int,  "i--", kPure) /* width bits of a from bit aux, zero-extended */                         \
  OP(Add,              Int,  "ii-", kPure)                                                                           \
  OP(Sub,              Int,  "ii-", kPure)                                                                           \
  OP(Adc,              Int,  "ii-", kReadsNzcv)                                                                      \
  OP(Sbb,              Int,  "ii-", kReadsNzcv)                                                                      \
  OP(And,              Int,  "ii-", kPure)                                                                           \
  OP(Or,               Int,  "ii-", kPure)                                                                           \
  OP(Xor,              Int,  "ii-", kPure)                                                                           \
  OP(AndNot,           Int,  "ii-", kPure) /* a & ~b */                                                              \
  OP(Neg,              Int,  "i--", kPure) /* flags as 0 - a */                                                      \
  OP(Not,              Int,  "i--", kPure)                                                                           \
  OP(Inc,              Int,  "i--", kPure) /* flags N Z V; C kept */                                                 \
  OP(Dec,              Int,  "i--", kPure)                                                                           \
  OP(Lea,              Int,  "ii-", kPure) /* a + (b << aux) + imm; width 32 or 64; a and b may be absent */         \
  OP(Mul,              Int,  "ii-", kPure) /* low half; flags C = V = "does not fit signed" when wanted */           \
  OP(UMulHigh,         Int,  "ii-", kPure) /* width 64 */                                                            \
  OP(SMulHigh,         Int,  "ii-", kPure)                                                                           \
  OP(UDiv,             Int,  "ii-", kPure) /* no check */                                                            \
  OP(SDiv,             Int,  "ii-", kPure)                                                                           \
  OP(CLZ,              Int,  "i--", kPure)                                                                           \
  OP(RBit,             Int,  "i--", kPure)                                                                           \
  OP(ByteSwap,         Int,  "i--", kPure) /* width 16 (result zero-extended), 32, 64 */                             \
  OP(PopCount,         Int,  "i--", kPure)                                                                           \
  OP(Crc32c,           Int,  "ii-", kPure) /* width = of b */                                                        \
  /* Shifts. b absent: count in imm, already masked and not 0. b present: x86 masking of the count (5 or 6 bits) is  \
   */                                                                                                                \
  /* part of the operation, and flags keep their old value when the masked count is 0. */                            \
  OP(Shl,              Int,  "ii-", kEarlyClobber)                                                                   \
  OP(Shr,              Int,  "ii-", kEarlyClobber)                                                                   \
  OP(Sar,              Int,  "ii-", kEarlyClobber)                                                                   \
  OP(Rol,              Int,  "ii-", kEarlyClobber) /* flags C, V; others kept */                                     \
  OP(Ror,              Int,  "ii-", kEarlyClobber)                                                                   \
  OP(Rcl,              Int,  "ii-", kEarlyClobber | kReadsNzcv)                                                      \
  OP(Rcr,              Int,  "ii-", kEarlyClobber | kReadsNzcv)                                                      \
  OP(Shld,             Int,  "iii", kEarlyClobber) /* c absent: count in imm */                                      \
  OP(Shrd,             Int,  "iii", kEarlyClobber)                                                                   \
  OP(BitTest,          None, "ii-", kSideEffect) /* C = bit (b mod width) of a; other flags kept */                  \
  OP(MulOverflow,      None, "ii-", kSideEffect) /* a = high half, b = low half, width; aux 1: signed. C = V = the   \
                                               product does not fit the low half */                                  \
  /* Plain A64 shifts without flags: count taken modulo the width (32, 64). */                                       \
  OP(ShiftLeft,        Int,  "ii-", kPure)                                                                           \
  OP(ShiftRight,       Int,  "ii-", kPure)                                                                           \
  OP(ShiftRightSigned, Int,  "ii-", kPure)                                                                           \
  OP(RotateRight,      Int,  "ii-", kPure)                                                                           \
  /* Guest memory. Address: a + (b << aux) + imm, a and b may be absent; width = bits accessed. */                   \
  OP(Load,             Int,  "ii-", kCanFault) /* zero-extended */                                                   \
  OP(LoadSigned,       Int,  "ii-", kCanFault) /* aux2 = result width (32, 64) */                                    \
  OP(LoadVec,          Vec,  "ii-", kCanFault) /* width 32, 64, 128; upper bits zero; aux2: should it fault, the     \
                                           guest goes back by so many instructions (passes/nan_windows) */           \
  OP(Store,            None, "iii", kCanFault | kSideEffect) /* c = value */                                         \
  OP(StoreVec,         None, "iiv", kCanFault | kSideEffect)                                                         \
  OP(Push,             None, "i--", kCanFault | kSideEffect) /* width 64 (or 16): stores and moves RSP */            \
  OP(Pop,              Int,  "---", kCanFault | kSideEffect) /* width 64 (or 16): the value popped; RSP moves */     \
  OP(Prefetch,         None, "ii-", kSideEffect) /* aux2: 0 read, 1 write */                                         \
  /* Atomics: a = address (complete), full barrier. aux2: an AtomicKind. Result: old value, zero-extended. */        \
  OP(AtomicRmw,        Int,  "ii-", kCanFault | kSideEffect | kEarlyClobber)                                         \
  OP(AtomicCas,        Int,  "iii", kCanFault | kSideEffect | kEarlyClobber) /* b = expected, c = desired */         \
  OP(AtomicCas16, Int, "i--",                                                                                        \
     kCanFault | kSideEffect | kClobbersTemps |                                                                      \
         kStateBarrier)               /* aux = 8 or 16 bytes; RDX:RAX, RCX:RBX; result 1 when exchanged */           \
  OP(Fence,            None, "---", kSideEffect) /* aux: FenceKind */                                                \
  /* Division: RDX:RAX (or AX) by a; sets RAX/RDX itself; #DE where x86 has it. aux: 1 signed. */                    \
  OP(Divide,           None, "i--", kCanFault | kSideEffect | kClobbersTemps | kStateBarrier | kClobbersNzcv)        \
  /* String operations; all in terms of guest registers and DF. aux = StringOp, aux2 = RepKind, width = element. */  \
  OP(String,           None, "---", kCanFault | kSideEffect | kClobbersTemps | kStateBarrier)                        \
  /* Helpers. imm = HelperId. Light ones get up to three integer arguments, keep vector registers and guest state;   \
   */                                                                                                                \
  /* their second result is read by HelperResult2 right after. */                                                    \
  OP(CallHelper,       Int,  "iii", kSideEffect | kClobbersTemps)                                                    \
  OP(HelperResult2,    Int,  "---", kSideEffect)                                                                     \
  /* Heavy helpers work on the whole guest state in memory. imm = HelperId; a, b = arguments. */                     \
  OP(CallState,        None, "ii-", kSideEffect | kCanFault | kClobbersTemps | kStateBarrier)                        \
  /* The host's counter, of which RDTSC is made. */                                                                  \
  OP(ReadCounter,      Int,  "---", kSideEffect)                                                                     \
  /* Terminators. imm = guest target. */                                                                             \
  OP(Jump,             None, "---", kSideEffect | kTerminator)                                                       \
  OP(Branch, None, "---",                                                                                            \
     kSideEffect | kTerminator |                                                                                     \
         kReadsNzcv) /* aux = condition; imm = taken; next block = not taken (Block::fallthrough) */                 \
  OP(BranchZero, None, "i--",                                                                                        \
     kSideEffect | kTerminator) /* taken if a == 0 (aux 0) or a != 0 (aux 1); with aux2 = n + 1 only bit n counts */ \
  OP(JumpIndirect,     None, "i--", kSideEffect | kTerminator)                                                       \
  /* Calls push the return address (Block::fallthrough) themselves. */                                               \
  OP(Call,             None, "---", kSideEffect | kTerminator | kCanFault) /* imm = target */                        \
  OP(CallThrough,      None, "i--", kSideEffect | kTerminator | kCanFault) /* through a stub that jumps: imm = address of the pointer it loads, a = GuestAddress of its jump */ \
  OP(CallIndirect,     None, "i--", kSideEffect | kTerminator | kCanFault)                                           \
  OP(Return,           None, "---", kSideEffect | kTerminator | kCanFault) /* imm = bytes released besides */        \
  OP(Syscall,          None, "---", kSideEffect | kTerminator)                                                       \
  OP(Trap,             None, "---", kSideEffect | kTerminator) /* aux = TrapKind, at this instruction */             \
  PHYBIN_IR_VECTOR_OPCODES(OP)                                                                                       \
  PHYBIN_IR_X87_OPCODES(OP)
// clang-format on

#include "worker/translator/ir/vector_opcodes.inc"
#include "worker/translator/ir/x87_opcodes.inc"

enum class Opcode : uint16_t {
#define OP(name, result, operands, properties) k##name,
  PHYBIN_IR_OPCODES(OP)
#undef OP
      kCount
};

struct OpcodeInfo {
  const char* name;
  ResultClass result;
  char operands[4];
  uint16_t properties;
};
extern const OpcodeInfo kOpcodeInfo[static_cast<unsigned>(Opcode::kCount)];
inline const OpcodeInfo& info(Opcode code) { return kOpcodeInfo[static_cast<unsigned>(code)]; }

// What passes and emitter ask of each operation: its properties and the class of its result. Small, so that it stays
// in the cache, and known to the compiler where the opcode is.
constexpr unsigned trait_of(ResultClass result) {
  return result == ResultClass::kInt ? kDefinesInt : result == ResultClass::kVec ? kDefinesVec : 0;
}
constexpr unsigned further_traits(Opcode code) {
  switch (code) {
    case Opcode::kSetPf:
    case Opcode::kSetAf:
      return kRawFlags;
    case Opcode::kBitTest:
    case Opcode::kMulOverflow:
    case Opcode::kSetNzcv:
    case Opcode::kSetCarry:
      return kOnlyFlags;
    case Opcode::kGetGpr:
    case Opcode::kSetGpr:
    case Opcode::kGetVec:
    case Opcode::kSetVec:
    case Opcode::kConst:
    case Opcode::kGuestAddress:
      return kGuestRegister;
    case Opcode::kShl:
    case Opcode::kShr:
    case Opcode::kSar:
    case Opcode::kRol:
    case Opcode::kRor:
    case Opcode::kRcl:
    case Opcode::kRcr:
    case Opcode::kShld:
    case Opcode::kShrd:
    case Opcode::kString:
      return kMayKeepFlags;
    case Opcode::kPush:
    case Opcode::kPop:
      return kMovesRsp;
    default:
      return 0;
  }
}
inline constexpr uint16_t kTraits[] = {
#define OP(name, result, operands, properties) \
  static_cast<uint16_t>((properties) | trait_of(ResultClass::k##result) | further_traits(Opcode::k##name)),
    PHYBIN_IR_OPCODES(OP)
#undef OP
};
constexpr unsigned traits(Opcode code) { return kTraits[static_cast<unsigned>(code)]; }

enum class AtomicKind : uint8_t { kExchange, kAdd, kSub, kAnd, kOr, kXor, kNeg, kNot, kInc, kDec };
// What PF's value is in terms of AF's operands: a + b, a - b, -a, or anything (kPlain). Where `a` is gone by the time
// that AF is wanted, it follows from the others; then `a` is not kept alive for AF's sake. kZero: a ^ b is 0 whatever
// the operands. kUndefined: the operation does not name AF.
enum class AfKind : uint8_t { kPlain, kSum, kDifference, kNegation, kZero, kUndefined };
// The value that an operation names for PF: with AfKind, in aux2 of an operation that has P in flags_def.
enum PfName : uint8_t { kPfOfResult = 16, kPfOfOperand = 32 /* a */ };
constexpr uint8_t raw_flags(PfName pf, AfKind af) { return static_cast<uint8_t>(pf | static_cast<uint8_t>(af)); }
// When PF or AF that an operation names is needed: right there, or by the edges out of the block alone.
enum class RawNeed : uint8_t { kNone, kAtOnce, kAtEdges };
enum class FenceKind : uint8_t { kLoad, kStore, kFull };
enum class StringOp : uint8_t { kMovs, kStos, kLods, kScas, kCmps };
enum class RepKind : uint8_t { kNone, kRep, kRepne };
enum class TrapKind : uint8_t { kInvalidOpcode, kBreakpoint, kDivide, kGeneralProtection, kInt, kDecodeFault, kX87 };

// Where a value is while the emitter walks over its block (emit/emitter.h).
enum class Where : uint8_t { kNowhere, kHome, kTemp, kConst, kSpill, kOffset, kPf };

struct Op {
  Opcode code = Opcode::kInvalid;
  uint8_t width = 0;
  uint8_t aux = 0;
  uint8_t aux2 = 0;
  FlagMask flags_def = 0;   // flags this operation defines
  FlagMask flags_use = 0;   // flags it reads (kReadsNzcv)
  FlagMask flags_live = 0;  // flags that somebody reads after this operation: filled in by passes/liveness
  ValueId a = kNoValue, b = kNoValue, c = kNoValue;
  uint16_t instruction = 0;  // index into Region::instructions of the guest instruction
  uint16_t uses = 0;    // times the value is read by living operations (passes/liveness); the emitter counts down
  uint8_t home = 0xff;  // guest register whose home the result is computed into, or 0xff (passes/liveness)
  bool writes_home : 1 = false;     // the result is also the new value of guest register `home`
  bool dead : 1 = false;            // nobody needs the operation (passes/liveness)
  bool sunk : 1 = false;            // SetPf, SetAf: only the edges out of the block read it (passes/liveness)
  RawNeed pf : 2 = RawNeed::kNone;  // of flags that the operation names itself (passes/liveness)
  RawNeed af : 2 = RawNeed::kNone;
  bool again : 1 = false;  // its NaNs are not x86's: computed again if a check finds one (passes/nan_windows)
  Where where = Where::kNowhere;
  uint8_t reg = 0;     // guest register (kHome, kOffset), host register (kTemp), slot (kSpill)
  int16_t offset = 0;  // kOffset: value = home of reg + offset, 64-bit
  int64_t imm = 0;
};
static_assert(sizeof(Op) == 32);

constexpr bool names_raw_flags(const Op& op) {
  return (op.flags_def & kP) != 0 && (op.aux2 & (kPfOfResult | kPfOfOperand)) != 0;
}
// The value that operation `id`, one that names raw flags, names for PF.
constexpr ValueId pf_value(const Op& op, ValueId id) { return (op.aux2 & kPfOfOperand) != 0 ? op.a : id; }
// What AF is made of, of a SetAf or of an operation that names raw flags.
struct AfSource {
  AfKind kind;
  ValueId a, b;
  int64_t imm;  // in place of b
};
constexpr AfSource af_source(const Op& op) {
  const auto kind = static_cast<AfKind>(op.aux2 & 7);
  if (kind == AfKind::kZero) return {AfKind::kPlain, kNoValue, kNoValue, 0};
  return {kind, op.a, op.b, op.imm};
}

// Where a guest instruction stands; the location tables name it.
struct GuestInstruction {
  uint64_t address;
  uint8_t length;
};

inline constexpr uint16_t kNoBlock = 0xffff;

struct Block {
  uint64_t address = 0;      // guest address of its first instruction
  uint64_t fallthrough = 0;  // guest address after its last instruction
  uint16_t first = 0;        // operations [first, last) of Region::ops; the last one is the terminator
  uint16_t last = 0;
  FlagMask live_in = 0;     // flags that must be canonical on entry
  FlagMask flags_use = 0;   // flags read before the block defines them
  FlagMask flags_kill = 0;  // flags that the block defines
  bool is_entry = false;    // reachable from outside the region: start, return sites
  bool is_repeat = false;  // all rounds but the first of the loop that the block before it is: reached from these two
  // Where it goes on within the region: the target of its jump, branch or call; what stands behind (index_blocks).
  uint16_t taken = kNoBlock, next = kNoBlock;
};

struct Region {
  uint64_t entry = 0;
  FlatArray<Op> ops;  // ops[0] is reserved
  std::vector<Block> blocks;
  FlatArray<GuestInstruction> instructions;
  FlatArray<uint16_t> block_table;  // of index_blocks()
  bool writes_vectors = false;      // some operation is a SetVec
  bool has_nan_checks = false;      // some operation is an FFixNan

  void clear() {
    ops.clear();
    blocks.clear();
    instructions.clear();
    writes_vectors = false;
    has_nan_checks = false;
  }
};

// Fills Block::next and taken; after the last block has been added.
void index_blocks(Region& region);
// True when the bits of `value` from `width` on are known to be zero.
bool is_narrow(const Region& region, ValueId value, unsigned width);

}  // namespace phybin::ir
