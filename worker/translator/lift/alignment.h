// Which addresses of a block are known to be multiples of 16, so that operands that must be aligned are checked once.
//
// An address is base + (index << scale) + disp. What counts of it modulo 16 is a residue of each register value: the
// value that it was computed from by adding constants, and the sum of those. So `[rax]`, `[rax+32]`, and `[rax]`
// again after `add rax, 16` are one fact, and whatever else writes RAX makes a value that no fact names.
//
// A loop of a single block is lifted twice where that pays: once for the way in, where nothing is known, and once for
// every further round, with what the first one has proved (translate.cpp). What is handed over is said in terms of
// guest registers. Since the second round knows more than the first one at its start, it proves at least as much
// until its end, so what it begins with holds for all rounds after it.
#pragma once

#include <cstdint>

#include "worker/translator/lift/lifter.h"

namespace phybin::lift {

class AlignmentFacts {
 public:
  // A fact at the end of a block: register `base` (or none, 0xff) + (register `index` << scale) + disp is a multiple
  // of 16.
  struct InRegisters {
    uint8_t base, index, scale, disp;
  };
  static constexpr unsigned kMost = 8;
  struct Carried {
    InRegisters facts[kMost];
    unsigned count = 0;
  };

  void forget() { count_ = 0; }
  bool is_empty() const { return count_ == 0; }
  // Whether an access to `m` is known to be aligned.
  bool knows(const ir::Builder& b, const Address& m) const;
  // An access to `m`, which comes next, goes on only if it is aligned.
  void note(const ir::Builder& b, const Address& m);

  // What of the facts is true of the guest registers as they are now.
  Carried carried(const ir::Builder& b) const;
  // At the start of a block: facts of the block before it.
  void begin(ir::Builder& b, const Carried& carried);

 private:
  struct Fact {
    ValueId base, index;  // kNoValue: none
    uint8_t scale, disp;  // disp modulo 16
  };
  static Fact fact_of(const ir::Builder& b, const Address& m);

  Fact facts_[kMost];
  unsigned count_ = 0;
};

}  // namespace phybin::lift
