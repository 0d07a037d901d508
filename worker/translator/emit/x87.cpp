// x87 instructions: what is done inline.
//
// TOP, the byte of occupied registers, control and status word lie in one 64-bit word, the block, which an
// instruction loads once, changes and stores once. Whatever is not ordinary - an exception, a stack fault, a number
// that is not normal - is left to the instruction's helper on a cold path before anything has changed. NZCV is not
// touched.
#include "worker/translator/emit/emitter.h"
#include "worker/translator/helper_ids.h"
#include "worker/translator/x87_interface.h"

namespace phybin::emit {

using a64::Gpr;
using a64::kZr;
using a64::Label;
using ir::kNoValue;
using ir::Op;

namespace {

using namespace x87;  // NOLINT: the file is about nothing else

constexpr Gpr kBlock = kScratch0;

// What a cold path needs to tell the location of its instruction.
uint64_t pack(const LocationEntry& entry) {
  return static_cast<uint64_t>(entry.flag_form) | uint64_t{entry.pf} << 8 | uint64_t{entry.af_a} << 16 |
         uint64_t{entry.af_b} << 24;
}

// BRK tells the signal handler to raise #MF; the location is that of the check.
void raise_pending(Emitter& e, const ColdPath& cold) {
  LocationEntry entry{};
  entry.instruction = e.region.ops[cold.op].instruction;
  entry.flag_form = static_cast<FlagForm>(cold.data & 0xff);
  entry.pf = static_cast<uint8_t>(cold.data >> 8);
  entry.af_a = static_cast<uint8_t>(cold.data >> 16);
  entry.af_b = static_cast<uint8_t>(cold.data >> 24);
  e.add_location(entry);
  e.a.brk(static_cast<uint32_t>(ir::TrapKind::kX87));
}

// Where the words for a helper come from, in ColdPath::regs[3].
enum HelperWords : uint8_t {
  kRegisters,         // both from registers
  kConstants,         // imm and aux
  kConstantRegister,  // imm, and the operand's register
};

// The helper that does the whole instruction.
void call(Emitter& e, const Op& op, LightHelper helper, HelperWords words, Gpr a, Gpr b) {
  if (words == kConstants) {
    e.a.mov_imm(false, 1, static_cast<uint64_t>(op.imm));
    e.a.mov_imm(false, 2, op.aux);
  } else if (words == kConstantRegister) {
    if (a != 2) e.a.mov(true, 2, a);
    e.a.mov_imm(false, 1, static_cast<uint64_t>(op.imm));
  } else if (b == 1 && a != 1) {
    e.a.mov(true, kScratch0, b);
    e.a.mov(true, 1, a);
    e.a.mov(true, 2, kScratch0);
  } else {
    if (a != 1) e.a.mov(true, 1, a);
    if (b != 2) e.a.mov(true, 2, b);
  }
  e.a.mov_imm(false, kScratch0, static_cast<uint64_t>(helper));
  e.go_to_stub(Stub::kHelper, true);
}

void call_helper(Emitter& e, const ColdPath& cold) {
  call(e, e.region.ops[cold.op], static_cast<LightHelper>(cold.regs[0]), static_cast<HelperWords>(cold.regs[3]),
       cold.regs[1], cold.regs[2]);
  e.a.b(cold.back);
}

// FCOMI by its helper, which returns RFLAGS bits: x0 and the flags as kX87Compare would leave them, or for unordered
// operands x0 = 0, Z = 1, C = 0.
void compare_by_helper(Emitter& e, const ColdPath& cold) {
  call(e, e.region.ops[cold.op], LightHelper::k_x87_fcomi, kConstants, kZr, kZr);
  e.a.ubfx(false, 1, 0, 6, 1);
  e.a.lsl_imm(false, 1, 1, 30);
  e.a.mvn(false, 2, 0);
  e.a.bfi(false, 1, 2, 29, 1);
  e.a.msr(a64::SystemRegister::NZCV, 1);
  e.a.ubfx(false, 0, 0, 2, 1);
  e.a.eor_imm(false, 0, 0, 1);
  e.a.b(cold.back);
}

// FSTP m80 of an empty register: the helper stores too. Its address is in regs[1].
void store_by_helper(Emitter& e, const ColdPath& cold) {
  if (cold.regs[1] != 1) e.a.mov(true, 1, cold.regs[1]);
  e.load_guest_address(3, e.instruction_address(e.region.ops[cold.op]));
  e.a.mov_imm(false, kScratch0, static_cast<unsigned>(StateHelper::k_x87_fstp_m80));
  e.go_to_stub(Stub::kHelperState, true);
  e.a.b(cold.back);
}

// The same where the inline code has tested kOrdinaryBit alone.
void check_and_call_helper(Emitter& e, const ColdPath& cold) {
  const Label none = e.a.new_label();
  e.a.tbz(kBlock, kErrorSummaryBit, none);
  raise_pending(e, cold);
  e.a.bind(none);
  call_helper(e, cold);
}

// An instruction done inline: registers that it may use, and its cold path.
class Inline {
 public:
  // `ordinary`: only where kOrdinaryBit is set. `fixed`: operand 0 goes to this register, and imm is the first word.
  Inline(Emitter& e, const Op& op, LightHelper helper, bool ordinary = false, Gpr fixed = kZr) : e_(e), a_(e.a) {
    Gpr first = op.a != kNoValue ? e.use_or_zero(op.a) : kZr;
    const Gpr second = op.b != kNoValue ? e.use_or_zero(op.b) : kZr;
    e.spill_temporaries();
    if (fixed != kZr && first != fixed) a_.mov(true, fixed, first);
    if (fixed != kZr) first = fixed;
    const HelperWords words = op.a == kNoValue ? kConstants : fixed != kZr ? kConstantRegister : kRegisters;
    start(helper, words, ordinary, first, second);
  }
  // The operands are in `fixed` already.
  Inline(Emitter& e, Gpr fixed) : e_(e), a_(e.a) {
    e.spill_temporaries();
    start(LightHelper::kCount, kConstantRegister, false, fixed, kZr);
  }
  ~Inline() { a_.bind(done_); }
  Inline(const Inline&) = delete;
  Inline& operator=(const Inline&) = delete;

  void set_cold(ColdEmitter emit) { cold_->emit = emit; }
  Gpr operand(unsigned i) const { return operand_[i]; }
  // One of the temporaries, all of which are free: helpers lose them anyway.
  Gpr temporary() {
    Gpr r = 0;
    while ((used_ & (1u << r)) != 0) ++r;
    used_ |= 1u << r;
    return r;
  }

  void need_occupied(unsigned i) { a_.tbz(kBlock, kOccupiedBit + i, slow); }
  void need_room() { a_.tbnz(kBlock, kOccupiedBit + 7, slow); }

  Gpr top() {
    const Gpr t = temporary();
    a_.ubfx(true, t, kBlock, kTopBit, 3);
    return t;
  }
  // Where ST(i) is, but for kRegistersOffset.
  void address(Gpr to, Gpr top_register, unsigned i) {
    if (i != 0) {
      a_.add_imm(true, to, top_register, i);
      a_.and_imm(true, to, to, 7);
      top_register = to;
    }
    a_.add_shifted(true, to, kState, top_register, a64::LSL, 4);
  }
  Gpr address(Gpr top_register, unsigned i) {
    const Gpr to = temporary();
    address(to, top_register, i);
    return to;
  }
  struct Value {
    Gpr significand, exponent;
  };
  void load(Value v, Gpr at) { a_.ldp(true, v.significand, v.exponent, at, kRegistersOffset); }
  Value load(Gpr at) {
    const Value v{temporary(), temporary()};
    load(v, at);
    return v;
  }
  void store(Value v, Gpr at) { a_.stp(true, v.significand, v.exponent, at, kRegistersOffset); }

  // Moves TOP down; after need_room().
  void push(Value v) {
    const Gpr t = kScratch1;
    a_.and_imm(true, t, kBlock, uint64_t{0xff} << kOccupiedBit);
    a_.add(true, kBlock, kBlock, t);
    a_.orr_imm(true, kBlock, kBlock, uint64_t{1} << kOccupiedBit);
    a_.lsr_imm(true, t, kBlock, kTopBit);
    a_.sub_imm(false, t, t, 1);
    a_.and_imm(false, t, t, 7);
    a_.bfi(true, kBlock, t, kTopBit, 3);
    finish();
    a_.add_shifted(true, t, kState, t, a64::LSL, 4);
    store(v, t);
  }
  void pop() {
    const Gpr t = kScratch1;
    a_.ubfx(true, t, kBlock, kOccupiedBit + 1, 7);
    a_.bfi(true, kBlock, t, kOccupiedBit, 8);
    a_.lsr_imm(true, t, kBlock, kTopBit);
    a_.add_imm(false, t, t, 1);
    a_.bfi(true, kBlock, t, kTopBit, 3);
  }
  // C1 is cleared by whatever does not round or fault.
  void finish() {
    a_.and_imm(true, kBlock, kBlock, ~(uint64_t{1} << kC1Bit));
    a_.str(true, kBlock, kState, kControlWordOffset);
  }

  Label slow;

 private:
  void start(LightHelper helper, HelperWords words, bool ordinary, Gpr first, Gpr second) {
    operand_[0] = first;
    operand_[1] = second;
    const uint64_t here = pack(e_.location(false));
    a_.ldr(true, kBlock, kState, kControlWordOffset);
    if (!ordinary) {
      ColdPath& pending = e_.add_cold(raise_pending);
      pending.data = here;
      a_.tbnz(kBlock, kErrorSummaryBit, pending.entry);
    }
    cold_ = &e_.add_cold(ordinary ? check_and_call_helper : call_helper);
    cold_->regs[0] = static_cast<uint8_t>(helper);
    cold_->regs[1] = first;
    cold_->regs[2] = second;
    cold_->regs[3] = words;
    cold_->data = here;
    slow = cold_->entry;
    done_ = cold_->back;
    if (ordinary) a_.tbz(kBlock, kOrdinaryBit, slow);
    used_ = (1u << first | 1u << second) & ((1u << kIntTemps) - 1);
  }

  Emitter& e_;
  a64::Assembler& a_;
  Gpr operand_[2];
  ColdPath* cold_;  // valid until the next one is added
  Label done_;
  uint32_t used_;
};

// Normal numbers: the exponent gets another bias, the significand its integer bit.
void widen(Emitter& e, const Inline& x, Gpr bits, bool is_double, Inline::Value to, Gpr t) {
  const unsigned fraction = is_double ? 52 : 23, exponent_bits = is_double ? 11 : 8;
  // All ones and zero are the only exponents whose successor has at most the lowest bit set.
  e.a.ubfx(true, to.exponent, bits, fraction, exponent_bits);
  e.a.add_imm(false, t, to.exponent, 1);
  e.a.and_imm(false, t, t, (1u << exponent_bits) - 2);
  e.a.cbz(false, t, x.slow);
  e.a.lsl_imm(true, to.significand, bits, 63 - fraction);
  e.a.orr_imm(true, to.significand, to.significand, uint64_t{1} << 63);
  e.a.mov_imm(false, t, is_double ? 0x3fff - 0x3ff : 0x3fff - 0x7f);
  e.a.add(false, to.exponent, to.exponent, t);
  e.a.ubfx(true, t, bits, fraction + exponent_bits, 1);
  e.a.bfi(false, to.exponent, t, 15, 1);
}

// The registers of kX87Add and kX87Multiply, and some that these keep.
constexpr Inline::Value kFirst{0, 1}, kSecond{2, 3};
constexpr Gpr kThird = 4, kFourth = 5, kKept0 = 6, kKept1 = 7;

// kFirst = kFirst op kSecond, or the helper does it all.
void compute(Emitter& e, const Op& op, Label slow) {
  if (op.aux2 != 0) {
    const Gpr inverted = op.aux2 == 1 ? kFirst.exponent : kSecond.exponent;
    e.a.eor_imm(false, inverted, inverted, 0x8000);
  }
  const bool multiplies = static_cast<ArithmeticKind>(op.aux) == ArithmeticKind::kMultiply;
  e.go_to_stub(multiplies ? Stub::kX87Multiply : Stub::kX87Add, true);
  e.a.cbz(true, kFirst.significand, slow);
}

// The stubs change NZCV. Where somebody reads it after the operation, which is rare, the helper does it all.
bool keeps_flags(Emitter& e, const Op& op, LightHelper helper) {
  if ((op.flags_live & ir::kNzcv) == 0) return false;
  emit_X87Check(e, op);
  const Gpr a = op.a != kNoValue ? e.use(op.a) : kZr;
  e.spill_temporaries();
  call(e, op, helper, op.a != kNoValue ? kConstantRegister : kConstants, a, kZr);
  return true;
}

}  // namespace

void emit_X87Check(Emitter& e, const Op&) {
  e.a.mem(a64::MemOp::LDRH, kScratch0, kState, kStatusWordOffset);
  ColdPath& pending = e.add_cold(raise_pending);
  pending.data = pack(e.location(false));
  e.a.tbnz(kScratch0, kErrorSummaryBit - kStatusBit, pending.entry);
}

void emit_X87Push(Emitter& e, const Op& op) {
  Inline x(e, op, LightHelper::k_x87_fld_m80);
  x.need_room();
  x.push({x.operand(0), x.operand(1)});
}

void emit_X87PushFloat(Emitter& e, const Op& op) {
  Inline x(e, op, op.width == 64 ? LightHelper::k_x87_fld_m64 : LightHelper::k_x87_fld_m32);
  x.need_room();
  const Inline::Value v{x.temporary(), x.temporary()};
  widen(e, x, x.operand(0), op.width == 64, v, x.temporary());
  x.push(v);
}

void emit_X87PushInt(Emitter& e, const Op& op) {
  Inline x(e, op, LightHelper::k_x87_fld_i64);
  const Gpr value = x.operand(0), s = x.temporary(), sign = x.temporary(), exponent = x.temporary();
  x.need_room();
  e.a.cbz(true, value, x.slow);
  e.a.asr_imm(true, sign, value, 63);
  e.a.eor(true, s, value, sign);
  e.a.sub(true, s, s, sign);
  e.a.clz(true, exponent, s);
  e.a.lslv(true, s, s, exponent);
  e.a.mov_imm(false, kScratch1, 0x3fff + 63);
  e.a.sub(false, exponent, kScratch1, exponent);
  e.a.bfi(false, exponent, sign, 15, 1);
  x.push({s, exponent});
}

void emit_X87PushSt(Emitter& e, const Op& op) {
  Inline x(e, op, LightHelper::k_x87_fld_sti);
  const auto i = static_cast<unsigned>(op.imm);
  x.need_occupied(i);
  x.need_room();
  x.push(x.load(x.address(x.top(), i)));
}

void emit_X87Exchange(Emitter& e, const Op& op) {
  Inline x(e, op, LightHelper::k_x87_fxch);
  const auto i = static_cast<unsigned>(op.imm);
  x.need_occupied(0);
  if (i != 0) x.need_occupied(i);
  if (i != 0) {
    const Gpr top = x.top(), at_0 = x.address(top, 0), at_i = x.address(top, i);
    const Inline::Value first = x.load(at_0), second = x.load(at_i);
    x.store(second, at_0);
    x.store(first, at_i);
  }
  x.finish();
}

void emit_X87Copy(Emitter& e, const Op& op) {
  Inline x(e, op, LightHelper::k_x87_fst_sti);
  const auto i = static_cast<unsigned>(op.imm);
  x.need_occupied(0);
  if (i != 0) {
    const Gpr top = x.top();
    const Inline::Value value = x.load(x.address(top, 0));
    x.store(value, x.address(top, i));
    e.a.orr_imm(true, kBlock, kBlock, uint64_t{1} << (kOccupiedBit + i));
  }
  if (op.aux != 0) x.pop();
  x.finish();
}

void emit_X87Sign(Emitter& e, const Op& op) {
  const bool absolute = op.aux != 0;
  Inline x(e, op, absolute ? LightHelper::k_x87_fabs : LightHelper::k_x87_fchs);
  x.need_occupied(0);
  const Gpr at = x.address(x.top(), 0), t = x.temporary();
  e.a.mem(a64::MemOp::LDRH, t, at, kRegistersOffset + 8);
  if (absolute) {
    e.a.and_imm(false, t, t, 0x7fff);
  } else {
    e.a.eor_imm(false, t, t, 0x8000);
  }
  e.a.mem(a64::MemOp::STRH, t, at, kRegistersOffset + 8);
  x.finish();
}

void emit_X87Arithmetic(Emitter& e, const Op& op) {
  static constexpr LightHelper kHelpers[] = {LightHelper::k_x87_fadd, LightHelper::k_x87_fsub,
                                             LightHelper::k_x87_fmul};
  const LightHelper helper = kHelpers[op.aux];
  if (keeps_flags(e, op, helper)) return;
  Inline x(e, op, helper, true);
  const unsigned destination = op.imm & 7, source = op.imm >> 3 & 7;
  x.need_occupied(destination);
  e.a.ubfx(true, kFourth, kBlock, kTopBit, 3);
  x.address(kKept0, kFourth, destination);
  x.load(kFirst, kKept0);
  if (source != destination) {
    x.need_occupied(source);
    x.address(kThird, kFourth, source);
    x.load(kSecond, kThird);
  } else {
    e.a.mov(true, kSecond.significand, kFirst.significand);
    e.a.mov(true, kSecond.exponent, kFirst.exponent);
  }
  compute(e, op, x.slow);
  x.store(kFirst, kKept0);
  if ((op.imm & kArithmeticPop) != 0) x.pop();
  e.a.str(true, kBlock, kState, kControlWordOffset);
}

void emit_X87ArithmeticMemory(Emitter& e, const Op& op) {
  if (keeps_flags(e, op, LightHelper::k_x87_arithmetic_memory)) return;
  Inline x(e, op, LightHelper::k_x87_arithmetic_memory, true, kKept1);
  x.need_occupied(0);
  widen(e, x, kKept1, op.width == 64, kSecond, kThird);
  e.a.ubfx(true, kFourth, kBlock, kTopBit, 3);
  x.address(kKept0, kFourth, 0);
  x.load(kFirst, kKept0);
  compute(e, op, x.slow);
  x.store(kFirst, kKept0);
  e.a.str(true, kBlock, kState, kControlWordOffset);
}

void emit_X87Compare(Emitter& e, const Op& op) {
  {
    Inline x(e, op, LightHelper::k_x87_fcomi);
    x.set_cold(compare_by_helper);
    const unsigned i = op.imm & 7;
    x.need_occupied(0);
    x.need_occupied(i);
    e.a.ubfx(true, kFourth, kBlock, kTopBit, 3);
    x.address(kThird, kFourth, 0);
    x.load(kFirst, kThird);
    x.address(kThird, kFourth, i);
    x.load(kSecond, kThird);
    e.go_to_stub(Stub::kX87Compare, true);
    e.a.cbz(true, kFirst.significand, x.slow);
    if ((op.imm & kComparePop) != 0) {
      x.pop();
      e.a.str(true, kBlock, kState, kControlWordOffset);
    }
  }
  e.set_flags(FlagForm::kCanonical);
  if (!Emitter::unused(op)) e.def_in(op, kFirst.significand);
}

void emit_X87StoreExtended(Emitter& e, const Op& op) {
  const Gpr address = e.address(op);
  if (address != kKept1) e.a.mov(true, kKept1, address);
  Inline x(e, kKept1);
  x.set_cold(store_by_helper);
  x.need_occupied(0);
  e.a.ubfx(true, kFourth, kBlock, kTopBit, 3);
  x.address(kThird, kFourth, 0);
  x.load(kFirst, kThird);
  if (e.ordered()) e.a.dmb(a64::Barrier::ISH);
  e.fault_point();
  e.a.mem(a64::MemOp::STR_X, kFirst.significand, kKept1, 0);
  e.fault_point();
  e.a.mem(a64::MemOp::STRH, kFirst.exponent, kKept1, 8);
  x.pop();
  x.finish();
}

void emit_X87Store(Emitter& e, const Op& op) {
  const Label skip = e.a.new_label();
  // Operands that have no register yet get one on either path.
  for (const ir::ValueId v : {op.a, op.b, op.c}) {
    if (v != kNoValue) e.use(v);
  }
  e.a.ldr(true, kScratch0, kState, kAfterStoreOffset);
  e.a.tbnz(kScratch0, kSuppressedBit, skip);
  emit_Store(e, op);
  e.a.bind(skip);
  if (op.aux2 != 0) {
    e.a.ldr(true, kScratch0, kState, kAfterStoreOffset);
    e.a.str(true, kScratch0, kState, kControlWordOffset);
  }
}

}  // namespace phybin::emit
