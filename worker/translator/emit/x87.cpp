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

// BRK tells the signal handler to raise #MF; the location is that of the check.
void raise_pending(Emitter& e, const ColdPath& cold) {
  LocationEntry entry{};
  entry.instruction = e.region.ops[cold.op].instruction;
  entry.flag_form = static_cast<FlagForm>(cold.regs[0]);
  entry.pf = cold.regs[1];
  entry.af_a = cold.regs[2];
  entry.af_b = cold.regs[3];
  e.add_location(entry);
  e.a.brk(static_cast<uint32_t>(ir::TrapKind::kX87));
}

// The helper that does the whole instruction. Its two words are registers or constants.
void call_helper(Emitter& e, const ColdPath& cold) {
  const Op& op = e.region.ops[cold.op];
  const auto helper = static_cast<LightHelper>(cold.regs[0]);
  const Gpr a = cold.regs[1], b = cold.regs[2];
  if (cold.regs[3] != 0) {
    // Of constants the first is ST(i), the second an option.
    e.a.mov_imm(false, 1, static_cast<uint64_t>(op.imm));
    e.a.mov_imm(false, 2, op.aux);
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
  e.a.b(cold.back);
}

// An instruction done inline: registers that it may use, and its cold path.
class Inline {
 public:
  Inline(Emitter& e, const Op& op, LightHelper helper) : e_(e), a_(e.a) {
    const Gpr first = op.a != kNoValue ? e.use_or_zero(op.a) : kZr;
    const Gpr second = op.b != kNoValue ? e.use_or_zero(op.b) : kZr;
    e.spill_temporaries();
    operand_[0] = first;
    operand_[1] = second;
    load_block();
    ColdPath& cold = e.add_cold(call_helper);
    cold.regs[0] = static_cast<uint8_t>(helper);
    cold.regs[1] = first;
    cold.regs[2] = second;
    cold.regs[3] = op.a == kNoValue ? 1 : 0;
    slow = cold.entry;
    done_ = cold.back;
    used_ = (1u << first | 1u << second) & ((1u << kIntTemps) - 1);
  }
  ~Inline() { a_.bind(done_); }
  Inline(const Inline&) = delete;
  Inline& operator=(const Inline&) = delete;

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
  Gpr address(Gpr top_register, unsigned i) {
    const Gpr t = temporary();
    if (i != 0) {
      a_.add_imm(true, t, top_register, i);
      a_.and_imm(true, t, t, 7);
      top_register = t;
    }
    a_.add_shifted(true, t, kState, top_register, a64::LSL, 4);
    return t;
  }
  struct Value {
    Gpr significand, exponent;
  };
  Value load(Gpr at) {
    const Value v{temporary(), temporary()};
    a_.ldp(true, v.significand, v.exponent, at, kRegistersOffset);
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
  void load_block() {
    a_.ldr(true, kBlock, kState, kControlWordOffset);
    const LocationEntry here = e_.location(false);
    ColdPath& cold = e_.add_cold(raise_pending);
    cold.regs[0] = static_cast<uint8_t>(here.flag_form);
    cold.regs[1] = here.pf;
    cold.regs[2] = here.af_a;
    cold.regs[3] = here.af_b;
    a_.tbnz(kBlock, kErrorSummaryBit, cold.entry);
  }

  Emitter& e_;
  a64::Assembler& a_;
  Gpr operand_[2];
  Label done_;
  uint32_t used_;
};

}  // namespace

void emit_X87Check(Emitter& e, const Op&) {
  e.a.mem(a64::MemOp::LDRH, kScratch0, kState, kStatusWordOffset);
  const LocationEntry here = e.location(false);
  ColdPath& cold = e.add_cold(raise_pending);
  cold.regs[0] = static_cast<uint8_t>(here.flag_form);
  cold.regs[1] = here.pf;
  cold.regs[2] = here.af_a;
  cold.regs[3] = here.af_b;
  e.a.tbnz(kScratch0, kErrorSummaryBit - kStatusBit, cold.entry);
}

void emit_X87Push(Emitter& e, const Op& op) {
  Inline x(e, op, LightHelper::k_x87_fld_m80);
  x.need_room();
  x.push({x.operand(0), x.operand(1)});
}

// Normal numbers: the exponent gets another bias, the significand its integer bit.
void emit_X87PushFloat(Emitter& e, const Op& op) {
  const bool is_double = op.width == 64;
  Inline x(e, op, is_double ? LightHelper::k_x87_fld_m64 : LightHelper::k_x87_fld_m32);
  const unsigned fraction = is_double ? 52 : 23, exponent_bits = is_double ? 11 : 8;
  const Gpr bits = x.operand(0), s = x.temporary(), exponent = x.temporary(), t = x.temporary();
  x.need_room();
  // All ones and zero are the only exponents whose successor has at most the lowest bit set.
  e.a.ubfx(true, exponent, bits, fraction, exponent_bits);
  e.a.add_imm(false, t, exponent, 1);
  e.a.and_imm(false, t, t, (1u << exponent_bits) - 2);
  e.a.cbz(false, t, x.slow);
  e.a.lsl_imm(true, s, bits, 63 - fraction);
  e.a.orr_imm(true, s, s, uint64_t{1} << 63);
  e.a.mov_imm(false, t, is_double ? 0x3fff - 0x3ff : 0x3fff - 0x7f);
  e.a.add(false, exponent, exponent, t);
  e.a.ubfx(true, t, bits, fraction + exponent_bits, 1);
  e.a.bfi(false, exponent, t, 15, 1);
  x.push({s, exponent});
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
