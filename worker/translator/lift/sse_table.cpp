// Which lifter and which IR operation serve each MMX and SSE mnemonic.
#include <array>

#include "worker/translator/lift/sse.h"

namespace phybin::lift {

namespace {

using decode::Mnemonic;

struct Row {
  Mnemonic mnemonic;
  SseForm form;
};

constexpr uint8_t kByte = 0, kWord = 1, kDword = 2, kQword = 3;
constexpr uint8_t kFloat = 2, kDouble = 3;
constexpr uint8_t kZeroIfSame = 1;
constexpr uint8_t kTruncate = 1;
constexpr uint8_t kMayBeInvalid = 1;
constexpr uint8_t kSignaling = 1;

// clang-format off
#define ROW(name, ...) {Mnemonic::k##name, {__VA_ARGS__}}
#define OPCODE(name) Opcode::k##name

// The four formats of an arithmetic instruction, the two of a packed one.
#define FLOAT_FOUR(name, packed, scalar, code, extra)                                          \
  ROW(name##ps, packed, OPCODE(code), kFloat, extra), ROW(name##pd, packed, OPCODE(code), kDouble, extra), \
  ROW(name##ss, scalar, OPCODE(code), kFloat, extra), ROW(name##sd, scalar, OPCODE(code), kDouble, extra)
#define FLOAT_TWO(name, lifter, code) \
  ROW(name##ps, lifter, OPCODE(code), kFloat), ROW(name##pd, lifter, OPCODE(code), kDouble)
// Byte, word, doubleword and so on.
#define INTEGER_BW(name, code) \
  ROW(name##b, lift_vec_binary, OPCODE(code), kByte), ROW(name##w, lift_vec_binary, OPCODE(code), kWord)
#define INTEGER_BWD(name, code, extra)                                                                  \
  ROW(name##b, lift_vec_binary, OPCODE(code), kByte, extra), ROW(name##w, lift_vec_binary, OPCODE(code), kWord, extra), \
  ROW(name##d, lift_vec_binary, OPCODE(code), kDword, extra)
#define SHIFT(name, code) \
  ROW(name##w, lift_vec_shift, OPCODE(code), kWord), ROW(name##d, lift_vec_shift, OPCODE(code), kDword)
#define BINARY(name, code, element) ROW(name, lift_vec_binary, OPCODE(code), element)

constexpr Row kRows[] = {
    // Moves.
    ROW(Movups, lift_vec_move), ROW(Movupd, lift_vec_move), ROW(Movdqu, lift_vec_move), ROW(Lddqu, lift_vec_move),
    ROW(Movntq, lift_vec_move), ROW(Movaps, lift_vec_move_aligned), ROW(Movapd, lift_vec_move_aligned),
    ROW(Movdqa, lift_vec_move_aligned), ROW(Movntps, lift_vec_move_aligned), ROW(Movntpd, lift_vec_move_aligned),
    ROW(Movntdq, lift_vec_move_aligned), ROW(Movntdqa, lift_vec_move_aligned),
    ROW(Movss, lift_move_scalar, OPCODE(Invalid), kFloat), ROW(Movsd, lift_move_scalar, OPCODE(Invalid), kDouble),
    ROW(Movd, lift_movd, OPCODE(Invalid), kDword), ROW(Movq, lift_movd, OPCODE(Invalid), kQword),
    ROW(Movlps, lift_move_low), ROW(Movlpd, lift_move_low), ROW(Movhps, lift_move_high), ROW(Movhpd, lift_move_high),
    ROW(Movhlps, lift_movhlps), ROW(Movlhps, lift_movlhps), ROW(Movddup, lift_movddup),
    ROW(Movsldup, lift_move_dup, OPCODE(VecTransposeEven)), ROW(Movshdup, lift_move_dup, OPCODE(VecTransposeOdd)),
    ROW(Movdq2q, lift_movdq2q), ROW(Movq2dq, lift_movdq2q),
    ROW(Pmovmskb, lift_move_mask, OPCODE(Invalid), kByte), ROW(Movmskps, lift_move_mask, OPCODE(Invalid), kFloat),
    ROW(Movmskpd, lift_move_mask, OPCODE(Invalid), kDouble), ROW(Maskmovdqu, lift_store_masked),
    ROW(Maskmovq, lift_store_masked), ROW(Pinsrb, lift_insert, OPCODE(Invalid), kByte),
    ROW(Pinsrw, lift_insert, OPCODE(Invalid), kWord), ROW(Pinsrd, lift_insert, OPCODE(Invalid), kDword),
    ROW(Pinsrq, lift_insert, OPCODE(Invalid), kQword), ROW(Pextrb, lift_extract, OPCODE(Invalid), kByte),
    ROW(Pextrw, lift_extract, OPCODE(Invalid), kWord), ROW(Pextrd, lift_extract, OPCODE(Invalid), kDword),
    ROW(Pextrq, lift_extract, OPCODE(Invalid), kQword), ROW(Extractps, lift_extract, OPCODE(Invalid), kDword),
    ROW(Insertps, lift_insertps), ROW(Emms, lift_emms), ROW(Ldmxcsr, lift_ldmxcsr), ROW(Stmxcsr, lift_stmxcsr),
    ROW(Fxsave, lift_fxsave), ROW(Fxrstor, lift_fxsave),

    // Floating point.
    FLOAT_FOUR(Add, lift_float_packed, lift_float_scalar, FAdd, 0),
    FLOAT_FOUR(Sub, lift_float_packed, lift_float_scalar, FSub, 0),
    FLOAT_FOUR(Mul, lift_float_packed, lift_float_scalar, FMul, 0),
    FLOAT_FOUR(Div, lift_float_packed, lift_float_scalar, FDiv, 0),
    FLOAT_FOUR(Min, lift_minmax_packed, lift_minmax_scalar, FMin, 0),
    FLOAT_FOUR(Max, lift_minmax_packed, lift_minmax_scalar, FMax, 0),
    FLOAT_FOUR(Sqrt, lift_float_unary_packed, lift_float_unary_scalar, FSqrt, kMayBeInvalid),
    ROW(Rsqrtps, lift_float_unary_packed, OPCODE(FReciprocalSqrt), kFloat),
    ROW(Rsqrtss, lift_float_unary_scalar, OPCODE(FReciprocalSqrt), kFloat),
    ROW(Rcpps, lift_float_unary_packed, OPCODE(FReciprocal), kFloat),
    ROW(Rcpss, lift_float_unary_scalar, OPCODE(FReciprocal), kFloat),
    FLOAT_FOUR(Cmp, lift_compare_packed, lift_compare_scalar, Invalid, 0),
    ROW(Ucomiss, lift_comis, OPCODE(Invalid), kFloat), ROW(Ucomisd, lift_comis, OPCODE(Invalid), kDouble),
    ROW(Comiss, lift_comis, OPCODE(Invalid), kFloat, kSignaling),
    ROW(Comisd, lift_comis, OPCODE(Invalid), kDouble, kSignaling),
    FLOAT_TWO(Hadd, lift_horizontal_float, FAdd), FLOAT_TWO(Hsub, lift_horizontal_float, FSub),
    FLOAT_TWO(Addsub, lift_addsub, Invalid), FLOAT_TWO(Dp, lift_dot_product, Invalid),
    FLOAT_FOUR(Round, lift_round_packed, lift_round_scalar, Invalid, 0),
    FLOAT_TWO(And, lift_vec_binary, VecAnd), FLOAT_TWO(Or, lift_vec_binary, VecOr),
    FLOAT_TWO(Andn, lift_vec_and_not, Invalid),
    ROW(Xorps, lift_vec_binary, OPCODE(VecXor), kFloat, kZeroIfSame),
    ROW(Xorpd, lift_vec_binary, OPCODE(VecXor), kDouble, kZeroIfSame),

    // Conversions.
    ROW(Cvtdq2ps, lift_convert_packed, OPCODE(VecIntToFloat), kDword),
    ROW(Cvtdq2pd, lift_convert_packed, OPCODE(VecIntToDouble), kDword),
    ROW(Cvtps2dq, lift_convert_packed, OPCODE(VecFloatToInt), kFloat),
    ROW(Cvttps2dq, lift_convert_packed, OPCODE(VecFloatToInt), kFloat, kTruncate),
    ROW(Cvtpd2dq, lift_convert_packed, OPCODE(VecDoubleToInt), kDouble),
    ROW(Cvttpd2dq, lift_convert_packed, OPCODE(VecDoubleToInt), kDouble, kTruncate),
    ROW(Cvtps2pd, lift_convert_packed, OPCODE(FWiden), kFloat),
    ROW(Cvtpd2ps, lift_convert_packed, OPCODE(FNarrow), kDouble),
    ROW(Cvtss2sd, lift_convert_scalar, OPCODE(Invalid), kFloat),
    ROW(Cvtsd2ss, lift_convert_scalar, OPCODE(Invalid), kDouble),
    ROW(Cvtsi2ss, lift_convert_from_int, OPCODE(Invalid), kFloat),
    ROW(Cvtsi2sd, lift_convert_from_int, OPCODE(Invalid), kDouble),
    ROW(Cvtss2si, lift_convert_to_int, OPCODE(Invalid), kFloat),
    ROW(Cvtsd2si, lift_convert_to_int, OPCODE(Invalid), kDouble),
    ROW(Cvttss2si, lift_convert_to_int, OPCODE(Invalid), kFloat, kTruncate),
    ROW(Cvttsd2si, lift_convert_to_int, OPCODE(Invalid), kDouble, kTruncate),
    ROW(Cvtpi2ps, lift_convert_from_mmx, OPCODE(VecIntToFloat), kFloat),
    ROW(Cvtpi2pd, lift_convert_from_mmx, OPCODE(VecIntToDouble), kDouble),
    ROW(Cvtps2pi, lift_convert_to_mmx, OPCODE(VecFloatToInt), kFloat),
    ROW(Cvttps2pi, lift_convert_to_mmx, OPCODE(VecFloatToInt), kFloat, kTruncate),
    ROW(Cvtpd2pi, lift_convert_to_mmx, OPCODE(VecDoubleToInt), kDouble),
    ROW(Cvttpd2pi, lift_convert_to_mmx, OPCODE(VecDoubleToInt), kDouble, kTruncate),

    // Packed integers.
    INTEGER_BWD(Padd, VecAdd, 0), BINARY(Paddq, VecAdd, kQword),
    INTEGER_BWD(Psub, VecSub, kZeroIfSame), ROW(Psubq, lift_vec_binary, OPCODE(VecSub), kQword, kZeroIfSame),
    INTEGER_BW(Padds, VecAddSatSigned), INTEGER_BW(Paddus, VecAddSatUnsigned),
    INTEGER_BW(Psubs, VecSubSatSigned), INTEGER_BW(Psubus, VecSubSatUnsigned), INTEGER_BW(Pavg, VecAverage),
    INTEGER_BWD(Pcmpeq, VecCmpEq, 0), BINARY(Pcmpeqq, VecCmpEq, kQword),
    INTEGER_BWD(Pcmpgt, VecCmpGt, kZeroIfSame), BINARY(Pcmpgtq, VecCmpGt, kQword),
    INTEGER_BWD(Pmins, VecMinSigned, 0), BINARY(Pminub, VecMinUnsigned, kByte),
    BINARY(Pminuw, VecMinUnsigned, kWord), BINARY(Pminud, VecMinUnsigned, kDword),
    INTEGER_BWD(Pmaxs, VecMaxSigned, 0), BINARY(Pmaxub, VecMaxUnsigned, kByte),
    BINARY(Pmaxuw, VecMaxUnsigned, kWord), BINARY(Pmaxud, VecMaxUnsigned, kDword),
    BINARY(Pmullw, VecMul, kWord), BINARY(Pmulld, VecMul, kDword), BINARY(Pmulhw, VecMulHighSigned, kWord),
    BINARY(Pmulhuw, VecMulHighUnsigned, kWord), BINARY(Pmulhrsw, VecMulHighRound, kWord),
    BINARY(Pmaddwd, VecMulAddPairs, kWord), BINARY(Pmaddubsw, VecMulAddBytes, kByte),
    BINARY(Pmuludq, VecMulEvenUnsigned, kDword), BINARY(Pmuldq, VecMulEvenSigned, kDword),
    BINARY(Psadbw, VecSumAbsDiff, kByte), BINARY(Packsswb, VecPackSigned, kWord),
    BINARY(Packssdw, VecPackSigned, kDword), BINARY(Packuswb, VecPackUnsigned, kWord),
    BINARY(Packusdw, VecPackUnsigned, kDword), BINARY(Pand, VecAnd, kQword), BINARY(Por, VecOr, kQword),
    ROW(Pxor, lift_vec_binary, OPCODE(VecXor), kQword, kZeroIfSame), ROW(Pandn, lift_vec_and_not),
    SHIFT(Psll, VecShlImm), ROW(Psllq, lift_vec_shift, OPCODE(VecShlImm), kQword),
    SHIFT(Psrl, VecShrImm), ROW(Psrlq, lift_vec_shift, OPCODE(VecShrImm), kQword), SHIFT(Psra, VecSarImm),
    ROW(Pslldq, lift_vec_shift_bytes, OPCODE(VecShlBytes)), ROW(Psrldq, lift_vec_shift_bytes, OPCODE(VecShrBytes)),
    ROW(Pabsb, lift_vec_unary, OPCODE(VecAbs), kByte), ROW(Pabsw, lift_vec_unary, OPCODE(VecAbs), kWord),
    ROW(Pabsd, lift_vec_unary, OPCODE(VecAbs), kDword),
    ROW(Phminposuw, lift_vec_unary, OPCODE(VecMinPosition), kWord),
    BINARY(Phaddw, VecAddPairs, kWord), BINARY(Phaddd, VecAddPairs, kDword),
    ROW(Phaddsw, lift_horizontal_integer, OPCODE(VecAddSatSigned), kWord),
    ROW(Phsubw, lift_horizontal_integer, OPCODE(VecSub), kWord),
    ROW(Phsubd, lift_horizontal_integer, OPCODE(VecSub), kDword),
    ROW(Phsubsw, lift_horizontal_integer, OPCODE(VecSubSatSigned), kWord),
    ROW(Psignb, lift_sign, OPCODE(Invalid), kByte), ROW(Psignw, lift_sign, OPCODE(Invalid), kWord),
    ROW(Psignd, lift_sign, OPCODE(Invalid), kDword),
    ROW(Pmovsxbw, lift_extend, OPCODE(VecExtendSigned), kByte, kWord),
    ROW(Pmovsxbd, lift_extend, OPCODE(VecExtendSigned), kByte, kDword),
    ROW(Pmovsxbq, lift_extend, OPCODE(VecExtendSigned), kByte, kQword),
    ROW(Pmovsxwd, lift_extend, OPCODE(VecExtendSigned), kWord, kDword),
    ROW(Pmovsxwq, lift_extend, OPCODE(VecExtendSigned), kWord, kQword),
    ROW(Pmovsxdq, lift_extend, OPCODE(VecExtendSigned), kDword, kQword),
    ROW(Pmovzxbw, lift_extend, OPCODE(VecExtendUnsigned), kByte, kWord),
    ROW(Pmovzxbd, lift_extend, OPCODE(VecExtendUnsigned), kByte, kDword),
    ROW(Pmovzxbq, lift_extend, OPCODE(VecExtendUnsigned), kByte, kQword),
    ROW(Pmovzxwd, lift_extend, OPCODE(VecExtendUnsigned), kWord, kDword),
    ROW(Pmovzxwq, lift_extend, OPCODE(VecExtendUnsigned), kWord, kQword),
    ROW(Pmovzxdq, lift_extend, OPCODE(VecExtendUnsigned), kDword, kQword),
    ROW(Ptest, lift_ptest),

    // Shuffles.
    BINARY(Punpcklbw, VecZipLow, kByte), BINARY(Punpcklwd, VecZipLow, kWord), BINARY(Punpckldq, VecZipLow, kDword),
    BINARY(Punpcklqdq, VecZipLow, kQword), BINARY(Punpckhbw, VecZipHigh, kByte),
    BINARY(Punpckhwd, VecZipHigh, kWord), BINARY(Punpckhdq, VecZipHigh, kDword),
    BINARY(Punpckhqdq, VecZipHigh, kQword), FLOAT_TWO(Unpckl, lift_vec_binary, VecZipLow),
    FLOAT_TWO(Unpckh, lift_vec_binary, VecZipHigh), BINARY(Pshufb, VecTable, kByte),
    ROW(Pshufd, lift_shuffle, OPCODE(VecShuffle32), kDword), ROW(Pshufw, lift_shuffle, OPCODE(VecShuffle16), kWord),
    ROW(Pshuflw, lift_shuffle, OPCODE(VecShuffle16), kWord, 0),
    ROW(Pshufhw, lift_shuffle, OPCODE(VecShuffle16), kWord, 1), ROW(Shufps, lift_shufps), ROW(Shufpd, lift_shufpd),
    ROW(Palignr, lift_palignr), ROW(Blendps, lift_blend_imm, OPCODE(Invalid), kDword),
    ROW(Blendpd, lift_blend_imm, OPCODE(Invalid), kQword), ROW(Pblendw, lift_blend_imm, OPCODE(Invalid), kWord),
    ROW(Blendvps, lift_blend_variable, OPCODE(Invalid), kDword),
    ROW(Blendvpd, lift_blend_variable, OPCODE(Invalid), kQword),
    ROW(Pblendvb, lift_blend_variable, OPCODE(Invalid), kByte),
    ROW(Mpsadbw, lift_vec_binary_imm, OPCODE(VecMultipleSad), kByte),

    // Cryptography, text.
    ROW(Aesenc, lift_aes_round, OPCODE(AesRound), 0, 0), ROW(Aesenclast, lift_aes_round, OPCODE(AesRound), 0, 1),
    ROW(Aesdec, lift_aes_round, OPCODE(AesRound), 0, 2), ROW(Aesdeclast, lift_aes_round, OPCODE(AesRound), 0, 3),
    ROW(Aesimc, lift_aes_unary, OPCODE(AesInverseMix)), ROW(Aeskeygenassist, lift_aes_unary, OPCODE(AesKeyGenAssist)),
    ROW(Sha1rnds4, lift_sha, OPCODE(Sha1Rounds)), ROW(Sha1nexte, lift_sha, OPCODE(Sha1NextE)),
    ROW(Sha256msg1, lift_sha, OPCODE(Sha256Schedule0)), ROW(Sha256msg2, lift_sha, OPCODE(Sha256Schedule1)),
    ROW(Sha256rnds2, lift_sha256rnds2), ROW(Sha1msg1, lift_sha1msg1), ROW(Sha1msg2, lift_sha1msg2),
    ROW(Pclmulqdq, lift_pclmulqdq, OPCODE(CarrylessMul)), ROW(Pcmpestri, lift_pcmpstr), ROW(Pcmpestrm, lift_pcmpstr),
    ROW(Pcmpistri, lift_pcmpstr), ROW(Pcmpistrm, lift_pcmpstr),
};
// clang-format on

constexpr std::array<SseForm, decode::kMnemonicCount> by_mnemonic() {
  std::array<SseForm, decode::kMnemonicCount> forms{};
  for (const Row& row : kRows) forms[static_cast<unsigned>(row.mnemonic)] = row.form;
  return forms;
}
constexpr std::array<SseForm, decode::kMnemonicCount> kForms = by_mnemonic();

}  // namespace

const SseForm& sse_form(decode::Mnemonic mnemonic) { return kForms[static_cast<unsigned>(mnemonic)]; }

}  // namespace phybin::lift
