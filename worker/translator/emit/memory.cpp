// Guest state and guest memory.
//
// Addresses fold into A64's addressing modes: [base, #scaled or unscaled displacement], [base, index, LSL #size];
// what does not fit is added up in kScratch0. Under the x86 memory model (kTso) integer accesses are LDAR/LDAPR and
// STLR, or plain ones with DMB where the options say so; vector accesses, which have no ordered form, always use DMB:
// a barrier against later accesses behind each load, one against earlier stores before each store (loads have theirs
// already).
#include "worker/translator/emit/access_size.h"
#include "worker/translator/emit/emitter.h"

namespace phybin::emit {

using a64::Gpr;
using a64::MemOp;
using a64::Size;
using a64::Vec;
using ir::kNoValue;
using ir::Op;
using ir::Opcode;

namespace {

MemOp integer_load(const Op& op) {
  if (op.code == Opcode::kLoadSigned) {
    const bool to64 = op.aux2 == 64;
    switch (op.width) {
      case 8:
        return to64 ? MemOp::LDRSB_X : MemOp::LDRSB_W;
      case 16:
        return to64 ? MemOp::LDRSH_X : MemOp::LDRSH_W;
      default:
        return MemOp::LDRSW;
    }
  }
  return a64::load_op(Size(size_log2(op.width)));
}

MemOp integer_store(unsigned bits) { return a64::store_op(Size(size_log2(bits))); }

// Whether one ADD or SUB adds `value`.
bool adds_at_once(int64_t value) {
  const uint64_t magnitude = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  return a64::is_add_imm(magnitude);
}

// reg = from + value, for any value; reg may be from.
void add_constant(Emitter& e, Gpr reg, Gpr from, int64_t value) {
  const uint64_t magnitude = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  if (magnitude < 0x1000 || ((magnitude & 0xfff) == 0 && magnitude < 0x1000000)) {
    const bool shifted = magnitude >= 0x1000;
    const auto imm = static_cast<uint32_t>(shifted ? magnitude >> 12 : magnitude);
    if (value < 0) {
      e.a.sub_imm(true, reg, from, imm, shifted);
    } else {
      e.a.add_imm(true, reg, from, imm, shifted);
    }
  } else if (magnitude < 0x1000000) {
    if (value < 0) {
      e.a.sub_imm(true, reg, from, static_cast<uint32_t>(magnitude >> 12), true);
      e.a.sub_imm(true, reg, reg, static_cast<uint32_t>(magnitude & 0xfff));
    } else {
      e.a.add_imm(true, reg, from, static_cast<uint32_t>(magnitude >> 12), true);
      e.a.add_imm(true, reg, reg, static_cast<uint32_t>(magnitude & 0xfff));
    }
  } else {
    const Gpr t = from == kScratch1 ? kScratch2 : kScratch1;
    e.a.mov_imm(true, t, static_cast<uint64_t>(value));
    e.a.add(true, reg, from, t);
  }
}

void load_address_constant(Emitter& e, Gpr reg, uint64_t value) {
  if (e.a.is_mov_imm(value)) {
    e.a.mov_imm(true, reg, value);
  } else {
    e.a.ldr_literal64(reg, value);
  }
}

// Where to access 2^size bytes, as a64::MemoryForms encodes it: [base, #disp] or [base, index, LSL #size].
using Address = uint32_t;

Address at_index(Gpr base, Gpr index, bool scaled = false) { return a64::Assembler::at_index(base, index, scaled); }

// [base, #disp], if an access can hold the displacement.
bool encode_displacement(Gpr base, int64_t disp, uint8_t size, Address& out) {
  const uint64_t units = static_cast<uint64_t>(disp) >> size;
  if (units < 4096 && units << size == static_cast<uint64_t>(disp)) {
    out = a64::Assembler::at_scaled(base, static_cast<uint32_t>(units));
    return true;
  }
  if (disp < -256 || disp >= 256) return false;
  out = a64::Assembler::at_unscaled(base, static_cast<int32_t>(disp));
  return true;
}

// RIP-relative: the access holds the address's place in its page, if that is aligned. Pays for up to two accesses.
bool place_in_page(Emitter& e, const Op& op, uint8_t size, Address& out) {
  if (!e.relative_addresses() || !e.is_unloaded_address(op.a) || e.reads_left(op.a) > 2) return false;
  const uint64_t address = static_cast<uint64_t>(e.constant(op.a)) + static_cast<uint64_t>(op.imm);
  const uint64_t in_page = address & 0xfff;
  if ((in_page & ((1u << size) - 1)) != 0) return false;
  e.load_guest_page(kScratch0, address);
  out = a64::Assembler::at_scaled(kScratch0, static_cast<uint32_t>(in_page >> size));
  return true;
}

// base + a displacement that no access can hold.
Address place_far(Emitter& e, const Op& op, uint8_t size, Gpr base) {
  // The part of it that an access can hold stays there.
  const int64_t low = op.imm & (int64_t{0xfff} << size);
  const int64_t high = op.imm - low;
  const bool split = (op.imm & ((1 << size) - 1)) == 0 && high > 0 && high < 0x1000000 && (high & 0xfff) == 0;
  if (split || adds_at_once(op.imm)) {
    add_constant(e, kScratch0, base, split ? high : op.imm);
    return a64::Assembler::at_scaled(kScratch0, split ? static_cast<uint32_t>(low >> size) : 0);
  }
  load_address_constant(e, kScratch0, static_cast<uint64_t>(op.imm));
  return at_index(base, kScratch0);
}

// With an index, or without a base.
Address place_indexed(Emitter& e, const Op& op, uint8_t size) {
  if (op.b == kNoValue) {
    load_address_constant(e, kScratch0, static_cast<uint64_t>(op.imm));
    return a64::Assembler::at_scaled(kScratch0, 0);
  }
  Address address;
  const Gpr index = e.use(op.b);
  const bool scales = op.aux == 0 || op.aux == size;
  if (op.a == kNoValue) {
    if (encode_displacement(kScratch0, op.imm, size, address)) {
      e.a.lsl_imm(true, kScratch0, index, op.aux);
      return address;
    }
    load_address_constant(e, kScratch0, static_cast<uint64_t>(op.imm));
    if (scales) return at_index(kScratch0, index, op.aux != 0);
    e.a.add_shifted(true, kScratch0, kScratch0, index, a64::LSL, op.aux);
    return a64::Assembler::at_scaled(kScratch0, 0);
  }
  const Gpr base = e.use(op.a);
  if (op.imm == 0 && scales) return at_index(base, index, op.aux != 0);
  e.a.add_shifted(true, kScratch0, base, index, a64::LSL, op.aux);
  if (encode_displacement(kScratch0, op.imm, size, address)) return address;
  if (adds_at_once(op.imm)) {
    add_constant(e, kScratch0, kScratch0, op.imm);
    return a64::Assembler::at_scaled(kScratch0, 0);
  }
  load_address_constant(e, kScratch1, static_cast<uint64_t>(op.imm));
  return at_index(kScratch0, kScratch1);
}

// Folds as much of the address as an access can take.
Address place(Emitter& e, const Op& op, uint8_t size) {
  if (op.b != kNoValue || op.a == kNoValue) return place_indexed(e, op, size);
  Address address;
  if (place_in_page(e, op, size, address)) return address;
  const Gpr base = e.use(op.a);
  return encode_displacement(base, op.imm, size, address) ? address : place_far(e, op, size, base);
}

void access(Emitter& e, MemOp op, uint8_t reg, Address address) {
  e.fault_point();
  e.a.mem_at(op, reg, address);
}

bool by_barriers(const Emitter& e) { return e.options.ordered_by_barriers; }

void sign_extend_loaded(Emitter& e, const Op& op, Gpr d) {
  if (op.code != Opcode::kLoadSigned) return;
  e.a.sbfx(op.aux2 == 64, d, d, 0, op.width);
}

}  // namespace

void Emitter::load_guest_page(Gpr reg, uint64_t address) {
  out_.address_uses.push_back({a.offset(), address});
  a.adrp(reg, 0);
}

void Emitter::load_guest_address(Gpr reg, uint64_t address) {
  if (relative_addresses()) {
    load_guest_page(reg, address);
    if ((address & 0xfff) != 0) a.add_imm(true, reg, reg, static_cast<uint32_t>(address & 0xfff));
  } else {
    load_address_constant(*this, reg, address);
  }
}

void Emitter::load_constant(Gpr reg, ir::ValueId value) {
  const auto imm = static_cast<uint64_t>(constant(value));
  if (is_constant(value)) {
    load_address_constant(*this, reg, imm);
  } else {
    load_guest_address(reg, imm);
  }
}

Gpr Emitter::address(const Op& op) {
  if (op.a == kNoValue && op.b == kNoValue) {
    load_address_constant(*this, kScratch0, static_cast<uint64_t>(op.imm));
    return kScratch0;
  }
  if (op.b == kNoValue) {
    const Gpr base = use(op.a);
    if (op.imm == 0) return base;
    add_constant(*this, kScratch0, base, op.imm);
    return kScratch0;
  }
  const Gpr index = use(op.b);
  if (op.a == kNoValue) {
    a.lsl_imm(true, kScratch0, index, op.aux);
  } else {
    a.add_shifted(true, kScratch0, use(op.a), index, a64::LSL, op.aux);
  }
  if (op.imm != 0) add_constant(*this, kScratch0, kScratch0, op.imm);
  return kScratch0;
}

void emit_Invalid(Emitter&, const Op&) {}
void emit_Nothing(Emitter&, const Op&) {}

// Of these the walk itself takes care.
void emit_GetGpr(Emitter&, const Op&) {}
void emit_Const(Emitter&, const Op&) {}
void emit_GuestAddress(Emitter&, const Op&) {}

void emit_GetVec(Emitter& e, const Op& op) {
  e.ops_[e.current_].where = Where::kHome;
  e.ops_[e.current_].reg = op.aux;
  e.vec_home_[op.aux] = e.current_;
  e.vec_touched_ = true;
}

void emit_SetGpr(Emitter& e, const Op& op) {
  const Op& v = e.ops_[op.a];
  if (v.where != Where::kHome || v.reg != op.aux) e.move_to_home(op.a, op.aux);
}

void emit_SetVec(Emitter& e, const Op& op) {
  auto& v = e.ops_[op.a];
  if (v.where == Where::kHome && v.reg == op.aux) return;
  const Vec from = e.use_vec(op.a);
  e.evict_vec_home(op.aux);
  e.a.vmov(true, vec_home(op.aux), from);
  e.vec_touched_ = true;
  e.vec_copy_[op.aux] = v.where == Where::kHome ? op.a : kNoValue;
  if (v.where == Where::kTemp && v.uses > 1) {
    e.vec_temp_[v.reg] = kNoValue;
    e.free_vec_ |= 1u << v.reg;
    v.where = Where::kHome;
    v.reg = op.aux;
    e.vec_home_[op.aux] = op.a;
  }
}

void emit_GetState(Emitter& e, const Op& op) {
  static constexpr MemOp kLoads[4] = {MemOp::LDRB, MemOp::LDRH, MemOp::LDR_W, MemOp::LDR_X};
  e.a.mem(kLoads[size_log2(op.width)], e.def(op), kState, static_cast<uint32_t>(op.imm));
}

void emit_SetState(Emitter& e, const Op& op) {
  e.a.mem(integer_store(op.width), e.use_or_zero(op.a), kState, static_cast<uint32_t>(op.imm));
}

void emit_GetStateVec(Emitter& e, const Op& op) {
  e.a.ldr_v(Size(size_log2(op.width)), e.def_vec(op), kState, static_cast<uint32_t>(op.imm));
}

void emit_SetStateVec(Emitter& e, const Op& op) {
  e.a.str_v(Size(size_log2(op.width)), e.use_vec(op.a), kState, static_cast<uint32_t>(op.imm));
}

void emit_Load(Emitter& e, const Op& op) {
  const uint8_t size = size_log2(op.width);
  if (!e.ordered()) {
    const Address where = place(e, op, size);
    access(e, integer_load(op), e.def(op), where);
    return;
  }
  if (by_barriers(e)) {
    const Address where = place(e, op, size);
    access(e, integer_load(op), e.def(op), where);
    e.a.dmb(a64::Barrier::ISHLD);
    return;
  }
  if (e.host.lrcpc2 && op.b == kNoValue && op.a != kNoValue && op.imm >= -256 && op.imm < 256) {
    const Gpr base = e.use(op.a);
    const Gpr d = e.def(op);
    e.fault_point();
    e.a.ldapur(Size(size), d, base, static_cast<int32_t>(op.imm));
    sign_extend_loaded(e, op, d);
    return;
  }
  const Gpr address = e.address(op);
  const Gpr d = e.def(op);
  e.fault_point();
  if (e.host.lrcpc) {
    e.a.ldapr(Size(size), d, address);
  } else {
    e.a.ldar(Size(size), d, address);
  }
  sign_extend_loaded(e, op, d);
}

void emit_LoadSigned(Emitter& e, const Op& op) { emit_Load(e, op); }

void emit_Store(Emitter& e, const Op& op) {
  const uint8_t size = size_log2(op.width);
  const Gpr value = e.use_or_zero(op.c);
  if (!e.ordered() || by_barriers(e)) {
    const Address where = place(e, op, size);
    if (e.ordered()) e.a.dmb(a64::Barrier::ISH);
    access(e, integer_store(op.width), value, where);
    return;
  }
  if (e.host.lrcpc2 && op.b == kNoValue && op.a != kNoValue && op.imm >= -256 && op.imm < 256) {
    const Gpr base = e.use(op.a);
    e.fault_point();
    e.a.stlur(Size(size), value, base, static_cast<int32_t>(op.imm));
    return;
  }
  const Gpr address = e.address(op);
  e.fault_point();
  e.a.stlr(Size(size), value, address);
}

void emit_LoadVec(Emitter& e, const Op& op) {
  const uint8_t size = size_log2(op.width);
  const Address where = place(e, op, size);
  static constexpr MemOp kLoads[5] = {MemOp::LDR_B, MemOp::LDR_H, MemOp::LDR_S, MemOp::LDR_D, MemOp::LDR_Q};
  access(e, kLoads[size], e.def_vec(op), where);
  if (op.aux2 != 0) e.go_back_by(op.aux2);
  if (e.ordered()) e.a.dmb(a64::Barrier::ISHLD);
}

void emit_StoreVec(Emitter& e, const Op& op) {
  const uint8_t size = size_log2(op.width);
  const Vec value = e.use_vec(op.c);
  const Address where = place(e, op, size);
  static constexpr MemOp kStores[5] = {MemOp::STR_B, MemOp::STR_H, MemOp::STR_S, MemOp::STR_D, MemOp::STR_Q};
  if (e.ordered()) e.a.dmb(a64::Barrier::ISH);
  access(e, kStores[size], value, where);
}

void emit_Prefetch(Emitter& e, const Op& op) {
  const Gpr address = e.address(op);
  e.a.prfm(op.aux2 != 0 ? a64::Prefetch::PSTL1KEEP : a64::Prefetch::PLDL1KEEP, address);
}

// PUSH and POP of 64 bits go in pairs where two follow each other: one access, one change of RSP. Should the pair
// fault, the guest starts again at the first of the two.
void emit_Push(Emitter& e, const Op& op) {
  constexpr unsigned kRsp = 4;
  const Gpr rsp = gpr_home(kRsp);
  const Gpr value = e.use_or_zero(op.a);
  const int32_t bytes = op.width / 8;
  if (e.ordered() || value == rsp) {
    // PUSH RSP stores the old value: the store must not write its own base.
    e.a.sub_imm(true, kScratch0, rsp, static_cast<uint32_t>(bytes));
    if (e.ordered() && by_barriers(e)) e.a.dmb(a64::Barrier::ISH);
    e.fault_point();
    if (e.ordered() && !by_barriers(e)) {
      e.a.stlr(Size(size_log2(op.width)), value, kScratch0);
    } else {
      e.a.mem(integer_store(op.width), value, kScratch0, 0);
    }
    e.shift_home(kRsp, -bytes);
    e.a.mov(true, rsp, kScratch0);
    return;
  }
  if (op.width == 64) {
    const uint16_t get = e.next_living(e.current_op());
    const uint16_t push = get != 0 ? e.next_living(get) : uint16_t{0};
    if (push != 0 && e.region.ops[get].code == Opcode::kGetGpr && e.region.ops[get].aux != kRsp &&
        e.region.ops[push].code == Opcode::kPush && e.region.ops[push].width == 64 && e.region.ops[push].a == get) {
      e.shift_home(kRsp, -16);
      e.fault_point();
      e.a.pair_pre(a64::PairOp::STP_X, gpr_home(e.region.ops[get].aux), value, rsp, -16);
      e.absorb(push);
      return;
    }
  }
  e.shift_home(kRsp, -bytes);
  e.fault_point();
  e.a.mem_pre(integer_store(op.width), value, rsp, -bytes);
}

void emit_Pop(Emitter& e, const Op& op) {
  constexpr unsigned kRsp = 4;
  const Gpr rsp = gpr_home(kRsp);
  const int32_t bytes = op.width / 8;
  if (e.ordered()) {
    e.shift_home(kRsp, bytes);
    const Gpr d = e.def(op);
    e.fault_point();
    e.a.ldar(Size(size_log2(op.width)), d, rsp);
    e.a.add_imm(true, rsp, rsp, static_cast<uint32_t>(bytes));
    return;
  }
  if (op.width == 64 && op.writes_home && op.home != kRsp) {
    const uint16_t pop = e.next_living(e.current_op());
    const Op& second = e.region.ops[pop];
    if (second.code == Opcode::kPop && second.width == 64 && second.home != 0xff && second.home != kRsp &&
        second.home != op.home) {
      const uint16_t first = e.current_;
      e.shift_home(kRsp, 16);
      const Gpr d = e.def(op);
      e.current_ = pop;
      const Gpr d2 = e.def(second);
      e.current_ = first;
      e.fault_point();
      e.a.pair_post(a64::PairOp::LDP_X, d, d2, rsp, 16);
      e.absorb(pop);
      return;
    }
  }
  e.shift_home(kRsp, bytes);
  const Gpr d = e.def(op);
  e.fault_point();
  e.a.mem_post(op.width == 64 ? MemOp::LDR_X : MemOp::LDRH, d, rsp, bytes);
}

void emit_Fence(Emitter& e, const Op& op) {
  switch (static_cast<ir::FenceKind>(op.aux)) {
    case ir::FenceKind::kLoad:
      e.a.dmb(a64::Barrier::ISHLD);
      break;
    case ir::FenceKind::kStore:
      e.a.dmb(a64::Barrier::ISHST);
      break;
    case ir::FenceKind::kFull:
      e.a.dmb(a64::Barrier::ISH);
      break;
  }
}

}  // namespace phybin::emit
