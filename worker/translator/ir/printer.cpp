// See printer.h.
#include "worker/translator/ir/printer.h"

#include <cinttypes>
#include <cstdio>

namespace phybin::ir {

namespace {

template <typename... Arguments>
void add(std::string& text, const char* format, Arguments... arguments) {
  char line[128];
  std::snprintf(line, sizeof line, format, arguments...);
  text += line;
}

void add_flags(std::string& text, const char* key, FlagMask mask) {
  static constexpr char kNames[] = "nzcvpa";
  if (mask == 0) return;
  text += key;
  for (unsigned i = 0; i < 6; ++i) {
    if ((mask & (1u << i)) != 0) text += kNames[i];
  }
}

void add_op(std::string& text, const Op& op, unsigned index) {
  const OpcodeInfo& op_info = info(op.code);
  add(text, "    %s", op.dead ? "- " : op.sunk ? "~ " : "  ");
  if (op_info.result != ResultClass::kNone) add(text, "%%%u = ", index);
  add(text, "%s.%u", op_info.name, op.width);
  const ValueId operands[3] = {op.a, op.b, op.c};
  for (unsigned k = 0; k < 3; ++k) {
    if (op_info.operands[k] == '-') continue;
    if (operands[k] == kNoValue) {
      text += " _";
    } else {
      add(text, " %%%u", operands[k]);
    }
  }
  if (op.imm != 0) add(text, " imm=%#" PRIx64, static_cast<uint64_t>(op.imm));
  if (op.aux != 0) add(text, " aux=%u", op.aux);
  if (op.aux2 != 0) add(text, " aux2=%u", op.aux2);
  if (op.again) text += " again=1";
  add_flags(text, " use=", op.flags_use);
  add_flags(text, " def=", op.flags_def);
  add_flags(text, " live=", op.flags_live);
  if (op.home != 0xff) add(text, op.writes_home ? " to=%u" : " home=%u", op.home);
  if (op.uses != 0) add(text, " uses=%u", op.uses);
  text += '\n';
}

}  // namespace

std::string print(const Region& region) {
  std::string text;
  add(text, "region %#" PRIx64 "\n", region.entry);
  unsigned instruction = 0;  // how many have been printed
  const auto add_instructions = [&](std::size_t end) {
    for (; instruction < end && instruction < region.instructions.size(); ++instruction) {
      const GuestInstruction& in = region.instructions[instruction];
      add(text, "  @%#" PRIx64 "+%u\n", in.address, in.length);
    }
  };
  for (const Block& block : region.blocks) {
    add(text, "block %#" PRIx64 "%s%s", block.address, block.is_entry ? " entry" : "",
        block.is_repeat ? " repeat" : "");
    add_flags(text, " live_in=", block.live_in);
    add(text, " next=%#" PRIx64 "\n", block.fallthrough);
    for (unsigned i = block.first; i < block.last; ++i) {
      add_instructions(std::size_t{region.ops[i].instruction} + 1);
      add_op(text, region.ops[i], i);
    }
  }
  add_instructions(region.instructions.size());
  return text;
}

}  // namespace phybin::ir
