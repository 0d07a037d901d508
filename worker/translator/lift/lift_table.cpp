// Which lifter serves which mnemonic, and where control goes then; MMX and SSE, and the x87, have tables of their own
// (sse_table.cpp, x87_table.cpp). A mnemonic that is in none is not implemented.
#include <array>

#include "worker/translator/lift/lift_functions.h"
#include "worker/translator/lift/sse.h"
#include "worker/translator/lift/x87.h"

namespace phybin::lift {

using decode::Mnemonic;

namespace {

struct Row {
  Mnemonic mnemonic;
  LiftFunction function;
  Flow flow = Flow::kNext;
};

constexpr Row kRows[] = {
    // Integer
    {Mnemonic::kAdd, lift_add},
    {Mnemonic::kAdc, lift_adc},
    {Mnemonic::kSub, lift_sub},
    {Mnemonic::kSbb, lift_sbb},
    {Mnemonic::kAnd, lift_and},
    {Mnemonic::kOr, lift_or},
    {Mnemonic::kXor, lift_xor},
    {Mnemonic::kCmp, lift_cmp},
    {Mnemonic::kTest, lift_test},
    {Mnemonic::kInc, lift_inc},
    {Mnemonic::kDec, lift_dec},
    {Mnemonic::kNeg, lift_neg},
    {Mnemonic::kNot, lift_not},
    {Mnemonic::kXchg, lift_xchg},
    {Mnemonic::kXadd, lift_xadd},
    {Mnemonic::kCmpxchg, lift_cmpxchg},
    {Mnemonic::kCmpxchg8b, lift_cmpxchg_pair},
    {Mnemonic::kCmpxchg16b, lift_cmpxchg_pair},
    {Mnemonic::kMov, lift_mov},
    {Mnemonic::kMovzx, lift_movzx},
    {Mnemonic::kMovsx, lift_movsx},
    {Mnemonic::kMovsxd, lift_movsx},
    {Mnemonic::kLea, lift_lea},
    {Mnemonic::kPush, lift_push},
    {Mnemonic::kPop, lift_pop},
    {Mnemonic::kLeave, lift_leave},
    {Mnemonic::kEnter, lift_enter},
    {Mnemonic::kCmovcc, lift_cmovcc},
    {Mnemonic::kSetcc, lift_setcc},
    {Mnemonic::kCbw, lift_cbw},
    {Mnemonic::kCwd, lift_cwd},
    {Mnemonic::kBswap, lift_bswap},
    {Mnemonic::kXlat, lift_xlat},
    {Mnemonic::kMovnti, lift_movnti},
    {Mnemonic::kShl, lift_shl},
    {Mnemonic::kShr, lift_shr},
    {Mnemonic::kSar, lift_sar},
    {Mnemonic::kRol, lift_rol},
    {Mnemonic::kRor, lift_ror},
    {Mnemonic::kRcl, lift_rcl},
    {Mnemonic::kRcr, lift_rcr},
    {Mnemonic::kShld, lift_shld},
    {Mnemonic::kShrd, lift_shrd},
    {Mnemonic::kMul, lift_mul},
    {Mnemonic::kImul, lift_imul},
    {Mnemonic::kDiv, lift_div},
    {Mnemonic::kIdiv, lift_idiv},
    {Mnemonic::kBt, lift_bt},
    {Mnemonic::kBts, lift_bts},
    {Mnemonic::kBtr, lift_btr},
    {Mnemonic::kBtc, lift_btc},
    {Mnemonic::kBsf, lift_bsf},
    {Mnemonic::kPopcnt, lift_popcnt},
    {Mnemonic::kLzcnt, lift_lzcnt},
    {Mnemonic::kTzcnt, lift_tzcnt},
    {Mnemonic::kCrc32, lift_crc32},
    {Mnemonic::kMovbe, lift_movbe},
    {Mnemonic::kBsr, lift_bsr},
    {Mnemonic::kAndn, lift_andn},
    {Mnemonic::kBlsr, lift_lowest_bit},
    {Mnemonic::kBlsmsk, lift_lowest_bit},
    {Mnemonic::kBlsi, lift_lowest_bit},
    {Mnemonic::kBextr, lift_bextr},
    {Mnemonic::kBzhi, lift_bzhi},
    {Mnemonic::kMulx, lift_mulx},
    {Mnemonic::kRorx, lift_shift_without_flags},
    {Mnemonic::kSarx, lift_shift_without_flags},
    {Mnemonic::kShlx, lift_shift_without_flags},
    {Mnemonic::kShrx, lift_shift_without_flags},
    {Mnemonic::kPdep, lift_pdep_pext},
    {Mnemonic::kPext, lift_pdep_pext},
    {Mnemonic::kRdrand, lift_rdrand},
    {Mnemonic::kMovs, lift_movs},
    {Mnemonic::kStos, lift_stos},
    {Mnemonic::kLods, lift_lods},
    {Mnemonic::kScas, lift_scas},
    {Mnemonic::kCmps, lift_cmps},
    // Control flow
    {Mnemonic::kJcc, lift_jcc, Flow::kBranch},
    {Mnemonic::kJmp, lift_jmp, Flow::kJump},
    {Mnemonic::kJmpIndirect, lift_jmp_indirect, Flow::kEnd},
    {Mnemonic::kCall, lift_call, Flow::kCall},
    {Mnemonic::kCallIndirect, lift_call_indirect, Flow::kCall},
    {Mnemonic::kRet, lift_ret, Flow::kEnd},
    {Mnemonic::kJrcxz, lift_jrcxz, Flow::kBranch},
    {Mnemonic::kLoop, lift_loop, Flow::kBranch},
    {Mnemonic::kLoope, lift_loop, Flow::kBranch},
    {Mnemonic::kLoopne, lift_loop, Flow::kBranch},
    {Mnemonic::kSyscall, lift_syscall, Flow::kNextBlock},
    {Mnemonic::kInt, lift_int, Flow::kEnd},
    {Mnemonic::kInt1, lift_privileged, Flow::kEnd},
    {Mnemonic::kInt3, lift_int3, Flow::kEnd},
    {Mnemonic::kUd0, lift_invalid, Flow::kEnd},
    {Mnemonic::kUd1, lift_invalid, Flow::kEnd},
    {Mnemonic::kUd2, lift_invalid, Flow::kEnd},
    // Flags
    {Mnemonic::kClc, lift_clc},
    {Mnemonic::kStc, lift_stc},
    {Mnemonic::kCmc, lift_cmc},
    {Mnemonic::kCld, lift_cld},
    {Mnemonic::kStd, lift_std},
    {Mnemonic::kLahf, lift_lahf},
    {Mnemonic::kSahf, lift_sahf},
    {Mnemonic::kPushf, lift_pushf},
    {Mnemonic::kPopf, lift_popf},
    // System
    {Mnemonic::kNop, lift_nop},
    {Mnemonic::kEndbr64, lift_nop},
    {Mnemonic::kPause, lift_pause},
    {Mnemonic::kPrefetch, lift_prefetch},
    {Mnemonic::kClflush, lift_cache_flush},
    {Mnemonic::kClflushopt, lift_cache_flush},
    {Mnemonic::kClwb, lift_cache_flush},
    {Mnemonic::kLfence, lift_lfence},
    {Mnemonic::kSfence, lift_sfence},
    {Mnemonic::kMfence, lift_mfence},
    {Mnemonic::kCpuid, lift_cpuid},
    {Mnemonic::kRdtsc, lift_rdtsc},
    {Mnemonic::kRdtscp, lift_rdtscp},
    {Mnemonic::kHlt, lift_privileged, Flow::kEnd},
    {Mnemonic::kCli, lift_privileged},
    {Mnemonic::kSti, lift_privileged},
    {Mnemonic::kIn, lift_privileged},
    {Mnemonic::kOut, lift_privileged},
};

using Table = std::array<Lifting, decode::kMnemonicCount>;

constexpr Table make_table() {
  Table table{};
  for (const Row& row : kRows) table[static_cast<std::size_t>(row.mnemonic)] = {row.function, row.flow};
  return table;
}

}  // namespace

constexpr Table kTable = make_table();
const Table kLiftings = kTable;

Lifting lifting_of_other_table(Mnemonic mnemonic) {
  LiftFunction function = sse_form(mnemonic).lift;
  if (function == nullptr) function = x87_form(mnemonic).lift;
  return function != nullptr ? Lifting{function, Flow::kNext} : Lifting{lift_invalid, Flow::kEnd};
}

}  // namespace phybin::lift
