// The text form of a region's IR, for --trace-instruction and tests. reader.h reads it back.
//
//   region 0x401000
//   block 0x401000 entry next=0x401006
//     @0x401000+3
//       %1 = GetGpr.64 aux=1
//       %2 = Add.32 %1 _ imm=0x5 def=nzcv
//       SetGpr.64 %2
//     @0x401003+3
//       Jump.0 imm=0x401020
//
// A line `@address+length` opens a guest instruction, every other line is one operation: the value that it defines,
// the opcode and its width, the operands that the opcode has (`_`: absent), then what differs from 0: imm, aux, aux2,
// use (flags read), def (flags defined; n z c v p a). Once the passes have run, also again, live (flags that somebody
// reads afterwards), home, uses, and in front of the operation `-` if it is dead, `~` if it is sunk.
#pragma once

#include <string>

#include "worker/translator/ir/ir.h"

namespace phybin::ir {

std::string print(const Region& region);

}  // namespace phybin::ir
