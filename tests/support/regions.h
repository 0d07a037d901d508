// Regions that together cover a piece of x86_64 code, whether or not anything would ever execute it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/support/code_sections.h"
#include "worker/translator/translate.h"

namespace phybin::test {

// Input for the region at `pc`, with everything else as a worker on an ARMv8.0 machine has it.
inline TranslateInput region_input(const CodeSection& section, uint64_t pc) {
  TranslateInput input;
  input.pc = pc;
  input.window = {section.address, section.bytes.data(), section.bytes.size()};
  return input;
}

// The section's start is translated first, then always the first byte that no region has read yet. Calls
// visit(input, status, code) after each translation; a visit that returns false ends the walk.
template <typename Visit>
void for_each_region(const CodeSection& section, TranslateInput input, Visit visit) {
  std::vector<bool> covered(section.bytes.size());
  RegionCode code;
  for (std::size_t next = 0; next < covered.size(); ++next) {
    if (covered[next]) continue;
    input.pc = section.address + next;
    input.window = {section.address, section.bytes.data(), section.bytes.size()};
    const TranslateStatus status = translate(input, code);
    covered[next] = true;
    for (const GuestRange& range : code.guest_ranges) {
      const uint64_t first = range.start - section.address;
      const uint64_t last = std::min<uint64_t>(range.end - section.address, covered.size());
      std::fill(covered.begin() + static_cast<std::ptrdiff_t>(first),
                covered.begin() + static_cast<std::ptrdiff_t>(last), true);
    }
    if (!visit(input, status, code)) return;
  }
}

}  // namespace phybin::test
