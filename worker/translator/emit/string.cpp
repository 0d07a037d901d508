// MOVS, STOS, LODS, SCAS, CMPS, with and without REP.
//
// The loops work on the homes of RSI, RDI, RCX and update them after each element, so the state is exact at every
// instruction that can fault or poll, and the instruction simply starts again from there, as on x86. Forward MOVS and
// STOS move 32 bytes at a time while enough is left and source and destination are not within 32 bytes of each other.
// Under the x86 memory model a barrier before and after stands for the ordering against other accesses; x86 itself
// leaves the stores of one string operation unordered.
#include "worker/translator/emit/access_size.h"
#include "worker/translator/emit/emitter.h"

namespace phybin::emit {

using a64::Gpr;
using a64::kZr;
using a64::Label;
using a64::MemOp;
using a64::Vec;
using ir::Op;
using ir::RepKind;
using ir::StringOp;

namespace {

constexpr unsigned kRax = 0, kRcx = 1, kRsi = 6, kRdi = 7;
constexpr MemOp kLoads[4] = {MemOp::LDRB, MemOp::LDRH, MemOp::LDR_W, MemOp::LDR_X};
constexpr MemOp kStores[4] = {MemOp::STRB, MemOp::STRH, MemOp::STR_W, MemOp::STR_X};
constexpr unsigned kBulk = 32;  // bytes
// Temporaries; the operation clobbers all.
constexpr Gpr kStep = 0, kElement = 1, kOther = 2, kDistance = 3;

void poll_here(Emitter& e) {
  if (!e.options.safepoints) return;
  e.add_location(e.location(true));
  e.a.ldur(false, kZr, kState, kPollDisplacement);
}

// 32 bytes at a time: leaves the rest, less than that, to the loop by elements. `slow` when it does not apply.
void bulk(Emitter& e, const Op& op, Label slow) {
  const Gpr rsi = gpr_home(kRsi), rdi = gpr_home(kRdi), rcx = gpr_home(kRcx), rax = gpr_home(kRax);
  const uint8_t size = size_log2(op.width);
  const bool move = static_cast<StringOp>(op.aux) == StringOp::kMovs;
  const unsigned elements = kBulk >> size;
  // Forward, and at least 64 bytes.
  e.a.tbnz(kStep, 63, slow);
  e.a.lsr_imm(true, kDistance, rcx, 6u - size);
  e.a.cbz(true, kDistance, slow);
  if (move) {
    e.a.sub(true, kDistance, rdi, rsi);
    e.a.lsr_imm(true, kDistance, kDistance, 5);
    e.a.cbz(true, kDistance, slow);
  } else {
    e.a.vdup_gpr(true, a64::Size(size), kVecScratch0, rax);
  }
  const Label loop = e.a.new_label();
  e.a.bind(loop);
  const Vec second = move ? kVecScratch1 : kVecScratch0;
  if (move) {
    e.fault_point();
    e.a.ldp_v(a64::kQ, kVecScratch0, second, rsi);
  }
  e.fault_point();
  e.a.stp_v(a64::kQ, kVecScratch0, second, rdi);
  if (move) e.a.add_imm(true, rsi, rsi, kBulk);
  e.a.add_imm(true, rdi, rdi, kBulk);
  e.a.sub_imm(true, rcx, rcx, elements);
  poll_here(e);
  e.a.lsr_imm(true, kDistance, rcx, 5u - size);
  e.a.cbnz(true, kDistance, loop);
}

}  // namespace

void emit_String(Emitter& e, const Op& op) {
  const auto kind = static_cast<StringOp>(op.aux);
  const auto rep = static_cast<RepKind>(op.aux2);
  const uint8_t size = size_log2(op.width);
  const Gpr rsi = gpr_home(kRsi), rdi = gpr_home(kRdi), rcx = gpr_home(kRcx), rax = gpr_home(kRax);
  const bool compares = kind == StringOp::kScas || kind == StringOp::kCmps;
  for (unsigned r = 0; r < kGuestGprs; ++r) e.evict_home(r);
  e.spill_temporaries();
  if (compares) e.make_canonical();
  if (e.ordered()) e.a.dmb(a64::Barrier::ISH);
  const Label done = e.a.new_label(), loop = e.a.new_label(), finish = e.a.new_label();
  if (rep != RepKind::kNone) e.a.cbz(true, rcx, done);
  e.a.ldr(true, kStep, kState, static_cast<uint32_t>(offsetof(GuestState, direction)));
  if (size != 0) e.a.lsl_imm(true, kStep, kStep, size);
  if (rep != RepKind::kNone && (kind == StringOp::kMovs || kind == StringOp::kStos)) {
    bulk(e, op, loop);
    e.a.cbz(true, rcx, done);
  }
  e.a.bind(loop);
  switch (kind) {
    case StringOp::kMovs:
      e.fault_point();
      e.a.mem(kLoads[size], kElement, rsi, 0);
      e.fault_point();
      e.a.mem(kStores[size], kElement, rdi, 0);
      break;
    case StringOp::kStos:
      e.fault_point();
      e.a.mem(kStores[size], rax, rdi, 0);
      break;
    case StringOp::kLods:
      e.fault_point();
      if (size >= 2) {
        e.a.mem(kLoads[size], rax, rsi, 0);
      } else {
        e.a.mem(kLoads[size], kElement, rsi, 0);
        e.a.bfi(true, rax, kElement, 0, op.width);
      }
      break;
    case StringOp::kScas:
      e.fault_point();
      e.a.mem(kLoads[size], kOther, rdi, 0);
      e.a.mov(true, kElement, rax);
      break;
    case StringOp::kCmps:
      e.fault_point();
      e.a.mem(kLoads[size], kElement, rsi, 0);
      e.fault_point();
      e.a.mem(kLoads[size], kOther, rdi, 0);
      break;
  }
  if (kind != StringOp::kScas && kind != StringOp::kStos) e.a.add(true, rsi, rsi, kStep);
  if (kind != StringOp::kLods) e.a.add(true, rdi, rdi, kStep);
  if (rep != RepKind::kNone) {
    e.a.sub_imm(true, rcx, rcx, 1);
    if (compares) {
      e.a.eor(true, kDistance, kElement, kOther);
      if (op.width < 64) e.a.ubfx(true, kDistance, kDistance, 0, op.width);
      if (rep == RepKind::kRep) {
        e.a.cbnz(true, kDistance, finish);
      } else {
        e.a.cbz(true, kDistance, finish);
      }
    }
    const Label last = e.a.new_label();
    e.a.cbz(true, rcx, last);
    poll_here(e);
    e.a.b(loop);
    e.a.bind(last);
  }
  e.a.bind(finish);
  if (compares && (op.flags_live & op.flags_def) != 0) {
    // Flags of element - other.
    e.a.eor(false, kAfHome, kElement, kOther);
    e.a.sub(op.width == 64, kPfHome, kElement, kOther);
    if (op.width >= 32) {
      e.a.cmp(op.width == 64, kElement, kOther);
    } else {
      e.a.lsl_imm(false, kElement, kElement, 32u - op.width);
      e.a.subs_shifted(false, kZr, kElement, kOther, a64::LSL, 32u - op.width);
    }
    e.set_flags(FlagForm::kCanonical);
  }
  e.a.bind(done);
  if (e.ordered()) e.a.dmb(a64::Barrier::ISH);
}

}  // namespace phybin::emit
