// Names of instruction operations: one enumerator for each, after Intel's mnemonic.
//
// An operation that exists in several sizes, operand forms or register classes (MMX and XMM) has one enumerator; the
// operands tell the form. Families that differ only in a condition code (Jcc, SETcc, CMOVcc, FCMOVcc) have one, too.
// The list itself is mnemonic_list.inc, from which both the enumeration and the names are made.
#pragma once

#include <cstdint>

namespace phybin::decode {

enum class Mnemonic : uint16_t {
  kInvalid = 0,
#define X(name) k##name,
#include "worker/translator/decode/mnemonic_list.inc"
#undef X
};

inline constexpr unsigned kMnemonicCount = 1
#define X(name) +1
#include "worker/translator/decode/mnemonic_list.inc"
#undef X
    ;

// The enumerator in lower case without its `k`: "add", "vaddps", "jcc", "invalid".
const char* mnemonic_name(Mnemonic mnemonic);

}  // namespace phybin::decode
