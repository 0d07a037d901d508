// Addition, multiplication and comparison of ordinary x87 numbers: the operations that programs with long double spend
// their time in, so they are written by hand and called directly from translated code (emit/x87.cpp).
//
// The first two take x0 = significand, x1 = sign and exponent of one operand, x2 and x3 the same of the other, and x16 = the
// control block (translator/x87_interface.h), whose control word asks for 64 bits and rounding to nearest with PE masked.
// They return the result in x0, x1 and set C1 and PE in x16; or x0 = 0 and x16 unchanged where an operand or the result
// is not an ordinary number, which is then the C++ helper's business. They change x2-x5, x17 and NZCV besides.
//
// helpers/x87_float80.h has the same algorithms in C++ (add_common, multiply_common, round_common).

#include "worker/runtime/stub_offsets.h"

  .macro FUNCTION name
  .balign 16
  .global \name
  .type \name, %function
\name:
  .endm

// Goes to label 9 unless both operands have the integer bit and an exponent from 1 to 0x7ffe: the only others are those
// whose successor has none of bits 1 to 14. Leaves the exponents in w4 and w5.
  .macro CHECK_OPERANDS
  and x17, x0, x2
  tbz x17, #63, 9f
  and w4, w1, #0x7fff
  and w5, w3, #0x7fff
  add w17, w4, #1
  tst w17, #0x7ffe
  add w17, w5, #1
  and w17, w17, #0x7ffe
  ccmp w17, #0, #4, ne
  b.eq 9f
  .endm

// Rounds (x0:x2) to x0 and returns; w1 is complete but for a carry out of x0, which is left to the helper.
  .macro ROUND_AND_RETURN
  and x3, x0, #1
  mov x17, #0x7fffffffffffffff
  add x3, x3, x17
  cmn x2, x3                    // C: above one half, or one half and odd
  cset w4, cs
  adcs x0, x0, xzr
  b.cs 9f
  cmp x2, #0
  cset w3, ne
  bfi x16, x4, #X87_C1_BIT, #1
  orr x16, x16, x3, lsl #X87_PRECISION_BIT
  ret
  .endm

  .text

FUNCTION phybin_stub_x87_add
  CHECK_OPERANDS
  eor w17, w1, w3               // bit 15: the signs differ
  // (w4, x0) against (w5, x2): the larger magnitude to x0, its sign and exponent to w1, the other to x4.
  cmp x0, x2
  sbcs wzr, w4, w5
  sub w5, w4, w5
  cneg w5, w5, lo
  csel w1, w1, w3, hs
  csel x4, x2, x0, hs
  csel x0, x0, x2, hs
  cmp w5, #63
  b.hi 9f
  // (x4:x2) is the smaller operand aligned to the larger.
  lsl x2, x4, #1
  mvn w3, w5
  lsl x2, x2, x3
  lsr x4, x4, x5
  tbnz w17, #15, 3f
  adds x0, x0, x4
  b.cs 2f
1:
  add w3, w1, #2
  tst w3, #0x7ffe               // none: the exponent is 0x7ffe or 0x7fff
  b.eq 9f
  ROUND_AND_RETURN
2:
  and x3, x2, #1
  extr x2, x0, x2, #1
  orr x2, x2, x3
  lsr x0, x0, #1
  orr x0, x0, #0x8000000000000000
  add w1, w1, #1
  b 1b
3:
  negs x2, x2
  sbc x0, x0, x4
  tbnz x0, #63, 1b
  cbz x0, 9f
  clz x3, x0
  and w4, w1, #0x7fff
  cmp w4, w3
  b.ls 9f
  sub w1, w1, w3
  lsl x0, x0, x3
  mvn w4, w3
  lsr x5, x2, #1
  lsr x5, x5, x4
  orr x0, x0, x5
  lsl x2, x2, x3
  b 1b
9:
  mov x0, #0
  ret

FUNCTION phybin_stub_x87_multiply
  CHECK_OPERANDS
  eor w3, w1, w3
  add w1, w4, w5
  umulh x4, x0, x2
  mul x2, x0, x2
  // The product of two numbers from 1 to 2 may lie from 2 to 4.
  tst x4, x4
  extr x0, x4, x2, #63
  lsl x5, x2, #1
  csel x0, x4, x0, mi
  csel x2, x2, x5, mi
  cinc w1, w1, mi
  mov w17, #0x4000
  sub w1, w1, w17               // the biased exponent - 1
  mov w17, #0x7ffd
  cmp w1, w17
  b.hs 9f
  add w1, w1, #1
  and w3, w3, #0x8000
  orr w1, w1, w3
  ROUND_AND_RETURN
9:
  mov x0, #0
  ret

// (x0, w1) against (x2, w3), which may be zero here: x0 = 1, C = first >= second, Z = they are equal, N = V = 0; or x0 = 0
// for the helper. Changes the same registers, but not x16.
FUNCTION phybin_stub_x87_compare
  CHECK_OPERANDS
1:
  eor w17, w1, w3
  tbnz w17, #15, 4f
  cmp w1, w3
  b.ne 2f
  cmp x0, x2
2:
  // The sum of 1, or 2 if greater, and -1 if greater or equal has the flags wanted.
  mov w4, #1
  mov x0, #1
  tbnz w1, #15, 3f
  cinc w4, w4, hi
  csetm w5, hs
  cmn w4, w5
  ret
3:
  cinc w4, w4, lo
  csetm w5, ls
  cmn w4, w5
  ret
4:
  mov w4, #2
  mov x0, #1
  tbnz w1, #15, 5f
  cmp w4, #1
  ret
5:
  cmn w4, #0
  ret
9:
  // A zero loses its sign, so that it stands between negative and positive numbers.
  and w4, w1, #0x7fff
  orr x5, x0, x4
  cbnz x5, 6f
  mov w1, #0
  b 7f
6:
  tbz x0, #63, 8f
  add w4, w4, #1
  tst w4, #0x7ffe
  b.eq 8f
7:
  and w4, w3, #0x7fff
  orr x5, x2, x4
  cbz x5, 10f
  tbz x2, #63, 8f
  add w4, w4, #1
  tst w4, #0x7ffe
  b.eq 8f
  b 1b
10:
  mov w3, #0
  b 1b
8:
  mov x0, #0
  ret

  .section .note.GNU-stack, "", %progbits
