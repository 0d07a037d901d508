// The A64 assembler of the translator: a method per instruction form, each one OR of constants and operand fields
// that is inlined where it is used.
//
// Why not a general assembler library: those look every instruction up by its operands' kinds at run time, which
// costs more than the whole translation of a guest instruction may; here the form is chosen when the emitter is
// compiled. The forms are split by subject over a chain of base classes: labels and literals, integer, memory,
// floating point, vector.
//
// Conventions: integer forms take `bool is64` first; memory forms take a Size or a MemOp; scalar floating-point forms
// take the Size of the format; vector forms begin with v and take `bool q` (128 bits) and the Size of the element.
// Operands follow in the order of the assembler's text. Operands that do not fit their field are the caller's error;
// only branch distances are checked, because only they depend on the length of the code.
#pragma once

#include "worker/translator/emit/a64_vector.h"

namespace phybin::a64 {

class Assembler : public VectorForms {
 public:
  using VectorForms::VectorForms;
};

}  // namespace phybin::a64
