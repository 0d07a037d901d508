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

std::string flag_names(FlagMask mask) {
  static constexpr char kNames[] = "nzcvpa";
  std::string names;
  for (unsigned i = 0; i < 6; ++i) {
    if ((mask & (1u << i)) != 0) names += kNames[i];
  }
  return names;
}

}  // namespace

std::string print(const Region& region) {
  std::string text;
  for (const Block& block : region.blocks) {
    add(text, "block %#" PRIx64 "%s live_in=%s next=%#" PRIx64 "\n", block.address, block.is_entry ? " entry" : "",
        flag_names(block.live_in).c_str(), block.fallthrough);
    for (unsigned i = block.first; i < block.last; ++i) {
      const Op& op = region.ops[i];
      const OpcodeInfo& op_info = info(op.code);
      add(text, "  %c ", op.dead ? '-' : op.sunk ? 's' : ' ');
      if (op_info.result != ResultClass::kNone) add(text, "%%%u = ", i);
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
      if (op.flags_use != 0) add(text, " use=%s", flag_names(op.flags_use).c_str());
      if (op.flags_def != 0) add(text, " def=%s", flag_names(op.flags_def).c_str());
      if (op.flags_live != 0) add(text, " live=%s", flag_names(op.flags_live).c_str());
      if (op.home != 0xff) add(text, " home=%u", op.home);
      text += '\n';
    }
  }
  return text;
}

}  // namespace phybin::ir
