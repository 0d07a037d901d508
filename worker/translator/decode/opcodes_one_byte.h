// The one-byte opcode map of 64-bit mode (Intel SDM vol. 2, appendix A, table A-2), without x87.
// Prefixes, REX and the escapes to other maps are in opcode_table.cpp. What is not listed is #UD.
#pragma once

#include "worker/translator/decode/rule.h"

namespace phybin::decode {

using enum Mnemonic;

// The six forms of an ALU operation; its opcodes are hi0..hi5 or hi8..hiD.
#define PHYBIN_ALU_LOW(hi, name, lock)                                                                      \
  Rule(hi "0 /r" lock, name, "Eb Gb"), Rule(hi "1 /r" lock, name, "Ev Gv"), Rule(hi "2 /r", name, "Gb Eb"), \
      Rule(hi "3 /r", name, "Gv Ev"), Rule(hi "4", name, "AL bIb"), Rule(hi "5", name, "rAX Iz")
#define PHYBIN_ALU_HIGH(hi, name, lock)                                                                     \
  Rule(hi "8 /r" lock, name, "Eb Gb"), Rule(hi "9 /r" lock, name, "Ev Gv"), Rule(hi "A /r", name, "Gb Eb"), \
      Rule(hi "B /r", name, "Gv Ev"), Rule(hi "C", name, "AL bIb"), Rule(hi "D", name, "rAX Iz")
// A member of group 1, immediate operands.
#define PHYBIN_GROUP1(digit, name, lock)                                           \
  Rule("80 /" digit lock, name, "Eb bIb"), Rule("81 /" digit lock, name, "Ev Iz"), \
      Rule("83 /" digit lock, name, "Ev sIb")
// A member of group 2, shifts and rotates.
#define PHYBIN_GROUP2(digit, name)                                                                        \
  Rule("C0 /" digit, name, "Eb Ib"), Rule("C1 /" digit, name, "Ev Ib"), Rule("D0 /" digit, name, "Eb 1"), \
      Rule("D1 /" digit, name, "Ev 1"), Rule("D2 /" digit, name, "Eb CL"), Rule("D3 /" digit, name, "Ev CL")

inline constexpr Rule kOneByteRules[] = {
    PHYBIN_ALU_LOW("0", kAdd, " lock"),
    PHYBIN_ALU_HIGH("0", kOr, " lock"),
    PHYBIN_ALU_LOW("1", kAdc, " lock"),
    PHYBIN_ALU_HIGH("1", kSbb, " lock"),
    PHYBIN_ALU_LOW("2", kAnd, " lock"),
    PHYBIN_ALU_HIGH("2", kSub, " lock"),
    PHYBIN_ALU_LOW("3", kXor, " lock"),
    PHYBIN_ALU_HIGH("3", kCmp, ""),

    {"50+r d64", kPush, "Zv"},
    {"58+r d64", kPop, "Zv"},
    {"63 /r", kMovsxd, "Gv Ez"},
    {"68 d64", kPush, "Iz"},
    {"69 /r", kImul, "Gv Ev Iz"},
    {"6A d64", kPush, "sIb"},
    {"6B /r", kImul, "Gv Ev sIb"},
    {"6C opb", kIns, ""},
    {"6D opz", kIns, ""},
    {"6E opb", kOuts, ""},
    {"6F opz", kOuts, ""},
    {"70+cc f64", kJcc, "Jb"},

    PHYBIN_GROUP1("0", kAdd, " lock"),
    PHYBIN_GROUP1("1", kOr, " lock"),
    PHYBIN_GROUP1("2", kAdc, " lock"),
    PHYBIN_GROUP1("3", kSbb, " lock"),
    PHYBIN_GROUP1("4", kAnd, " lock"),
    PHYBIN_GROUP1("5", kSub, " lock"),
    PHYBIN_GROUP1("6", kXor, " lock"),
    PHYBIN_GROUP1("7", kCmp, ""),
    {"84 /r", kTest, "Eb Gb"},
    {"85 /r", kTest, "Ev Gv"},
    {"86 /r lock", kXchg, "Eb Gb"},
    {"87 /r lock", kXchg, "Ev Gv"},
    {"88 /r", kMov, "Eb Gb"},
    {"89 /r", kMov, "Ev Gv"},
    {"8A /r", kMov, "Gb Eb"},
    {"8B /r", kMov, "Gv Ev"},
    {"8C /0", kMov, "Evw Sw"},
    {"8C /1", kMov, "Evw Sw"},
    {"8C /2", kMov, "Evw Sw"},
    {"8C /3", kMov, "Evw Sw"},
    {"8C /4", kMov, "Evw Sw"},
    {"8C /5", kMov, "Evw Sw"},
    {"8D /r no-access", kLea, "Gv M"},
    {"8E /0", kMov, "Sw Ew"},
    {"8E /2", kMov, "Sw Ew"},
    {"8E /3", kMov, "Sw Ew"},
    {"8E /4", kMov, "Sw Ew"},
    {"8E /5", kMov, "Sw Ew"},
    {"8F /0 d64", kPop, "Ev"},

    {"F3 90", kPause, ""},
    {"REX.B0 90", kNop, ""},
    {"90+r", kXchg, "Zv rAX"},
    {"98 opv", kCbw, ""},
    {"99 opv", kCwd, ""},
    {"9B", kFwait, ""},
    {"9C d64", kPushf, ""},
    {"9D d64", kPopf, ""},
    {"9E", kSahf, ""},
    {"9F", kLahf, ""},
    {"A0", kMov, "AL Ob"},
    {"A1", kMov, "rAX Ov"},
    {"A2 opb", kMov, "Ob AL"},
    {"A3", kMov, "Ov rAX"},
    {"A4 opb", kMovs, ""},
    {"A5 opv", kMovs, ""},
    {"A6 opb", kCmps, ""},
    {"A7 opv", kCmps, ""},
    {"A8", kTest, "AL bIb"},
    {"A9", kTest, "rAX Iz"},
    {"AA opb", kStos, ""},
    {"AB opv", kStos, ""},
    {"AC opb", kLods, ""},
    {"AD opv", kLods, ""},
    {"AE opb", kScas, ""},
    {"AF opv", kScas, ""},
    {"B0+r", kMov, "Zb bIb"},
    {"B8+r", kMov, "Zv Iv"},

    PHYBIN_GROUP2("0", kRol),
    PHYBIN_GROUP2("1", kRor),
    PHYBIN_GROUP2("2", kRcl),
    PHYBIN_GROUP2("3", kRcr),
    PHYBIN_GROUP2("4", kShl),
    PHYBIN_GROUP2("5", kShr),
    PHYBIN_GROUP2("6", kShl),
    PHYBIN_GROUP2("7", kSar),
    {"C2 f64", kRet, "Iw"},
    {"C3 f64", kRet, ""},
    {"C6 /0", kMov, "Eb bIb"},
    {"C7 /0", kMov, "Ev Iz"},
    {"C8 d64", kEnter, "Iw Ib"},
    {"C9 d64", kLeave, ""},
    {"CA opv", kRetFar, "Iw"},
    {"CB opv", kRetFar, ""},
    {"CC", kInt3, ""},
    {"CD", kInt, "Ib"},
    {"CF opv", kIret, ""},
    {"D7", kXlat, ""},

    {"E0 f64", kLoopne, "Jb"},
    {"E1 f64", kLoope, "Jb"},
    {"E2 f64", kLoop, "Jb"},
    {"E3 f64", kJrcxz, "Jb"},
    {"E4", kIn, "AL Ib"},
    {"E5", kIn, "zAX Ib"},
    {"E6 opb", kOut, "Ib AL"},
    {"E7", kOut, "Ib zAX"},
    {"E8 f64", kCall, "Jz"},
    {"E9 f64", kJmp, "Jz"},
    {"EB f64", kJmp, "Jb"},
    {"EC", kIn, "AL DX"},
    {"ED", kIn, "zAX DX"},
    {"EE opb", kOut, "DX AL"},
    {"EF", kOut, "DX zAX"},
    {"F1", kInt1, ""},
    {"F4", kHlt, ""},
    {"F5", kCmc, ""},
    {"F6 /0", kTest, "Eb bIb"},
    {"F6 /1", kTest, "Eb bIb"},
    {"F6 /2 lock", kNot, "Eb"},
    {"F6 /3 lock", kNeg, "Eb"},
    {"F6 /4", kMul, "Eb"},
    {"F6 /5", kImul, "Eb"},
    {"F6 /6", kDiv, "Eb"},
    {"F6 /7", kIdiv, "Eb"},
    {"F7 /0", kTest, "Ev Iz"},
    {"F7 /1", kTest, "Ev Iz"},
    {"F7 /2 lock", kNot, "Ev"},
    {"F7 /3 lock", kNeg, "Ev"},
    {"F7 /4", kMul, "Ev"},
    {"F7 /5", kImul, "Ev"},
    {"F7 /6", kDiv, "Ev"},
    {"F7 /7", kIdiv, "Ev"},
    {"F8", kClc, ""},
    {"F9", kStc, ""},
    {"FA", kCli, ""},
    {"FB", kSti, ""},
    {"FC", kCld, ""},
    {"FD", kStd, ""},
    {"FE /0 lock", kInc, "Eb"},
    {"FE /1 lock", kDec, "Eb"},
    {"FF /0 lock", kInc, "Ev"},
    {"FF /1 lock", kDec, "Ev"},
    {"FF /2 f64", kCallIndirect, "Ev"},
    {"FF /3 opv", kCallFar, "M"},
    {"FF /4 f64", kJmpIndirect, "Ev"},
    {"FF /5 opv", kJmpFar, "M"},
    {"FF /6 d64", kPush, "Ev"},
};

#undef PHYBIN_ALU_LOW
#undef PHYBIN_ALU_HIGH
#undef PHYBIN_GROUP1
#undef PHYBIN_GROUP2

}  // namespace phybin::decode
