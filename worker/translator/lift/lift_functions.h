// The lifters by name; lift_table.cpp assigns them to mnemonics.
#pragma once

#include "worker/translator/lift/lifter.h"

namespace phybin::lift {

// alu.cpp
void lift_add(Lifter& l);
void lift_adc(Lifter& l);
void lift_sub(Lifter& l);
void lift_sbb(Lifter& l);
void lift_and(Lifter& l);
void lift_or(Lifter& l);
void lift_xor(Lifter& l);
void lift_cmp(Lifter& l);
void lift_test(Lifter& l);
void lift_inc(Lifter& l);
void lift_dec(Lifter& l);
void lift_neg(Lifter& l);
void lift_not(Lifter& l);
void lift_xchg(Lifter& l);
void lift_xadd(Lifter& l);
void lift_cmpxchg(Lifter& l);
void lift_cmpxchg_pair(Lifter& l);

// move.cpp
void lift_mov(Lifter& l);
void lift_movzx(Lifter& l);
void lift_movsx(Lifter& l);
void lift_lea(Lifter& l);
void lift_push(Lifter& l);
void lift_pop(Lifter& l);
void lift_leave(Lifter& l);
void lift_enter(Lifter& l);
void lift_cmovcc(Lifter& l);
void lift_setcc(Lifter& l);
void lift_cbw(Lifter& l);
void lift_cwd(Lifter& l);
void lift_bswap(Lifter& l);
void lift_movbe(Lifter& l);
void lift_popcnt(Lifter& l);
void lift_lzcnt(Lifter& l);
void lift_tzcnt(Lifter& l);
void lift_crc32(Lifter& l);
void lift_xlat(Lifter& l);
void lift_movnti(Lifter& l);

// shift.cpp
void lift_shl(Lifter& l);
void lift_shr(Lifter& l);
void lift_sar(Lifter& l);
void lift_rol(Lifter& l);
void lift_ror(Lifter& l);
void lift_rcl(Lifter& l);
void lift_rcr(Lifter& l);
void lift_shld(Lifter& l);
void lift_shrd(Lifter& l);

// multiply.cpp
void lift_mul(Lifter& l);
void lift_imul(Lifter& l);
void lift_div(Lifter& l);
void lift_idiv(Lifter& l);

// bits.cpp
void lift_bt(Lifter& l);
void lift_bts(Lifter& l);
void lift_btr(Lifter& l);
void lift_btc(Lifter& l);
void lift_bsf(Lifter& l);
void lift_bsr(Lifter& l);

// bmi.cpp
void lift_andn(Lifter& l);
void lift_lowest_bit(Lifter& l);
void lift_bextr(Lifter& l);
void lift_bzhi(Lifter& l);
void lift_mulx(Lifter& l);
void lift_shift_without_flags(Lifter& l);
void lift_pdep_pext(Lifter& l);
void lift_rdrand(Lifter& l);

// control.cpp
void lift_jcc(Lifter& l);
void lift_jmp(Lifter& l);
void lift_jmp_indirect(Lifter& l);
void lift_call(Lifter& l);
void lift_call_indirect(Lifter& l);
void lift_call_through(Lifter& l, uint64_t pointer, uint64_t jump);
void lift_ret(Lifter& l);
void lift_jrcxz(Lifter& l);
void lift_loop(Lifter& l);
void lift_syscall(Lifter& l);
void lift_invalid(Lifter& l);
void lift_privileged(Lifter& l);
void lift_int3(Lifter& l);
void lift_int(Lifter& l);

// system.cpp
void lift_nop(Lifter& l);
void lift_pause(Lifter& l);
void lift_prefetch(Lifter& l);
void lift_cache_flush(Lifter& l);
void lift_lfence(Lifter& l);
void lift_sfence(Lifter& l);
void lift_mfence(Lifter& l);
void lift_clc(Lifter& l);
void lift_stc(Lifter& l);
void lift_cmc(Lifter& l);
void lift_cld(Lifter& l);
void lift_std(Lifter& l);
void lift_lahf(Lifter& l);
void lift_sahf(Lifter& l);
void lift_pushf(Lifter& l);
void lift_popf(Lifter& l);
void lift_movs(Lifter& l);
void lift_stos(Lifter& l);
void lift_lods(Lifter& l);
void lift_scas(Lifter& l);
void lift_cmps(Lifter& l);
void lift_cpuid(Lifter& l);
void lift_rdtscp(Lifter& l);
void lift_rdtsc(Lifter& l);

}  // namespace phybin::lift
