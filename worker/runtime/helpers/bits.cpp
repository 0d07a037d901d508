// Light helpers for bit instructions that A64 has no short sequence for (lift/bmi.cpp).
#include <sys/syscall.h>

#include <cstdint>

#include "worker/translator/guest_state.h"
#include "worker/translator/helper_ids.h"

using phybin::GuestState;
using phybin::HelperResult;

extern "C" {

HelperResult phybin_helper_pdep(GuestState*, uint64_t value, uint64_t mask, uint64_t);
HelperResult phybin_helper_pext(GuestState*, uint64_t value, uint64_t mask, uint64_t);
HelperResult phybin_helper_random(GuestState*, uint64_t, uint64_t, uint64_t);

HelperResult phybin_helper_pdep(GuestState*, uint64_t value, uint64_t mask, uint64_t) {
  uint64_t result = 0;
  for (; mask != 0; mask &= mask - 1, value >>= 1) {
    if ((value & 1) != 0) result |= mask & (0 - mask);
  }
  return {result, 0};
}

HelperResult phybin_helper_pext(GuestState*, uint64_t value, uint64_t mask, uint64_t) {
  uint64_t result = 0;
  for (unsigned bit = 0; mask != 0; mask &= mask - 1, ++bit) {
    if ((value & mask & (0 - mask)) != 0) result |= uint64_t{1} << bit;
  }
  return {result, 0};
}

HelperResult phybin_helper_random(GuestState*, uint64_t, uint64_t, uint64_t) {
  uint64_t value = 0;
#ifdef __aarch64__
  register uint64_t number asm("x8") = SYS_getrandom;
  register uint64_t x0 asm("x0") = reinterpret_cast<uint64_t>(&value);
  register uint64_t x1 asm("x1") = sizeof value;
  register uint64_t x2 asm("x2") = 0;
  asm volatile("svc #0" : "+r"(x0) : "r"(number), "r"(x1), "r"(x2) : "memory");
#endif
  return {value, 0};
}

}  // extern "C"
