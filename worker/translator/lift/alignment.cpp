// See alignment.h.
#include "worker/translator/lift/alignment.h"

namespace phybin::lift {

namespace {

constexpr uint8_t kNone = 0xff;

// value = root + addend modulo 16; without a root it is a constant.
struct Residue {
  ValueId root;
  uint64_t addend;
};

Residue residue_of(const ir::Builder& b, ValueId value) {
  constexpr unsigned kSteps = 16;
  uint64_t addend = 0;
  // The low four bits of sums are the same whatever the width and whatever is above.
  for (unsigned step = 0; step < kSteps && value != kNoValue; ++step) {
    const ir::Op& o = b.at(value);
    const auto imm = static_cast<uint64_t>(o.imm);
    switch (o.code) {
      case Opcode::kConst:
      case Opcode::kGuestAddress:
        return {kNoValue, addend + imm};
      case Opcode::kMov:
      case Opcode::kSignExtend:
        value = o.a;
        continue;
      case Opcode::kInc:
        ++addend;
        value = o.a;
        continue;
      case Opcode::kDec:
        --addend;
        value = o.a;
        continue;
      case Opcode::kAdd:
      case Opcode::kLea:
        if (o.b != kNoValue) return {value, addend};
        addend += imm;
        value = o.a;
        continue;
      case Opcode::kSub:
        if (o.b != kNoValue) return {value, addend};
        addend -= imm;
        value = o.a;
        continue;
      case Opcode::kAnd:
        if (o.b == kNoValue && (imm & 15) == 0) return {kNoValue, addend};
        return {value, addend};
      case Opcode::kShl:
        if (o.b == kNoValue && imm >= 4) return {kNoValue, addend};
        return {value, addend};
      default:
        return {value, addend};
    }
  }
  return {value, addend};
}

}  // namespace

AlignmentFacts::Fact AlignmentFacts::fact_of(const ir::Builder& b, const Address& m) {
  const Residue base = residue_of(b, m.base), index = residue_of(b, m.index);
  const auto disp =
      static_cast<uint8_t>((static_cast<uint64_t>(m.disp) + base.addend + (index.addend << m.scale)) & 15);
  Fact f{base.root, index.root, index.root != kNoValue ? m.scale : uint8_t{0}, disp};
  if (f.scale == 0 && f.base < f.index) {
    f.base = index.root;
    f.index = base.root;
  }
  return f;
}

bool AlignmentFacts::knows(const ir::Builder& b, const Address& m) const {
  const Fact f = fact_of(b, m);
  if (f.base == kNoValue && f.index == kNoValue) return f.disp == 0;
  for (unsigned i = 0; i < count_; ++i) {
    const Fact& known = facts_[i];
    if (known.base == f.base && known.index == f.index && known.scale == f.scale) return known.disp == f.disp;
  }
  return false;
}

void AlignmentFacts::note(const ir::Builder& b, const Address& m) {
  if (count_ < kMost) facts_[count_++] = fact_of(b, m);
}

AlignmentFacts::Carried AlignmentFacts::carried(const ir::Builder& b) const {
  Carried out;
  Residue residues[16];
  for (unsigned reg = 0; reg < 16; ++reg) residues[reg] = residue_of(b, b.known_gpr(reg));
  const auto register_of = [&](ValueId root) -> uint8_t {
    for (uint8_t reg = 0; reg < 16; ++reg) {
      if (residues[reg].root == root) return reg;
    }
    return kNone;
  };
  for (unsigned i = 0; i < count_; ++i) {
    const Fact& f = facts_[i];
    uint64_t disp = f.disp;
    uint8_t base = kNone, index = kNone;
    if (f.base != kNoValue) {
      base = register_of(f.base);
      if (base == kNone) continue;
      disp -= residues[base].addend;
    }
    if (f.index != kNoValue) {
      index = register_of(f.index);
      if (index == kNone) continue;
      disp -= residues[index].addend << f.scale;
    }
    out.facts[out.count++] = {base, index, f.scale, static_cast<uint8_t>(disp & 15)};
  }
  return out;
}

void AlignmentFacts::begin(ir::Builder& b, const Carried& carried) {
  count_ = 0;
  for (unsigned i = 0; i < carried.count; ++i) {
    const InRegisters& f = carried.facts[i];
    Address m;
    if (f.base != kNone) m.base = b.get_gpr(f.base);
    if (f.index != kNone) m.index = b.get_gpr(f.index);
    m.scale = f.scale;
    m.disp = f.disp;
    note(b, m);
  }
}

}  // namespace phybin::lift
