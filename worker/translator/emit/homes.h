// Where things live in A64 registers while translated code runs.
//
// Temporaries x0-x7 double as argument registers, so values reach helpers without moves. The guest registers r8-r15,
// PF, the shadow stack and the state pointer sit in registers that AAPCS64 callees keep, and light
// helpers are compiled such that they keep the eight others too (worker/CMakeLists.txt).
#pragma once

#include <cstdint>

namespace phybin::emit {

using HostReg = uint8_t;

inline constexpr unsigned kGuestGprs = 16;
// RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI in x8..x15; R8..R15 in x19..x26.
inline constexpr HostReg gpr_home(unsigned guest) { return static_cast<HostReg>(guest < 8 ? guest + 8 : guest + 11); }
// XMM0..XMM15 (the low 128 bits of YMM) in v0..v15.
inline constexpr HostReg vec_home(unsigned guest) { return static_cast<HostReg>(guest); }
inline constexpr HostReg kAfHome = 18;
inline constexpr HostReg kPfHome = 29;
inline constexpr HostReg kShadowStack = 27;
inline constexpr HostReg kState = 28;
inline constexpr HostReg kLink = 30;
// Free inside one operation's expansion, never holding a value across operations.
inline constexpr HostReg kScratch0 = 16;
inline constexpr HostReg kScratch1 = 17;
inline constexpr HostReg kScratch2 = 30;
// Allocatable integer temporaries: x0..x7. Allocatable vector temporaries: v16..v28; v29..v31 are scratch inside one
// operation's expansion.
inline constexpr unsigned kIntTemps = 8;
inline constexpr HostReg kFirstVecTemp = 16;
inline constexpr unsigned kVecTemps = 13;
inline constexpr uint32_t kAllIntTemps = (1u << kIntTemps) - 1;  // bit per host register
inline constexpr uint32_t kAllVecTemps = ((1u << kVecTemps) - 1) << kFirstVecTemp;
inline constexpr HostReg kVecScratch0 = 29, kVecScratch1 = 30, kVecScratch2 = 31;

}  // namespace phybin::emit
