// The printable names, made at compile time from the enumerators themselves so that they cannot disagree.
#include "worker/translator/decode/mnemonic.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace phybin::decode {
namespace {

constexpr std::size_t kLongestName = 23;
using Name = std::array<char, kLongestName + 1>;

consteval Name lower_case(std::string_view text) {
  Name name{};
  for (std::size_t i = 0; i < text.size(); ++i)
    name.at(i) = text[i] >= 'A' && text[i] <= 'Z' ? static_cast<char>(text[i] - 'A' + 'a') : text[i];
  return name;
}

constexpr std::array<Name, kMnemonicCount> kNames = {
    lower_case("Invalid"),
#define X(name) lower_case(#name),
#include "worker/translator/decode/mnemonic_list.inc"
#undef X
};

}  // namespace

const char* mnemonic_name(Mnemonic mnemonic) {
  return kNames[std::min<std::size_t>(static_cast<std::size_t>(mnemonic), kMnemonicCount - 1)].data();
}

}  // namespace phybin::decode
