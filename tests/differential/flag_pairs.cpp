// See flag_pairs.h. Registers for addresses are set aside as in random sequences, so memory operands stay inside the
// arena whatever is between. RCX is set aside, too: with CL known it is known what a shift leaves undefined.
#include "tests/differential/flag_pairs.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "tests/differential/compare.h"
#include "tests/differential/layout.h"

namespace phybin::difftest {
namespace {

// What reads flags: instructions that follow each other, the last one a reader. "adc:32" is that size only, "rcl:cl"
// the count in CL; else any encoding that there is.
constexpr std::string_view kReaders[] = {
    "seto",   "setno",   "setb",    "setae",    "sete",   "setne",  "setbe",  "seta",   "sets",   "setns",  "setp",
    "setnp",  "setl",    "setge",   "setle",    "setg",   "jo",     "jno",    "jb",     "jae",    "je",     "jne",
    "jbe",    "ja",      "js",      "jns",      "jp",     "jnp",    "jl",     "jge",    "jle",    "jg",     "cmovo",
    "cmovae", "cmove",   "cmovbe",  "cmovns",   "cmovp",  "cmovl",  "cmovg",  "cmovne", "cmova",  "cmovnp", "cmovge",
    "fcmovb", "fcmovne", "fcmovbe", "fcmovnbe", "fcmovu", "adc:8",  "adc:16", "adc:32", "adc:64", "sbb:8",  "sbb:16",
    "sbb:32", "sbb:64",  "rcl",     "rcr",      "rcl:cl", "rcr:cl", "lahf",   "pushfq", "pushfw", "loope",  "loopne",
};

// What writes some flags and keeps others, or may keep all: the reader after it gets a mixture.
constexpr std::string_view kPartialWriters[] = {
    "inc", "dec",    "bt",      "rol", "ror", "rcr", "rol:cl",    "shl:cl",
    "shr", "sar:cl", "shld:cl", "clc", "stc", "cmc", "cmpxchg8b", "sahf",
};
constexpr std::string_view kMixtureReaders[] = {"seta", "setg", "setp adc:32", "adc:32", "pushfq"};

// Between producer and consumer.
enum class Gap : uint8_t { kMove, kLea, kNot, kLoad, kStore, kJump, kIndirectJump, kBranch, kCount };

constexpr unsigned kAttempts = 8;  // to find operands with which nothing undefined is read

bool by_cl(const Form& form) { return form.name.ends_with("cl"); }

bool is_producer(const Form& form) {
  if ((form.flags_written & kStatusFlags) == 0) return false;
  switch (form.special) {
    case Special::kNone:
    case Special::kShift:
    case Special::kRotate:
    case Special::kRotateCarry:
    case Special::kDoubleShift:
    case Special::kBitMemory:
    case Special::kBitScan:
    case Special::kString:
    case Special::kStack:
    case Special::kCompareExchange:
    case Special::kCompareExchangePair:
    case Special::kX87:
      return true;
    default:
      return false;
  }
}

bool writes_rcx(const Instruction& instruction) {
  const std::string& name = instruction.form->mnemonic;
  return instruction.repeat != 0 || name.ends_with("pcmpestri") || name.ends_with("pcmpistri");
}

// Those that a word of the tables above stands for. One without any ends the program, which the tables are a part of.
const std::vector<const Form*>& forms_of(std::string_view word) {
  static std::map<std::string, std::vector<const Form*>, std::less<>> known;
  std::vector<const Form*>& result = known[std::string(word)];
  if (!result.empty()) return result;
  const std::string_view mnemonic = word.substr(0, word.find(':'));
  const std::string_view rest = word.size() > mnemonic.size() ? word.substr(mnemonic.size() + 1) : "";
  for (const Form& form : all_forms(Vendors::kAny)) {
    if (form.mnemonic != mnemonic || by_cl(form) != (rest == "cl") || form.special == Special::kBitMemory) continue;
    if (!rest.empty() && rest != "cl" && std::to_string(form.size * 8) != rest) continue;
    result.push_back(&form);
  }
  if (result.empty()) {
    std::fprintf(stderr, "difftest: flag pairs: there is no form %.*s\n", int(word.size()), word.data());
    std::exit(2);
  }
  return result;
}

struct Consumer {
  std::string name;
  std::vector<std::vector<const Form*>> steps;
};

const std::vector<Consumer>& all_consumers() {
  static const std::vector<Consumer> consumers = [] {
    std::vector<Consumer> result;
    auto add = [&](const std::string& words) {
      Consumer& consumer = result.emplace_back(Consumer{words, {}});
      for (size_t at = 0; at < words.size();) {
        const size_t end = std::min(words.find(' ', at), words.size());
        consumer.steps.push_back(forms_of(std::string_view(words).substr(at, end - at)));
        at = end + 1;
      }
    };
    for (std::string_view reader : kReaders) add(std::string(reader));
    for (std::string_view writer : kPartialWriters) {
      for (std::string_view reader : kMixtureReaders) add(std::string(writer) + " " + std::string(reader));
    }
    return result;
  }();
  return consumers;
}

class PairBuilder {
 public:
  explicit PairBuilder(Random& random);
  void add_producer(const FlagProducer& producer);
  void add_gap(Gap gap);
  void add_consumer(const Consumer& consumer);
  void add_overwriting() { add(make(pick(forms_of("cmp"))), units_++); }
  // False if what has been put together makes no sense.
  bool finish(Snippet& snippet);

 private:
  const Form& pick(const std::vector<const Form*>& forms) { return *forms[random_.below(uint32_t(forms.size()))]; }
  Instruction make(const Form& form);
  Instruction make_move(uint8_t opcode, bool memory);
  void add(Instruction instruction, int unit) {
    instruction.id = next_id();
    instruction.unit = unit;
    snippet_.code.push_back(instruction);
  }
  void add_marker(int unit);
  int next_id() const { return int(snippet_.code.size()); }

  Random& random_;
  RegisterPools pools_;
  Constraints current_;  // RSP moves
  Snippet snippet_;
  bool uses_cl_ = false;
  int units_ = 0;
  unsigned marker_;
};

PairBuilder::PairBuilder(Random& random) : random_(random) {
  uint16_t candidates = 0xff28;  // those that no instruction uses implicitly
  auto take = [&] {
    const int reg = pick_register(candidates, random_);
    candidates = uint16_t(candidates & ~(1 << reg));
    pools_.general = uint16_t(pools_.general & ~(1 << reg));
    return unsigned(reg);
  };
  pools_.general = uint16_t(0xffff & ~(1 << kRsp | 1 << kRcx));
  const unsigned base = take(), index = take();
  marker_ = take();
  pools_.base = uint16_t(1 << kRsp | 1 << base);
  pools_.index = uint16_t(1 << index);
  current_.fix(kRsp, ARENA_ADDRESS + ARENA_BYTES / 2);
  current_.fix(base, ARENA_ADDRESS + random_.below(ARENA_BYTES));
  current_.fix(index, random_.below(64));
  snippet_.constraints = current_;
}

Instruction PairBuilder::make(const Form& form) {
  uses_cl_ |= by_cl(form);
  Constraints constraints = current_;
  Instruction instruction = build_instruction(form, pools_, constraints, random_);
  if (form.special == Special::kStack) {
    const int bytes = form.operand_size_16 ? 2 : 8;
    current_.value[kRsp] += uint64_t(int64_t(form.mnemonic.starts_with("push") ? -bytes : bytes));
  }
  return instruction;
}

// lea marker, [marker + 64]: shows whether it was executed.
void PairBuilder::add_marker(int unit) {
  Instruction lea;
  lea.append(uint64_t(0x48 | (marker_ >= 8 ? 5 : 0)), 1);
  lea.append(0x8d, 1);
  lea.append(uint64_t(0x40 | (marker_ & 7) << 3 | (marker_ & 7)), 1);
  if ((marker_ & 7) == kRsp) lea.append(0x24, 1);
  lea.append(64, 1);
  add(lea, unit);
}

void PairBuilder::add_producer(const FlagProducer& producer) {
  snippet_.main = next_id();
  add(make(pick(producer.forms)), units_++);
}

Instruction PairBuilder::make_move(uint8_t opcode, bool memory) {
  for (;;) {
    const Form& form = pick(forms_of("mov"));
    if (form.opcode.back() != opcode) continue;
    Instruction instruction = make(form);
    if (instruction.has_memory == memory) return instruction;
  }
}

void PairBuilder::add_gap(Gap gap) {
  const int unit = units_++;
  switch (gap) {
    case Gap::kMove:
      add(make_move(0x8b, false), unit);
      break;
    case Gap::kLea:
      add(make(pick(forms_of("lea"))), unit);
      break;
    case Gap::kNot:
      add(make(pick(forms_of("not"))), unit);
      break;
    case Gap::kLoad:
      add(make_move(0x8b, true), unit);
      break;
    case Gap::kStore:
      add(make_move(0x89, true), unit);
      break;
    case Gap::kJump: {
      Instruction jump;
      jump.append(0xeb, 1);
      jump.branch_offset = 1;
      jump.branch_size = 1;
      jump.branch_target = next_id() + 2;
      jump.append(0, 1);
      add(jump, unit);
      add_marker(unit);
      break;
    }
    case Gap::kIndirectJump: {
      Instruction lea;  // lea marker, [rip + target]
      lea.append(uint64_t(0x48 | (marker_ >= 8 ? 4 : 0)), 1);
      lea.append(0x8d, 1);
      lea.append(uint64_t(5 | (marker_ & 7) << 3), 1);
      lea.rip_offset = int8_t(lea.length);
      lea.rip_label = next_id() + 3;
      lea.append(0, 4);
      add(lea, unit);
      Instruction jump;  // jmp marker
      if (marker_ >= 8) jump.append(0x41, 1);
      jump.append(0xff, 1);
      jump.append(uint64_t(0xe0 | (marker_ & 7)), 1);
      add(jump, unit);
      add_marker(unit);
      break;
    }
    case Gap::kBranch: {
      Instruction branch;  // jrcxz: reads no flags
      branch.append(0xe3, 1);
      branch.branch_offset = 1;
      branch.branch_size = 1;
      branch.branch_target = next_id() + 2;
      branch.append(0, 1);
      add(branch, unit);
      add_marker(unit);
      break;
    }
    case Gap::kCount:
      break;
  }
}

void PairBuilder::add_consumer(const Consumer& consumer) {
  for (const auto& forms : consumer.steps) {
    Instruction instruction = make(pick(forms));
    const int unit = units_++;
    const bool jump = instruction.branch_offset >= 0;
    if (jump) instruction.branch_target = next_id() + 2;
    add(instruction, unit);
    if (jump) add_marker(unit);
  }
}

bool PairBuilder::finish(Snippet& snippet) {
  const Instruction& producer = snippet_.code[size_t(snippet_.main)];
  if (uses_cl_) {
    if (writes_rcx(producer)) return false;
    const unsigned bits = producer.form->size * 8u;
    uint64_t count = 0;
    switch (random_.below(4)) {
      case 0:
        break;
      case 1:
        count = 1;
        break;
      case 2:
        count = random_.below(bits ? bits : 8);
        break;
      default:
        count = random_.below(256);
    }
    snippet_.constraints.fix(kRcx, count, 0xff);
  }
  snippet = std::move(snippet_);
  return true;
}

// Equal operands are rare otherwise.
void make_operands_equal(const Instruction& instruction, CaseRecord& state) {
  const Form& form = *instruction.form;
  if (form.special == Special::kX87) {
    std::memcpy(state.fx + 32 + 16 * instruction.reg, state.fx + 32, 10);
    return;
  }
  if (form.special != Special::kNone || form.operand_count != 2) return;
  const bool vector = form.operands[0].kind == 'V';
  if (instruction.reg < 0 || instruction.reg >= 16 || instruction.rm >= 16) return;
  const auto reg = size_t(instruction.reg);
  uint8_t* to = vector ? state.vector[reg] : reinterpret_cast<uint8_t*>(&state.gpr[reg]);
  for (size_t i = 0; i < form.operands[0].size; i++) {
    if (instruction.has_memory) {
      to[i] = state.pattern[(instruction.address + i) % PATTERN_BYTES];
    } else {
      const auto rm = size_t(instruction.rm);
      to[i] = (vector ? state.vector[rm] : reinterpret_cast<const uint8_t*>(&state.gpr[rm]))[i];
    }
  }
}

// So are those that do not compare.
void make_unordered(const Instruction& instruction, CaseRecord& state) {
  const Form& form = *instruction.form;
  if (form.special == Special::kX87) {
    std::memset(state.fx + 32, 0xff, 10);
  } else if (form.hint == Hint::kF32 || form.hint == Hint::kF64) {
    std::memset(state.vector[instruction.reg], 0xff, form.operands[1].size);
  }
}

}  // namespace

std::vector<FlagProducer> flag_producers(const std::vector<const Form*>& forms) {
  std::vector<FlagProducer> producers;
  for (const Form* form : forms) {
    if (!is_producer(*form)) continue;
    std::string name = form->mnemonic;
    if (form->size == 1 || form->size == 2) name += " narrow";
    if (by_cl(*form)) name += " cl";
    auto same = std::find_if(producers.begin(), producers.end(), [&](const auto& p) { return p.name == name; });
    if (same == producers.end()) same = producers.insert(same, {name, {}});
    same->forms.push_back(form);
  }
  return producers;
}

Unit flag_pair_unit(const FlagProducer& producer, unsigned count, const UnitOptions& options) {
  Unit unit;
  unit.name = "flags of " + producer.name;
  const uint64_t hash = hash_text(producer.name), turn = hash + options.seed;
  const std::vector<Consumer>& consumers = all_consumers();
  unit.snippets.reserve(consumers.size() * count);
  for (size_t i = 0; i < consumers.size(); i++) {
    const uint64_t consumer = hash_text(consumers[i].name);
    // The second case is the contrary of the first in both; the next two have overwritten what these have not.
    Random choice{options.seed, hash, consumer};
    const bool overwritten = choice.one_in(2), gap = choice.one_in(4);
    for (unsigned variant = 0; variant < count; variant++) {
      for (unsigned attempt = 0; attempt < kAttempts; attempt++) {
        Random random{options.seed, hash, consumer, variant, attempt};
        PairBuilder builder(random);
        builder.add_producer(producer);
        if (gap != (variant % 2 == 1)) builder.add_gap(Gap((turn + i + variant / 2) % uint64_t(Gap::kCount)));
        builder.add_consumer(consumers[i]);
        if (overwritten != ((variant + variant / 2) % 2 == 1)) builder.add_overwriting();
        Snippet snippet;
        if (!builder.finish(snippet)) continue;
        snippet.name = producer.name + " > " + consumers[i].name;
        Case item;
        item.state = make_state(snippet, options.state, random);
        const Instruction& main = snippet.code[size_t(snippet.main)];
        const unsigned outcome = random.below(4);
        if (outcome == 0) make_operands_equal(main, item.state);
        if (outcome == 1) make_unordered(main, item.state);
        if (flag_flow(snippet.code, int(item.state.gpr[kRcx] & 0xff)).reads_undefined) continue;
        unit.snippets.push_back(std::move(snippet));
        item.snippet = &unit.snippets.back();
        unit.cases.push_back(item);
        break;
      }
    }
  }
  return unit;
}

}  // namespace phybin::difftest
