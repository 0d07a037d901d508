// See nan_windows.h.
#include "worker/translator/passes/nan_windows.h"

#include <algorithm>
#include <array>
#include <utility>

namespace phybin::passes {

using namespace ir;  // NOLINT: the pass is about nothing else

namespace {

// Values in a window that may need a register at its end, which has 13; with those that are in registers anyway.
constexpr unsigned kMostValues = 10;
// Instructions from the beginning of a window to a load in it.
constexpr int kFarthest = 60;
// ValueId is small, and the region grows.
constexpr std::size_t kMostOps = 60000;

enum Mark : uint8_t {
  // May hold another NaN than x86's, of this format.
  kInexactFloat = 1,
  kInexactDouble = 2,
  kInexact = kInexactFloat | kInexactDouble,
  kGone = 4,
  kBehind = 8,  // moves behind the check
};

bool is_arithmetic(Opcode code) {
  switch (code) {
    case Opcode::kFAdd:
    case Opcode::kFSub:
    case Opcode::kFMul:
    case Opcode::kFDiv:
    case Opcode::kFSqrt:
      return true;
    default:
      return false;
  }
}

// Moves of elements whose expansion is one instruction.
bool moves_elements(Opcode code) {
  switch (code) {
    case Opcode::kVecInsert:
    case Opcode::kVecElement:
    case Opcode::kVecDup:
    case Opcode::kVecMov:
    case Opcode::kVecZipLow:
    case Opcode::kVecZipHigh:
    case Opcode::kVecUnzipEven:
    case Opcode::kVecUnzipOdd:
      return true;
    default:
      return false;
  }
}

// Changes guest state, but cannot fault and uses no vector.
bool only_changes_state(const Op& op) {
  switch (op.code) {
    case Opcode::kSetGpr:
    case Opcode::kSetPf:
    case Opcode::kSetAf:
    case Opcode::kSetCarry:
    case Opcode::kSetNzcv:
    case Opcode::kBitTest:
    case Opcode::kMulOverflow:
      return true;
    default:
      return false;
  }
}

// Lanes are 32 bits wide, lane 0 is the lowest one.
uint8_t lanes(unsigned width) { return width == 128 ? 15 : width == 64 ? 3 : 1; }

// Of the lanes of a move's result, those that come from its operand a (and b): `result` says which lanes are asked
// about. Lanes that come from elsewhere, or that this does not know, are left out.
struct Lanes {
  uint8_t a = 0, b = 0;
};
Lanes sources(const Op& op, uint8_t result) {
  const unsigned per = op.aux == 3 ? 2 : 1;  // lanes of an element
  const unsigned elements = 4 / per;
  if ((op.aux != 2 && op.aux != 3) || op.width != 128) return {};
  Lanes out;
  const auto take = [&](uint8_t& from, unsigned to_element, unsigned from_element) {
    const uint8_t element = static_cast<uint8_t>((1u << per) - 1);
    if ((result >> (to_element * per) & element) == element)
      from = static_cast<uint8_t>(from | element << (from_element * per));
  };
  switch (op.code) {
    case Opcode::kVecInsert: {
      const auto into = static_cast<unsigned>(op.imm);
      for (unsigned i = 0; i < elements; ++i) {
        i == into ? take(out.b, i, op.aux2) : take(out.a, i, i);
      }
      break;
    }
    case Opcode::kVecElement:
      take(out.a, 0, static_cast<unsigned>(op.imm));
      break;
    case Opcode::kVecDup:
      for (unsigned i = 0; i < elements; ++i) take(out.a, i, static_cast<unsigned>(op.imm));
      break;
    case Opcode::kVecZipLow:
    case Opcode::kVecZipHigh: {
      const unsigned start = op.code == Opcode::kVecZipHigh ? elements / 2 : 0;
      for (unsigned i = 0; i < elements; ++i) take(i % 2 == 0 ? out.a : out.b, i, start + i / 2);
      break;
    }
    case Opcode::kVecUnzipEven:
    case Opcode::kVecUnzipOdd: {
      const unsigned odd = op.code == Opcode::kVecUnzipOdd ? 1 : 0;
      for (unsigned i = 0; i < elements; ++i) take(i < elements / 2 ? out.a : out.b, i, i % (elements / 2) * 2 + odd);
      break;
    }
    default:
      break;
  }
  return out;
}

class Pass {
 public:
  Pass(Region& region, NanWindowsMemory& memory) : region_(region), ops_(region.ops.data()), memory_(memory) {}

  void run() {
    const std::size_t count = region_.ops.size();
    memory_.marks.set_size(count);
    std::fill_n(memory_.marks.data(), count, uint8_t{0});
    memory_.covered.set_size(count);
    memory_.windows.clear();
    memory_.kept.clear();
    for (const Block& block : region_.blocks) scan(block);
    if (!memory_.windows.empty()) rebuild();
  }

 private:
  bool has(ValueId value, Mark mark) const { return (memory_.marks[value] & mark) != 0; }
  void set(ValueId value, Mark mark) { memory_.marks[value] |= mark; }
  // Of its operands; value 0 has no marks.
  unsigned inexact(const Op& op) const {
    return unsigned{memory_.marks[op.a]} | memory_.marks[op.b] | memory_.marks[op.c];
  }
  bool takes_inexact(const Op& op) const { return (inexact(op) & kInexact) != 0; }
  static unsigned inexact_of(const Op& op) { return op.aux == 3 ? kInexactDouble : kInexactFloat; }

  void scan(const Block& block) {
    block_ = &block;
    open_ = false;
    bound_ = block.first;
    steady_from_ = ops_[block.first].instruction;
    for (uint16_t i = block.first; i < block.last; ++i) look_at(i);
  }

  void look_at(uint16_t i) {
    const Op& op = ops_[i];
    const unsigned properties = traits(op.code);
    bool takes = open_ && takes_inexact(op);
    if (op.code == Opcode::kFFixNan) {
      if (!open_) open(i);
      ++fixes_;
      const ValueId raw = op.a;
      if (is_arithmetic(ops_[raw].code) && !ops_[raw].again) add(raw);
      add(i);
    } else if (op.code == Opcode::kSetVec || op.code == Opcode::kNothing) {
    } else if (is_arithmetic(op.code) || moves_elements(op.code)) {
      // What is a NaN in one format may be a number in another.
      const bool other_format = is_arithmetic(op.code) && (inexact(op) & kInexact & ~inexact_of(op)) != 0;
      if (open_ && (values_ >= kMostValues || other_format)) {
        close();
        takes = false;
      }
      if (takes) add(i);
    } else if (op.code == Opcode::kLoadVec) {
      if (open_ && (changed_ || values_ >= kMostValues || op.instruction - begin_ > kFarthest)) close();
      ++values_;
    } else if (only_changes_state(op)) {
      change(op);
    } else if ((properties & (kSideEffect | kCanFault | kStateBarrier | kClobbersTemps | kTerminator)) != 0) {
      close();
      change(op);
    } else {
      if (takes) close();
      if ((properties & kDefinesVec) != 0 && op.code != Opcode::kGetVec) ++values_;
      if (op.flags_def != 0 || op.writes_home) change(op);
    }
  }

  // Guest state but for vector registers changes with the instruction.
  void change(const Op& op) {
    changed_ = true;
    steady_from_ = static_cast<uint16_t>(op.instruction + 1);
  }

  void open(uint16_t i) {
    open_ = true;
    fixes_ = 0;
    values_ = 1;
    begin_ = ops_[i].instruction;
    changed_ = steady_from_ > begin_;
    may_extend_ = !changed_;
    steady_at_open_ = steady_from_;
    first_ = last_ = i;
    while (first_ > bound_ && ops_[first_ - 1].instruction == begin_) --first_;
  }

  // An operation that is part of the window.
  void add(uint16_t i) {
    Op& op = ops_[i];
    op.again = true;
    set(i, static_cast<Mark>(moves_elements(op.code) ? inexact(op) & kInexact : inexact_of(op)));
    last_ = std::max(last_, i);
    if (op.code != Opcode::kFFixNan && op.code != Opcode::kVecInsert) ++values_;
  }

  void close() {
    if (!open_) return;
    open_ = false;
    auto end = static_cast<uint16_t>(last_ + 1);
    while (ops_[end].code == Opcode::kSetVec || ops_[end].code == Opcode::kNothing) ++end;  // a terminator follows
    const bool extended = may_extend_ && extend_back(end);
    uint16_t last_load = 0;  // the last one behind the first instruction
    for (uint16_t i = first_; i < end; ++i) {
      if (ops_[i].code == Opcode::kLoadVec && ops_[i].instruction != begin_) last_load = i;
    }
    if (fixes_ == 1 && !extended && last_load == 0) {
      // Nothing is gained.
      for (uint16_t i = first_; i < end; ++i) ops_[i].again = false;
    } else {
      for (uint16_t i = first_; i <= last_load; ++i) {
        Op& op = ops_[i];
        if (op.code == Opcode::kLoadVec) op.aux2 = static_cast<uint8_t>(op.instruction - begin_);
      }
      arrange_writes(end, last_load);
      note_window(end);
    }
    for (uint16_t i = first_; i < end; ++i) memory_.marks[i] &= static_cast<uint8_t>(~kInexact);
    bound_ = end;
    steady_from_ = std::max(steady_from_, static_cast<uint16_t>(ops_[last_].instruction + 1));
  }

  // The window begins earlier if registers were loaded before it that it overwrites: they need not be written then.
  bool extend_back(uint16_t end) {
    unsigned written = 0, values = values_;
    for (uint16_t i = first_; i < end; ++i) {
      if (ops_[i].code == Opcode::kSetVec) written |= 1u << ops_[i].aux;
    }
    const uint16_t first = first_;
    bool writes = false;
    for (uint16_t i = first_; i > bound_;) {
      const Op& op = ops_[i - 1];
      const unsigned properties = traits(op.code);
      if (op.instruction < steady_at_open_ || ops_[end - 1].instruction - op.instruction > kFarthest) break;
      if (op.code == Opcode::kSetVec) {
        if ((written & 1u << op.aux) == 0) break;
        writes = true;
      } else if (op.code == Opcode::kLoadVec || (properties & kDefinesVec) != 0) {
        if (op.code != Opcode::kGetVec && op.code != Opcode::kVecInsert && ++values > kMostValues) break;
      } else if (op.code != Opcode::kNothing &&
                 ((properties & (kSideEffect | kCanFault | kStateBarrier | kClobbersTemps)) != 0 ||
                  op.flags_def != 0 || op.writes_home)) {
        break;
      }
      --i;
      if (writes && (i == bound_ || ops_[i - 1].instruction != op.instruction)) {
        first_ = i;
        writes = false;
      }
    }
    begin_ = ops_[first_].instruction;
    return first_ != first;
  }

  // Which writes of registers go, and which move behind the check: all that a load behind them or a NaN might show.
  void arrange_writes(uint16_t end, uint16_t last_load) {
    std::array<uint16_t, 16> write{};
    for (uint16_t i = first_; i < end; ++i) {
      const Op& op = ops_[i];
      if (op.code != Opcode::kSetVec) continue;
      if (const uint16_t earlier = write[op.aux]; earlier != 0) {
        const ValueId old = ops_[earlier].a;
        set(earlier, kGone);
        // A merge into what an earlier merge at the same place has made (vector_writes.cpp).
        Op& merge = ops_[op.a];
        const Op& earlier_merge = ops_[old];
        if (merge.a == old && merge.code == Opcode::kVecInsert && earlier_merge.code == Opcode::kVecInsert &&
            merge.imm == earlier_merge.imm && merge.aux == earlier_merge.aux) {
          merge.a = earlier_merge.a;
        }
        if (earlier_merge.code == Opcode::kVecInsert && old >= first_ && !is_read(old)) {
          ops_[old].again = false;
          set(old, kGone);
        }
      }
      write[op.aux] = i;
    }
    for (uint16_t i = first_; i < end; ++i) {
      const Op& op = ops_[i];
      if (op.code != Opcode::kSetVec || has(i, kGone) || (i > last_load && !has(op.a, kInexact))) continue;
      set(i, kBehind);
      // The merge of a scalar into its register is best made there, where the old register is not kept any more.
      if (Op& merge = ops_[op.a];
          merge.code == Opcode::kVecInsert && merge.again && op.a >= first_ && !is_computed_with(op.a, end)) {
        merge.again = false;
        set(op.a, kBehind);
      }
    }
  }

  bool is_read(ValueId value) const {
    for (unsigned i = value + 1u; i < block_->last; ++i) {
      if (reads(i, value)) return true;
    }
    return false;
  }
  // Whether something else than a write of a register reads the value before `end`.
  bool is_computed_with(ValueId value, uint16_t end) const {
    for (unsigned i = value + 1u; i < end; ++i) {
      if (ops_[i].code != Opcode::kSetVec && reads(i, value)) return true;
    }
    return false;
  }
  bool reads(unsigned i, ValueId value) const {
    const Op& op = ops_[i];
    return (op.a == value || op.b == value || op.c == value) && !has(static_cast<ValueId>(i), kGone);
  }

  // Which values have to be checked, and which kept.
  void note_window(uint16_t end) {
    uint8_t* const covered = memory_.covered.data();
    std::fill(covered + first_, covered + end, uint8_t{0});
    NanWindow window{first_, end, static_cast<uint16_t>(memory_.kept.size()), 0, 0};
    const auto keep = [&](ValueId value) {
      const ValueId* const kept = memory_.kept.data();
      if (std::find(kept + window.first_kept, kept + memory_.kept.size(), value) != kept + memory_.kept.size())
        return;
      memory_.kept.push_back(value);
      ++window.kept;
    };
    const auto cover = [&](ValueId value, unsigned mask) {
      if (value >= first_) covered[value] = static_cast<uint8_t>(covered[value] | mask);
    };
    for (uint16_t i = end; i-- > first_;) {
      const Op& op = ops_[i];
      if (!op.again) continue;
      if (moves_elements(op.code)) {
        const Lanes from = sources(op, covered[i]);
        cover(op.a, from.a);
        cover(op.b, from.b);
        continue;
      }
      const uint8_t all = lanes(op.width);
      if (op.code == Opcode::kFFixNan && (covered[i] & all) != all) {
        keep(i);
        covered[i] = all;
      }
      cover(op.a, covered[i] & all);
      if (op.code != Opcode::kFFixNan && op.b != kNoValue) cover(op.b, covered[i] & all);
    }
    window.checked = window.kept;
    for (uint16_t i = first_; i < end; ++i) {
      const Op& op = ops_[i];
      if (!op.again) continue;
      for (const ValueId value : {op.a, op.b, op.c}) {
        if (value != kNoValue && (value < first_ || !ops_[value].again)) keep(value);
      }
    }
    memory_.windows.push_back(window);
  }

  ValueId copy(uint16_t i) {
    Op op = ops_[i];
    op.a = memory_.renamed[op.a];
    op.b = memory_.renamed[op.b];
    op.c = memory_.renamed[op.c];
    const auto id = static_cast<ValueId>(memory_.ops.size());
    memory_.ops.push_back(op);
    return memory_.renamed[i] = id;
  }

  void end_window(const NanWindow& window, ValueId first) {
    constexpr unsigned kOperands = 3;
    Op check;
    check.code = Opcode::kFCheckNan;
    check.instruction = ops_[window.end - 1].instruction;
    check.imm = first;
    check.aux = static_cast<uint8_t>((window.kept + kOperands - 1) / kOperands);
    check.aux2 = window.checked;
    memory_.ops.push_back(check);
    for (unsigned k = 0; k < window.kept; k += kOperands) {
      const auto value = [&](unsigned n) {
        return k + n < window.kept ? memory_.renamed[memory_.kept[window.first_kept + k + n]] : kNoValue;
      };
      Op keep;
      keep.code = Opcode::kFKeep;
      keep.instruction = check.instruction;
      keep.a = value(0);
      keep.b = value(1);
      keep.c = value(2);
      memory_.ops.push_back(keep);
    }
    for (uint16_t i = window.first; i < window.end; ++i) {
      if (!has(i, kBehind)) continue;
      copy(i);
      memory_.ops.back().instruction = check.instruction;
    }
  }

  void rebuild() {
    memory_.ops.clear();
    memory_.renamed.set_size(region_.ops.size());
    memory_.renamed[0] = 0;
    memory_.ops.push_back(ops_[0]);
    const NanWindow* window = memory_.windows.data();
    const NanWindow* const last_window = window + memory_.windows.size();
    for (Block& block : region_.blocks) {
      const uint16_t first = block.first, last = block.last;
      block.first = static_cast<uint16_t>(memory_.ops.size());
      ValueId window_first = 0;
      for (uint16_t i = first; i < last; ++i) {
        if (window != last_window && i == window->first) window_first = static_cast<ValueId>(memory_.ops.size());
        if (!has(i, kGone) && !has(i, kBehind)) copy(i);
        if (window != last_window && i + 1 == window->end) end_window(*window++, window_first);
      }
      block.last = static_cast<uint16_t>(memory_.ops.size());
    }
    std::swap(region_.ops, memory_.ops);
  }

  Region& region_;
  Op* const ops_;
  NanWindowsMemory& memory_;
  const Block* block_ = nullptr;
  // The window that is open: its first instruction and operation, the last operation that is part of it.
  bool open_ = false;
  bool changed_ = false;     // guest state has changed since its beginning
  bool may_extend_ = false;  // guest state has not changed at its first instruction
  uint16_t begin_ = 0, first_ = 0, last_ = 0;
  unsigned fixes_ = 0, values_ = 0;
  uint16_t bound_ = 0;           // where the window before it ends
  uint16_t steady_from_ = 0;     // from this instruction on guest state has not changed but for vector registers
  uint16_t steady_at_open_ = 0;  // the same when the window was opened
};

}  // namespace

void gather_nan_checks(Region& region, NanWindowsMemory& memory) {
  if (!region.has_nan_checks || region.ops.size() > kMostOps) return;
  Pass(region, memory).run();
}

}  // namespace phybin::passes
