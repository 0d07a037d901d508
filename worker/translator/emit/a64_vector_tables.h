// The vector forms, grouped by the shape of their operands; a64_vector.h makes methods of them, the unit test
// compares each with the GNU assembler. A line gives the method, the assembler's name, the word for `q` false and
// elements of one byte, and the element sizes that exist (a set of kSetB.. bits; a size D needs 128 bits).
#pragma once

#include <cstdint>

namespace phybin::a64 {

constexpr unsigned kSetB = 1, kSetH = 2, kSetS = 4, kSetD = 8;
constexpr unsigned kSetBHS = 7, kSetHS = 6, kSetBHSD = 15, kSetBH = 3;

// q, size, vd, vn, vm.
#define PHYBIN_A64_V_THREE_SAME(X)             \
  X(vshadd, "shadd", 0x0e200400, kSetBHS)      \
  X(vsqadd, "sqadd", 0x0e200c00, kSetBHSD)     \
  X(vsrhadd, "srhadd", 0x0e201400, kSetBHS)    \
  X(vshsub, "shsub", 0x0e202400, kSetBHS)      \
  X(vsqsub, "sqsub", 0x0e202c00, kSetBHSD)     \
  X(vcmgt, "cmgt", 0x0e203400, kSetBHSD)       \
  X(vcmge, "cmge", 0x0e203c00, kSetBHSD)       \
  X(vsshl, "sshl", 0x0e204400, kSetBHSD)       \
  X(vsqshl, "sqshl", 0x0e204c00, kSetBHSD)     \
  X(vsrshl, "srshl", 0x0e205400, kSetBHSD)     \
  X(vsqrshl, "sqrshl", 0x0e205c00, kSetBHSD)   \
  X(vsmax, "smax", 0x0e206400, kSetBHS)        \
  X(vsmin, "smin", 0x0e206c00, kSetBHS)        \
  X(vsabd, "sabd", 0x0e207400, kSetBHS)        \
  X(vsaba, "saba", 0x0e207c00, kSetBHS)        \
  X(vadd, "add", 0x0e208400, kSetBHSD)         \
  X(vcmtst, "cmtst", 0x0e208c00, kSetBHSD)     \
  X(vmla, "mla", 0x0e209400, kSetBHS)          \
  X(vmul, "mul", 0x0e209c00, kSetBHS)          \
  X(vsmaxp, "smaxp", 0x0e20a400, kSetBHS)      \
  X(vsminp, "sminp", 0x0e20ac00, kSetBHS)      \
  X(vsqdmulh, "sqdmulh", 0x0e20b400, kSetHS)   \
  X(vaddp, "addp", 0x0e20bc00, kSetBHSD)       \
  X(vuhadd, "uhadd", 0x2e200400, kSetBHS)      \
  X(vuqadd, "uqadd", 0x2e200c00, kSetBHSD)     \
  X(vurhadd, "urhadd", 0x2e201400, kSetBHS)    \
  X(vuhsub, "uhsub", 0x2e202400, kSetBHS)      \
  X(vuqsub, "uqsub", 0x2e202c00, kSetBHSD)     \
  X(vcmhi, "cmhi", 0x2e203400, kSetBHSD)       \
  X(vcmhs, "cmhs", 0x2e203c00, kSetBHSD)       \
  X(vushl, "ushl", 0x2e204400, kSetBHSD)       \
  X(vuqshl, "uqshl", 0x2e204c00, kSetBHSD)     \
  X(vurshl, "urshl", 0x2e205400, kSetBHSD)     \
  X(vuqrshl, "uqrshl", 0x2e205c00, kSetBHSD)   \
  X(vumax, "umax", 0x2e206400, kSetBHS)        \
  X(vumin, "umin", 0x2e206c00, kSetBHS)        \
  X(vuabd, "uabd", 0x2e207400, kSetBHS)        \
  X(vuaba, "uaba", 0x2e207c00, kSetBHS)        \
  X(vsub, "sub", 0x2e208400, kSetBHSD)         \
  X(vcmeq, "cmeq", 0x2e208c00, kSetBHSD)       \
  X(vmls, "mls", 0x2e209400, kSetBHS)          \
  X(vpmul, "pmul", 0x2e209c00, kSetB)          \
  X(vumaxp, "umaxp", 0x2e20a400, kSetBHS)      \
  X(vuminp, "uminp", 0x2e20ac00, kSetBHS)      \
  X(vsqrdmulh, "sqrdmulh", 0x2e20b400, kSetHS) \
  X(vuzp1, "uzp1", 0x0e001800, kSetBHSD)       \
  X(vtrn1, "trn1", 0x0e002800, kSetBHSD)       \
  X(vzip1, "zip1", 0x0e003800, kSetBHSD)       \
  X(vuzp2, "uzp2", 0x0e005800, kSetBHSD)       \
  X(vtrn2, "trn2", 0x0e006800, kSetBHSD)       \
  X(vzip2, "zip2", 0x0e007800, kSetBHSD)

// Bitwise, so without an element size. q, vd, vn, vm.
#define PHYBIN_A64_V_LOGICAL(X) \
  X(vand, "and", 0x0e201c00)    \
  X(vbic, "bic", 0x0e601c00)    \
  X(vorr, "orr", 0x0ea01c00)    \
  X(vorn, "orn", 0x0ee01c00)    \
  X(veor, "eor", 0x2e201c00)    \
  X(vbsl, "bsl", 0x2e601c00)    \
  X(vbit, "bit", 0x2ea01c00)    \
  X(vbif, "bif", 0x2ee01c00)

// Floating point, S and D. q, size, vd, vn, vm.
#define PHYBIN_A64_V_FP_THREE_SAME(X) \
  X(vfmla, "fmla", 0x0e20cc00)        \
  X(vfmls, "fmls", 0x0ea0cc00)        \
  X(vfadd, "fadd", 0x0e20d400)        \
  X(vfsub, "fsub", 0x0ea0d400)        \
  X(vfmulx, "fmulx", 0x0e20dc00)      \
  X(vfmul, "fmul", 0x2e20dc00)        \
  X(vfdiv, "fdiv", 0x2e20fc00)        \
  X(vfabd, "fabd", 0x2ea0d400)        \
  X(vfaddp, "faddp", 0x2e20d400)      \
  X(vfmax, "fmax", 0x0e20f400)        \
  X(vfmin, "fmin", 0x0ea0f400)        \
  X(vfmaxnm, "fmaxnm", 0x0e20c400)    \
  X(vfminnm, "fminnm", 0x0ea0c400)    \
  X(vfmaxp, "fmaxp", 0x2e20f400)      \
  X(vfminp, "fminp", 0x2ea0f400)      \
  X(vfmaxnmp, "fmaxnmp", 0x2e20c400)  \
  X(vfminnmp, "fminnmp", 0x2ea0c400)  \
  X(vfcmeq, "fcmeq", 0x0e20e400)      \
  X(vfcmge, "fcmge", 0x2e20e400)      \
  X(vfcmgt, "fcmgt", 0x2ea0e400)      \
  X(vfacge, "facge", 0x2e20ec00)      \
  X(vfacgt, "facgt", 0x2ea0ec00)      \
  X(vfrecps, "frecps", 0x0e20fc00)    \
  X(vfrsqrts, "frsqrts", 0x0ea0fc00)

// q, size, vd, vn.
#define PHYBIN_A64_V_TWO_REG(X)              \
  X(vrev64, "rev64", 0x0e200800, kSetBHS)    \
  X(vrev16, "rev16", 0x0e201800, kSetB)      \
  X(vrev32, "rev32", 0x2e200800, kSetBH)     \
  X(vsuqadd, "suqadd", 0x0e203800, kSetBHSD) \
  X(vusqadd, "usqadd", 0x2e203800, kSetBHSD) \
  X(vcls, "cls", 0x0e204800, kSetBHS)        \
  X(vclz, "clz", 0x2e204800, kSetBHS)        \
  X(vcnt, "cnt", 0x0e205800, kSetB)          \
  X(vsqabs, "sqabs", 0x0e207800, kSetBHSD)   \
  X(vsqneg, "sqneg", 0x2e207800, kSetBHSD)   \
  X(vabs, "abs", 0x0e20b800, kSetBHSD)       \
  X(vneg, "neg", 0x2e20b800, kSetBHSD)

// Bitwise or on bytes. q, vd, vn.
#define PHYBIN_A64_V_TWO_REG_BYTES(X) \
  X(vnot, "not", 0x2e205800)          \
  X(vrbit, "rbit", 0x2e605800)

// Comparison with zero. q, size, vd, vn.
#define PHYBIN_A64_V_COMPARE_ZERO(X) \
  X(vcmgt_zero, "cmgt", 0x0e208800)  \
  X(vcmge_zero, "cmge", 0x2e208800)  \
  X(vcmeq_zero, "cmeq", 0x0e209800)  \
  X(vcmle_zero, "cmle", 0x2e209800)  \
  X(vcmlt_zero, "cmlt", 0x0e20a800)
#define PHYBIN_A64_V_FP_COMPARE_ZERO(X) \
  X(vfcmgt_zero, "fcmgt", 0x0ea0c800)   \
  X(vfcmge_zero, "fcmge", 0x2ea0c800)   \
  X(vfcmeq_zero, "fcmeq", 0x0ea0d800)   \
  X(vfcmle_zero, "fcmle", 0x2ea0d800)   \
  X(vfcmlt_zero, "fcmlt", 0x0ea0e800)

// Pairs of neighbours added to elements of twice the size. q, size of the source, vd, vn.
#define PHYBIN_A64_V_PAIR_LONG(X)  \
  X(vsaddlp, "saddlp", 0x0e202800) \
  X(vuaddlp, "uaddlp", 0x2e202800) \
  X(vsadalp, "sadalp", 0x0e206800) \
  X(vuadalp, "uadalp", 0x2e206800)

// Floating point, S and D. q, size, vd, vn.
#define PHYBIN_A64_V_FP_TWO_REG(X)     \
  X(vfabs, "fabs", 0x0ea0f800)         \
  X(vfneg, "fneg", 0x2ea0f800)         \
  X(vfsqrt, "fsqrt", 0x2ea1f800)       \
  X(vfrintn, "frintn", 0x0e218800)     \
  X(vfrintm, "frintm", 0x0e219800)     \
  X(vfrintp, "frintp", 0x0ea18800)     \
  X(vfrintz, "frintz", 0x0ea19800)     \
  X(vfrinta, "frinta", 0x2e218800)     \
  X(vfrintx, "frintx", 0x2e219800)     \
  X(vfrinti, "frinti", 0x2ea19800)     \
  X(vfrint32z, "frint32z", 0x0e21e800) \
  X(vfrint32x, "frint32x", 0x2e21e800) \
  X(vfrint64z, "frint64z", 0x0e21f800) \
  X(vfrint64x, "frint64x", 0x2e21f800) \
  X(vfcvtns, "fcvtns", 0x0e21a800)     \
  X(vfcvtms, "fcvtms", 0x0e21b800)     \
  X(vfcvtas, "fcvtas", 0x0e21c800)     \
  X(vfcvtps, "fcvtps", 0x0ea1a800)     \
  X(vfcvtzs, "fcvtzs", 0x0ea1b800)     \
  X(vfcvtnu, "fcvtnu", 0x2e21a800)     \
  X(vfcvtmu, "fcvtmu", 0x2e21b800)     \
  X(vfcvtau, "fcvtau", 0x2e21c800)     \
  X(vfcvtpu, "fcvtpu", 0x2ea1a800)     \
  X(vfcvtzu, "fcvtzu", 0x2ea1b800)     \
  X(vscvtf, "scvtf", 0x0e21d800)       \
  X(vucvtf, "ucvtf", 0x2e21d800)       \
  X(vfrecpe, "frecpe", 0x0ea1d800)     \
  X(vfrsqrte, "frsqrte", 0x2ea1d800)

// Narrowing to `size` (B to S); q writes the upper half and keeps the lower one (XTN2 and so on). q, size, vd, vn.
#define PHYBIN_A64_V_NARROW(X)     \
  X(vxtn, "xtn", 0x0e212800)       \
  X(vsqxtun, "sqxtun", 0x2e212800) \
  X(vsqxtn, "sqxtn", 0x0e214800)   \
  X(vuqxtn, "uqxtn", 0x2e214800)

// Twice the size from two sources of `size`; q takes the upper halves. q, size, vd, vn, vm.
#define PHYBIN_A64_V_LONG(X)                    \
  X(vsaddl, "saddl", 0x0e200000, kSetBHS)       \
  X(vssubl, "ssubl", 0x0e202000, kSetBHS)       \
  X(vsabal, "sabal", 0x0e205000, kSetBHS)       \
  X(vsabdl, "sabdl", 0x0e207000, kSetBHS)       \
  X(vsmlal, "smlal", 0x0e208000, kSetBHS)       \
  X(vsqdmlal, "sqdmlal", 0x0e209000, kSetHS)    \
  X(vsmlsl, "smlsl", 0x0e20a000, kSetBHS)       \
  X(vsmull, "smull", 0x0e20c000, kSetBHS)       \
  X(vsqdmull, "sqdmull", 0x0e20d000, kSetHS)    \
  X(vpmull, "pmull", 0x0e20e000, kSetB | kSetD) \
  X(vuaddl, "uaddl", 0x2e200000, kSetBHS)       \
  X(vusubl, "usubl", 0x2e202000, kSetBHS)       \
  X(vuabal, "uabal", 0x2e205000, kSetBHS)       \
  X(vuabdl, "uabdl", 0x2e207000, kSetBHS)       \
  X(vumlal, "umlal", 0x2e208000, kSetBHS)       \
  X(vumlsl, "umlsl", 0x2e20a000, kSetBHS)       \
  X(vumull, "umull", 0x2e20c000, kSetBHS)

// First source already wide: q, size of the second, vd, vn, vm.
#define PHYBIN_A64_V_WIDE(X)     \
  X(vsaddw, "saddw", 0x0e201000) \
  X(vssubw, "ssubw", 0x0e203000) \
  X(vuaddw, "uaddw", 0x2e201000) \
  X(vusubw, "usubw", 0x2e203000)

// Upper halves of sums and differences: q, size of the result, vd, vn, vm.
#define PHYBIN_A64_V_HIGH_NARROW(X) \
  X(vaddhn, "addhn", 0x0e204000)    \
  X(vsubhn, "subhn", 0x0e206000)    \
  X(vraddhn, "raddhn", 0x2e204000)  \
  X(vrsubhn, "rsubhn", 0x2e206000)

// Over all lanes; ..lv gives a result of twice the size. q, size, vd, vn. Elements of 4 bytes need q.
#define PHYBIN_A64_V_ACROSS(X)   \
  X(vsmaxv, "smaxv", 0x0e30a800) \
  X(vsminv, "sminv", 0x0e31a800) \
  X(vaddv, "addv", 0x0e31b800)   \
  X(vumaxv, "umaxv", 0x2e30a800) \
  X(vuminv, "uminv", 0x2e31a800)
#define PHYBIN_A64_V_ACROSS_LONG(X) \
  X(vsaddlv, "saddlv", 0x0e303800)  \
  X(vuaddlv, "uaddlv", 0x2e303800)
// Four floats. vd, vn.
#define PHYBIN_A64_V_FP_ACROSS(X)    \
  X(vfmaxnmv, "fmaxnmv", 0x6e30c800) \
  X(vfminnmv, "fminnmv", 0x6eb0c800) \
  X(vfmaxv, "fmaxv", 0x6e30f800)     \
  X(vfminv, "fminv", 0x6eb0f800)

// Shifts by a constant. q, size, vd, vn, amount: left 0 to size - 1, right 1 to size in bits.
#define PHYBIN_A64_V_SHIFT_LEFT(X)   \
  X(vshl, "shl", 0x0f005400)         \
  X(vsli, "sli", 0x2f005400)         \
  X(vsqshl_imm, "sqshl", 0x0f007400) \
  X(vuqshl_imm, "uqshl", 0x2f007400) \
  X(vsqshlu, "sqshlu", 0x2f006400)
#define PHYBIN_A64_V_SHIFT_RIGHT(X) \
  X(vsshr, "sshr", 0x0f000400)      \
  X(vssra, "ssra", 0x0f001400)      \
  X(vsrshr, "srshr", 0x0f002400)    \
  X(vsrsra, "srsra", 0x0f003400)    \
  X(vushr, "ushr", 0x2f000400)      \
  X(vusra, "usra", 0x2f001400)      \
  X(vurshr, "urshr", 0x2f002400)    \
  X(vursra, "ursra", 0x2f003400)    \
  X(vsri, "sri", 0x2f004400)

// Right and narrowed to `size`; q writes the upper half. q, size, vd, vn, amount.
#define PHYBIN_A64_V_SHIFT_NARROW(X)   \
  X(vshrn, "shrn", 0x0f008400)         \
  X(vrshrn, "rshrn", 0x0f008c00)       \
  X(vsqshrn, "sqshrn", 0x0f009400)     \
  X(vsqrshrn, "sqrshrn", 0x0f009c00)   \
  X(vsqshrun, "sqshrun", 0x2f008400)   \
  X(vsqrshrun, "sqrshrun", 0x2f008c00) \
  X(vuqshrn, "uqshrn", 0x2f009400)     \
  X(vuqrshrn, "uqrshrn", 0x2f009c00)

// Left and widened from `size`; q takes the upper half. q, size, vd, vn, amount.
#define PHYBIN_A64_V_SHIFT_LONG(X) \
  X(vsshll, "sshll", 0x0f00a400)   \
  X(vushll, "ushll", 0x2f00a400)

// Scalar forms in vector registers, the rest of vd cleared: size, vd, vn, vm. Elements: all sizes, D alone, S and D.
#define PHYBIN_A64_SCALAR_THREE(X)               \
  X(sqadd_scalar, "sqadd", 0x5e200c00, kSetBHSD) \
  X(sqsub_scalar, "sqsub", 0x5e202c00, kSetBHSD) \
  X(uqadd_scalar, "uqadd", 0x7e200c00, kSetBHSD) \
  X(uqsub_scalar, "uqsub", 0x7e202c00, kSetBHSD) \
  X(cmgt_scalar, "cmgt", 0x5e203400, kSetD)      \
  X(cmge_scalar, "cmge", 0x5e203c00, kSetD)      \
  X(sshl_scalar, "sshl", 0x5e204400, kSetD)      \
  X(add_scalar, "add", 0x5e208400, kSetD)        \
  X(cmtst_scalar, "cmtst", 0x5e208c00, kSetD)    \
  X(cmhi_scalar, "cmhi", 0x7e203400, kSetD)      \
  X(cmhs_scalar, "cmhs", 0x7e203c00, kSetD)      \
  X(ushl_scalar, "ushl", 0x7e204400, kSetD)      \
  X(sub_scalar, "sub", 0x7e208400, kSetD)        \
  X(cmeq_scalar, "cmeq", 0x7e208c00, kSetD)

// Floating point, S and D. size, vd, vn, vm.
#define PHYBIN_A64_SCALAR_FP_THREE(X)    \
  X(fmulx_scalar, "fmulx", 0x5e20dc00)   \
  X(fcmeq_scalar, "fcmeq", 0x5e20e400)   \
  X(fcmge_scalar, "fcmge", 0x7e20e400)   \
  X(fcmgt_scalar, "fcmgt", 0x7ea0e400)   \
  X(facge_scalar, "facge", 0x7e20ec00)   \
  X(facgt_scalar, "facgt", 0x7ea0ec00)   \
  X(fabd_scalar, "fabd", 0x7ea0d400)     \
  X(frecps_scalar, "frecps", 0x5e20fc00) \
  X(frsqrts_scalar, "frsqrts", 0x5ea0fc00)

// Conversions and estimates within vector registers, S and D. size, vd, vn.
#define PHYBIN_A64_SCALAR_FP_TWO(X)      \
  X(scvtf_scalar, "scvtf", 0x5e21d800)   \
  X(ucvtf_scalar, "ucvtf", 0x7e21d800)   \
  X(fcvtns_scalar, "fcvtns", 0x5e21a800) \
  X(fcvtms_scalar, "fcvtms", 0x5e21b800) \
  X(fcvtas_scalar, "fcvtas", 0x5e21c800) \
  X(fcvtps_scalar, "fcvtps", 0x5ea1a800) \
  X(fcvtzs_scalar, "fcvtzs", 0x5ea1b800) \
  X(fcvtnu_scalar, "fcvtnu", 0x7e21a800) \
  X(fcvtzu_scalar, "fcvtzu", 0x7ea1b800) \
  X(frecpe_scalar, "frecpe", 0x5ea1d800) \
  X(frsqrte_scalar, "frsqrte", 0x7ea1d800)

// Two elements of S or D to one. size, vd, vn.
#define PHYBIN_A64_SCALAR_FP_PAIR(X)       \
  X(faddp_scalar, "faddp", 0x7e30d800)     \
  X(fmaxp_scalar, "fmaxp", 0x7e30f800)     \
  X(fminp_scalar, "fminp", 0x7eb0f800)     \
  X(fmaxnmp_scalar, "fmaxnmp", 0x7e30c800) \
  X(fminnmp_scalar, "fminnmp", 0x7eb0c800)

// 64 bits. vd, vn.
#define PHYBIN_A64_SCALAR_D_TWO(X)                \
  X(abs_scalar, "abs", "", 0x5ee0b800)            \
  X(neg_scalar, "neg", "", 0x7ee0b800)            \
  X(cmgt_zero_scalar, "cmgt", ", #0", 0x5ee08800) \
  X(cmge_zero_scalar, "cmge", ", #0", 0x7ee08800) \
  X(cmeq_zero_scalar, "cmeq", ", #0", 0x5ee09800) \
  X(cmlt_zero_scalar, "cmlt", ", #0", 0x5ee0a800)

// 64 bits by a constant. vd, vn, amount: left, right.
#define PHYBIN_A64_SCALAR_SHIFT_LEFT(X) \
  X(shl_scalar, "shl", 0x5f005400)      \
  X(sli_scalar, "sli", 0x7f005400)
#define PHYBIN_A64_SCALAR_SHIFT_RIGHT(X) \
  X(sshr_scalar, "sshr", 0x5f000400)     \
  X(ushr_scalar, "ushr", 0x7f000400)     \
  X(ssra_scalar, "ssra", 0x5f001400)     \
  X(usra_scalar, "usra", 0x7f001400)     \
  X(sri_scalar, "sri", 0x7f004400)

// By an element, S and D. q, size, vd, vn, vm, index.
#define PHYBIN_A64_V_FP_BY_ELEMENT(X) \
  X(vfmla_elem, "fmla", 0x0f801000)   \
  X(vfmls_elem, "fmls", 0x0f805000)   \
  X(vfmul_elem, "fmul", 0x0f809000)   \
  X(vfmulx_elem, "fmulx", 0x2f809000)
// H (vm below 16) and S. q, size, vd, vn, vm, index.
#define PHYBIN_A64_V_BY_ELEMENT(X) \
  X(vmla_elem, "mla", 0x2f000000)  \
  X(vmls_elem, "mls", 0x2f004000)  \
  X(vmul_elem, "mul", 0x0f008000)

// Cryptography: vd, vn, and vd, vn, vm; the registers' kinds in the assembler's text.
#define PHYBIN_A64_CRYPTO_TWO(X)            \
  X(aese, "v%u.16b, v%u.16b", 0x4e284800)   \
  X(aesd, "v%u.16b, v%u.16b", 0x4e285800)   \
  X(aesmc, "v%u.16b, v%u.16b", 0x4e286800)  \
  X(aesimc, "v%u.16b, v%u.16b", 0x4e287800) \
  X(sha1h, "s%u, s%u", 0x5e280800)          \
  X(sha1su1, "v%u.4s, v%u.4s", 0x5e281800)  \
  X(sha256su0, "v%u.4s, v%u.4s", 0x5e282800)
#define PHYBIN_A64_CRYPTO_THREE(X)                 \
  X(sha1c, "q%u, s%u, v%u.4s", 0x5e000000)         \
  X(sha1p, "q%u, s%u, v%u.4s", 0x5e001000)         \
  X(sha1m, "q%u, s%u, v%u.4s", 0x5e002000)         \
  X(sha1su0, "v%u.4s, v%u.4s, v%u.4s", 0x5e003000) \
  X(sha256h, "q%u, q%u, v%u.4s", 0x5e004000)       \
  X(sha256h2, "q%u, q%u, v%u.4s", 0x5e005000)      \
  X(sha256su1, "v%u.4s, v%u.4s, v%u.4s", 0x5e006000)

// Whole structures without interleaving or with: q, size, first register, rn; NAME_post advances rn by what was
// moved. The assembler's name, how many registers.
#define PHYBIN_A64_V_STRUCTURES(X) \
  X(st1_1, "st1", 1, 0x0c007000)   \
  X(st1_2, "st1", 2, 0x0c00a000)   \
  X(st1_3, "st1", 3, 0x0c006000)   \
  X(st1_4, "st1", 4, 0x0c002000)   \
  X(ld1_1, "ld1", 1, 0x0c407000)   \
  X(ld1_2, "ld1", 2, 0x0c40a000)   \
  X(ld1_3, "ld1", 3, 0x0c406000)   \
  X(ld1_4, "ld1", 4, 0x0c402000)

}  // namespace phybin::a64
