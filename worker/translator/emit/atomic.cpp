// LOCKed operations, XCHG with memory and CMPXCHG.
//
// With LSE one instruction with acquire and release semantics; without, an exclusive loop (LDAXR, STLXR) and a DMB
// behind it, because a release store does not keep a later load behind itself and x86's locked operations are full
// barriers. A failed CMPXCHG is a barrier too.
#include "worker/translator/emit/access_size.h"
#include "worker/translator/emit/emitter.h"

namespace phybin::emit {

using a64::Gpr;
using a64::kZr;
using a64::Label;
using a64::Size;
using ir::AtomicKind;
using ir::kNoValue;
using ir::Op;

namespace {

constexpr unsigned kRax = 0, kRcx = 1, kRdx = 2, kRbx = 3;

// d = what memory gets when it held `old`.
void combine(Emitter& e, AtomicKind kind, bool is64, Gpr d, Gpr old, Gpr operand) {
  switch (kind) {
    case AtomicKind::kExchange:
      return e.a.mov(is64, d, operand);
    case AtomicKind::kAdd:
      return e.a.add(is64, d, old, operand);
    case AtomicKind::kSub:
      return e.a.sub(is64, d, old, operand);
    case AtomicKind::kAnd:
      return e.a.and_(is64, d, old, operand);
    case AtomicKind::kOr:
      return e.a.orr(is64, d, old, operand);
    case AtomicKind::kXor:
      return e.a.eor(is64, d, old, operand);
    case AtomicKind::kNeg:
      return e.a.neg(is64, d, old);
    case AtomicKind::kNot:
      return e.a.mvn(is64, d, old);
    case AtomicKind::kInc:
      return e.a.add_imm(is64, d, old, 1);
    case AtomicKind::kDec:
      return e.a.sub_imm(is64, d, old, 1);
  }
}

}  // namespace

void emit_AtomicRmw(Emitter& e, const Op& op) {
  const auto kind = static_cast<AtomicKind>(op.aux2);
  const Size size(size_log2(op.width));
  const bool is64 = op.width == 64;
  const Gpr address = e.use(op.a);
  Gpr operand = kZr;
  if (op.b != kNoValue) operand = e.use_or_zero(op.b);
  const Gpr d = e.def(op);
  if (e.host.lse && kind != AtomicKind::kNeg && kind != AtomicKind::kNot) {
    Gpr s = operand;
    switch (kind) {
      case AtomicKind::kSub:
        s = kScratch0;
        e.a.neg(is64, s, operand);
        break;
      case AtomicKind::kAnd:
        s = kScratch0;
        e.a.mvn(is64, s, operand);
        break;
      case AtomicKind::kInc:
      case AtomicKind::kDec:
        s = kScratch0;
        e.a.mov_imm(is64, s, kind == AtomicKind::kInc ? 1 : ~uint64_t{0});
        break;
      default:
        break;
    }
    e.fault_point();
    switch (kind) {
      case AtomicKind::kExchange:
        return e.a.swpal(size, s, d, address);
      case AtomicKind::kAnd:
        return e.a.ldclral(size, s, d, address);
      case AtomicKind::kOr:
        return e.a.ldsetal(size, s, d, address);
      case AtomicKind::kXor:
        return e.a.ldeoral(size, s, d, address);
      default:
        return e.a.ldaddal(size, s, d, address);
    }
  }
  const Label loop = e.a.new_label();
  e.a.bind(loop);
  e.fault_point();
  e.a.ldaxr(size, d, address);
  Gpr fresh = kScratch0;
  if (kind == AtomicKind::kExchange) {
    fresh = operand;
  } else {
    combine(e, kind, is64, fresh, d, operand);
  }
  e.fault_point();
  e.a.stlxr(size, kScratch1, fresh, address);
  e.a.cbnz(false, kScratch1, loop);
  e.a.dmb(a64::Barrier::ISH);
}

void emit_AtomicCas(Emitter& e, const Op& op) {
  const Size size(size_log2(op.width));
  const bool is64 = op.width == 64;
  const Gpr address = e.use(op.a);
  const Gpr expected = e.use_or_zero(op.b), desired = e.use_or_zero(op.c);
  const Gpr d = e.def(op);
  if (e.host.lse) {
    if (d != expected) e.a.mov(is64, d, expected);
    e.fault_point();
    e.a.casal(size, d, desired, address);
    if (op.width < 32) e.a.ubfx(false, d, d, 0, op.width);
    return;
  }
  const Label loop = e.a.new_label(), done = e.a.new_label();
  e.a.bind(loop);
  e.fault_point();
  e.a.ldaxr(size, d, address);
  e.a.eor(is64, kScratch0, d, expected);
  if (op.width < 32) e.a.ubfx(false, kScratch0, kScratch0, 0, op.width);
  e.a.cbnz(is64, kScratch0, done);
  e.fault_point();
  e.a.stlxr(size, kScratch1, desired, address);
  e.a.cbnz(false, kScratch1, loop);
  e.a.bind(done);
  e.a.dmb(a64::Barrier::ISH);
}

// CMPXCHG8B and CMPXCHG16B (aux = bytes): RDX:RAX expected and old value, RCX:RBX desired. Result: 1 when exchanged.
void emit_AtomicCas16(Emitter& e, const Op& op) {
  const Gpr rax = gpr_home(kRax), rcx = gpr_home(kRcx), rdx = gpr_home(kRdx), rbx = gpr_home(kRbx);
  e.a.mov(true, kScratch2, e.use(op.a));
  for (unsigned r = 0; r < kGuestGprs; ++r) e.evict_home(r);
  e.spill_temporaries();
  const Label loop = e.a.new_label(), differs = e.a.new_label(), done = e.a.new_label();
  constexpr Gpr kOld0 = 0, kOld1 = 1, kNew0 = 2, kNew1 = 3, kResult = 4;
  if (op.aux == 8) {
    e.a.mov(false, kOld1, rax);
    e.a.bfi(true, kOld1, rdx, 32, 32);
    e.a.mov(false, kNew0, rbx);
    e.a.bfi(true, kNew0, rcx, 32, 32);
    e.a.bind(loop);
    e.fault_point();
    e.a.ldaxr(a64::kD, kOld0, kScratch2);
    e.a.eor(true, kScratch0, kOld0, kOld1);
    e.a.cbnz(true, kScratch0, differs);
    e.fault_point();
    e.a.stlxr(a64::kD, kScratch1, kNew0, kScratch2);
    e.a.cbnz(false, kScratch1, loop);
    e.a.mov_imm(false, kResult, 1);
    e.a.b(done);
    e.a.bind(differs);
    e.a.clrex();
    e.a.mov(false, rax, kOld0);
    e.a.lsr_imm(true, rdx, kOld0, 32);
    e.a.mov_imm(false, kResult, 0);
  } else if (e.host.lse) {
    e.a.mov(true, kOld0, rax);
    e.a.mov(true, kOld1, rdx);
    e.a.mov(true, kNew0, rbx);
    e.a.mov(true, kNew1, rcx);
    e.fault_point();
    e.a.caspal(true, kOld0, kNew0, kScratch2);
    e.a.eor(true, kScratch0, kOld0, rax);
    e.a.eor(true, kScratch1, kOld1, rdx);
    e.a.orr(true, kScratch0, kScratch0, kScratch1);
    e.a.mov(true, rax, kOld0);
    e.a.mov(true, rdx, kOld1);
    e.a.mov_imm(false, kResult, 0);
    e.a.cbnz(true, kScratch0, done);
    e.a.mov_imm(false, kResult, 1);
  } else {
    e.a.bind(loop);
    e.fault_point();
    e.a.ldaxp(true, kOld0, kOld1, kScratch2);
    e.a.eor(true, kScratch0, kOld0, rax);
    e.a.eor(true, kScratch1, kOld1, rdx);
    e.a.orr(true, kScratch0, kScratch0, kScratch1);
    e.a.cbnz(true, kScratch0, differs);
    e.fault_point();
    e.a.stlxp(true, kScratch1, rbx, rcx, kScratch2);
    e.a.cbnz(false, kScratch1, loop);
    e.a.mov_imm(false, kResult, 1);
    e.a.b(done);
    e.a.bind(differs);
    // Two halves are read as one only if the exclusive store of the pair succeeds.
    e.fault_point();
    e.a.stlxp(true, kScratch1, kOld0, kOld1, kScratch2);
    e.a.cbnz(false, kScratch1, loop);
    e.a.mov(true, rax, kOld0);
    e.a.mov(true, rdx, kOld1);
    e.a.mov_imm(false, kResult, 0);
  }
  e.a.bind(done);
  if (!e.host.lse || op.aux == 8) e.a.dmb(a64::Barrier::ISH);
  if (!Emitter::unused(op)) e.def_in(op, kResult);
}

}  // namespace phybin::emit
