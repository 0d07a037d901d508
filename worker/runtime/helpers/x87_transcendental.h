// The transcendental instructions of the x87, in integer arithmetic.
//
// Arguments outside the range that the SDM defines give what Intel's CPUs give where that is regular.
#pragma once

#include "worker/runtime/helpers/x87_float80.h"
#include "worker/runtime/helpers/x87_ops.h"

namespace phybin::runtime::x87 {

Float80 exp2_minus_1(Float80 x, Context& context);                  // F2XM1
Float80 y_log2(Float80 y, Float80 x, Context& context);             // FYL2X
Float80 y_log2_plus_1(Float80 y, Float80 x, Context& context);      // FYL2XP1
Float80 arctangent(Float80 y, Float80 x, Context& context);         // FPATAN
Float80 sine(Float80 x, Context& context);                          // FSIN
Float80 cosine(Float80 x, Context& context);                        // FCOS
Float80 sine_cosine(Float80 x, Float80& cosine, Context& context);  // FSINCOS: returns the sine
Float80 tangent(Float80 x, Float80& one, Context& context);         // FPTAN: returns the tangent

}  // namespace phybin::runtime::x87
