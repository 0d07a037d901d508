// The translator's only door: guest bytes and options in, A64 code and tables out.
//
// Pure: no I/O, no globals, no host floating point; the same input gives the same output on every build host. The
// result is position-independent but for the LDR (literal) instructions listed in `slots`, whose displacement the
// owner of the code memory fills in before it publishes the code.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "worker/translator/emit/location.h"
#include "worker/translator/flat_array.h"
#include "worker/translator/host_features.h"
#include "worker/translator/ir/ir.h"

namespace phybin {

// Guest code that may be read: `bytes` holds the memory from guest address `start` on, `size` bytes.
struct CodeWindow {
  uint64_t start = 0;
  const uint8_t* bytes = nullptr;
  uint64_t size = 0;
};

struct TranslateInput {
  uint64_t pc = 0;
  // Mapped, executable guest memory around pc. Code outside is not looked at: a region ends there.
  CodeWindow window;
  CodeOptions options;
  HostFeatures host;
  unsigned prefetch_depth = 4;  // branches along a path that are followed ahead of execution
  unsigned max_instructions = 256;
  bool single_block = false;       // for code that changes often
  bool note_instructions = false;  // fill in RegionCode::starts (--trace-instruction)
  // Every block that takes no flags is an entry: who comes there later needs no translation of his own.
  bool enter_anywhere = false;
  // Whether there is code already that may be entered at `guest` and takes no flags: the region may end there. Null:
  // there is none. The output depends on the answers.
  bool (*is_known)(const void* context, uint64_t guest) = nullptr;
  const void* known_context = nullptr;
  // For code that is to run at a fixed distance from its module, wherever that is loaded: addresses that guest code
  // computes from RIP, and return addresses, are made with ADRP (RegionCode::address_uses). Needs `pc` and the window
  // at addresses that differ from the real ones by a multiple of 4096.
  bool relative_addresses = false;
  // For code whose owner knows where direct exits lead: they are single branches (RegionCode::exits), without slots.
  bool open_exits = false;
  // Measurement only: all flags are made canonical on the hot path of the region's exit (tests/bench).
  bool all_flags_at_exit = false;
};

// A use of a pair of slots, which lie at consecutive addresses: the word at `code_offset` is `ldr xN, <first slot>`
// or `adr xN, <pair>` with an empty displacement. The first slot links to code that takes no flags on entry, the
// second one to code that takes canonical flags (docs/design.md, "Flags at exits").
struct SlotUse {
  uint32_t code_offset;  // bytes
  uint16_t pair;         // index into RegionCode::slot_pairs
  bool is_adr;
};

struct SlotPair {
  uint64_t target;  // guest address
};

// With relative_addresses: the word at `code_offset` is `adrp xN` with an empty displacement, to become the page of
// `guest`; the instructions that follow add the rest of the address.
struct AddressUse {
  uint32_t code_offset;  // bytes
  uint64_t guest;
};

// With open_exits: the word at `hot` is B, or BL for a call, with an empty displacement. It may lead to code that
// takes no flags on entry; all else it reaches through the code at `cold`, which makes the flags canonical and ends
// in the word at `cold_branch`, a B with an empty displacement. x16, x17 and x30 are free there, but for x30 in
// calls.
struct OpenExit {
  uint32_t hot, cold, cold_branch;  // bytes
  uint64_t target;                  // guest address
};

struct RegionEntry {
  uint64_t guest;
  uint32_t code_offset;
  ir::FlagMask live_in;  // flags that must be canonical on entry; 0: none
};

struct GuestRange {
  uint64_t start, end;
};

// The code of a guest instruction begins at `code_offset` and ends where the next one begins.
struct InstructionStart {
  uint32_t code_offset;  // bytes
  uint16_t instruction;  // index into RegionCode::instructions
};

struct RegionCode {
  FlatArray<uint32_t> words;
  FlatArray<RegionEntry> entries;
  FlatArray<SlotUse> slots;
  FlatArray<SlotPair> slot_pairs;
  FlatArray<AddressUse> address_uses;
  FlatArray<OpenExit> exits;
  FlatArray<emit::LocationEntry> locations;  // ascending code_offset
  FlatArray<ir::GuestInstruction> instructions;
  FlatArray<GuestRange> guest_ranges;  // guest bytes that were read
  FlatArray<InstructionStart> starts;  // with note_instructions, ascending; what has no code is missing
  uint32_t cold_offset = 0;            // with note_instructions: where code out of line begins, bytes

  void clear();
  uint32_t body_words = 0;  // with all_flags_at_exit: words before the exit
};

enum class TranslateStatus : uint8_t {
  kOk,
  kNoCode,  // nothing readable at pc: the guest gets SIGSEGV
};

// A translator with its working memory, which is kept from one translation to the next. Each thread that translates
// has its own; results do not depend on what it translated before. `out` may be reused as well.
class Translator {
 public:
  Translator();
  ~Translator();
  Translator(const Translator&) = delete;
  Translator& operator=(const Translator&) = delete;

  TranslateStatus translate(const TranslateInput& input, RegionCode& out);

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

// The same with memory of its own.
TranslateStatus translate(const TranslateInput& input, RegionCode& out);

// The IR of the same region as text, for --trace-instruction and tests.
std::string translate_to_ir_text(const TranslateInput& input);

}  // namespace phybin
