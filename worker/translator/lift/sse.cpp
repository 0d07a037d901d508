// See sse.h.
#include "worker/translator/lift/sse.h"

#include "worker/translator/guest_state.h"
#include "worker/translator/lift/alignment.h"

namespace phybin::lift {

using decode::OperandKind;

namespace {

// The x87 state as runtime/helpers/x87_state.h lays it out: eight registers of 16 bytes, then control and status
// word, then TOP and the byte of occupied registers.
constexpr int64_t kX87 = offsetof(GuestState, x87);
constexpr int64_t kX87Exponent = 8;
constexpr int64_t kX87Top = 132;
constexpr int64_t kTopZeroAllOccupied = 0xff00;

int64_t mmx_offset(unsigned reg) { return kX87 + 16 * static_cast<int64_t>(reg); }

void set_state(Lifter& l, int64_t offset, uint8_t width, int64_t value) {
  l.b.op(Opcode::kSetState, width, l.b.constant(value), kNoValue, kNoValue, offset);
}

}  // namespace

ValueId read_mmx(Lifter& l, unsigned reg) {
  return l.b.op(Opcode::kGetStateVec, 64, kNoValue, kNoValue, kNoValue, mmx_offset(reg));
}

void enter_mmx(Lifter& l) { set_state(l, kX87 + kX87Top, 16, kTopZeroAllOccupied); }

void write_mmx(Lifter& l, unsigned reg, ValueId value) {
  l.b.op(Opcode::kSetStateVec, 64, value, kNoValue, kNoValue, mmx_offset(reg));
  set_state(l, mmx_offset(reg) + kX87Exponent, 16, 0xffff);
  enter_mmx(l);
}

// TOP becomes zero, too, which the manual does not say.
void lift_emms(Lifter& l) { set_state(l, kX87 + kX87Top, 16, 0); }

Address aligned_address(Lifter& l) {
  Address m = l.memory_address();
  if (!l.options.sse_check) return m;
  const bool is_known = l.alignment.knows(l.b, m);
  if (is_known && (m.index == kNoValue || (m.scale == 0 && m.disp == 0))) return m;  // an access can hold it all
  if (m.base == kNoValue || m.index != kNoValue || (m.disp & 15) != 0) {
    const ValueId sum = l.b.find(Opcode::kLea, m.base, m.index, m.disp, m.scale);
    if (sum == kNoValue && is_known) return m;
    if (!is_known) l.alignment.note(l.b, m);
    m.base = sum != kNoValue ? sum : l.address_value(m);
    m.index = kNoValue;
    m.scale = 0;
    m.disp = 0;
  } else {
    l.alignment.note(l.b, m);
  }
  const ValueId checked = l.b.find(Opcode::kAlignedAddress, m.base);
  if (checked != kNoValue) {
    m.base = checked;
  } else if (!is_known) {
    m.base = l.b.op(Opcode::kAlignedAddress, 64, m.base);
  }
  return m;
}

ValueId read_operand(Lifter& l, unsigned i) {
  const decode::Operand& o = l.operand(i);
  switch (o.kind) {
    case OperandKind::kMmx:
      return read_mmx(l, o.reg);
    case OperandKind::kMemory:
      return l.load_vec(o.size == 16 ? aligned_address(l) : l.memory_address(), l.width(i));
    default:
      return l.b.get_vec(o.reg);
  }
}

void write_operand(Lifter& l, unsigned i, ValueId value) {
  const decode::Operand& o = l.operand(i);
  switch (o.kind) {
    case OperandKind::kMmx:
      return write_mmx(l, o.reg, value);
    case OperandKind::kMemory:
      return l.store_vec(o.size == 16 ? aligned_address(l) : l.memory_address(), value, l.width(i));
    default:
      return l.b.set_vec(o.reg, value);
  }
}

namespace {

// Whether all bits of `value` above its low element are known to be zero.
bool is_zero_above(Lifter& l, ValueId value, uint8_t element) {
  const ir::Op& o = l.b.at(value);
  const unsigned bits = 8u << element;
  switch (o.code) {
    case Opcode::kVecZero:
      return true;
    case Opcode::kLoadVec:
    case Opcode::kVecMov:
    case Opcode::kVecFromInt:
      return o.width <= bits;
    case Opcode::kFAdd:
    case Opcode::kFSub:
    case Opcode::kFMul:
    case Opcode::kFDiv:
    case Opcode::kFSqrt:
    case Opcode::kFFixNan:
    case Opcode::kFRound:
      return o.width <= bits;
    case Opcode::kFMin:
    case Opcode::kFMax:
      return o.width <= bits && bits == 64;  // a bitwise selection of 64 bits
    case Opcode::kFFromInt:
      return o.aux <= element;
    case Opcode::kFConvert:
      return (o.aux ^ 1) <= element;
    default:
      return false;
  }
}

}  // namespace

ValueId read_scalar(Lifter& l, unsigned i, uint8_t element) {
  const ValueId value = read_operand(l, i);
  const ir::Op& o = l.b.at(value);
  const bool inserted = o.code == Opcode::kVecInsert && o.imm == 0 && o.aux == element && o.aux2 == 0;
  return inserted ? o.b : value;
}

void write_scalar(Lifter& l, ValueId value, uint8_t element) {
  const unsigned reg = l.operand(0).reg;
  const ValueId old = l.b.get_vec(reg);
  const bool is_whole = is_zero_above(l, old, element) && is_zero_above(l, value, element);
  l.b.set_vec(reg, is_whole ? value : vec(l, Opcode::kVecInsert, 128, element, old, value));
}

namespace {

// What is known of a number in one format says nothing of the same bits in another: the format is `element`.
bool is_from_integer(Lifter& l, ValueId value, uint8_t element) {
  const ir::Op& o = l.b.at(value);
  switch (o.code) {
    case Opcode::kFFromInt:
      return o.aux == element;
    case Opcode::kVecIntToFloat:
      return element == 2;
    case Opcode::kVecIntToDouble:
      return element == 3;
    default:
      return false;
  }
}

// A sum of squares, a square root: a number without sign, or a quiet NaN.
bool is_nonnegative(Lifter& l, ValueId value, uint8_t element, unsigned depth = 0) {
  constexpr unsigned kDepth = 4;
  const ir::Op& o = l.b.at(value);
  if (o.aux != element) return false;
  switch (o.code) {
    case Opcode::kFMul:
      return o.a == o.b;
    case Opcode::kFSqrt:
      return true;
    case Opcode::kFFixNan:
      return depth < kDepth && is_nonnegative(l, o.a, element, depth + 1);
    case Opcode::kFAdd:
      return depth < kDepth && is_nonnegative(l, o.a, element, depth + 1) &&
             is_nonnegative(l, o.b, element, depth + 1);
    default:
      return false;
  }
}

// A number times or plus itself is never invalid, nor is a sum or difference with a finite number, a sum of numbers
// without sign, or the square root of one. And of one NaN there is only one choice, or of two quiet ones.
bool has_x86_nan_anyway(Lifter& l, Opcode code, uint8_t element, ValueId a, ValueId b) {
  switch (code) {
    case Opcode::kFMul:
      return a == b;
    case Opcode::kFSqrt:
      return is_nonnegative(l, a, element);
    case Opcode::kFAdd:
      if (a == b || (is_nonnegative(l, a, element) && is_nonnegative(l, b, element))) return true;
      [[fallthrough]];
    case Opcode::kFSub:
      return is_from_integer(l, a, element) || is_from_integer(l, b, element);
    default:
      return false;
  }
}

}  // namespace

ValueId with_x86_nan(Lifter& l, uint8_t width, uint8_t element, ValueId result, ValueId a, ValueId b) {
  if (l.options.fast_math || has_x86_nan_anyway(l, l.b.at(result).code, element, a, b)) return result;
  return l.b.fix_nan(width, result, a, b, element);
}

}  // namespace phybin::lift
