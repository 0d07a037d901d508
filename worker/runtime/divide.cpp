// DIV and IDIV where the inline sequence gives up: 8 and 16 bits, 128-bit dividends, and everything that raises #DE
// (SDM vol. 2, DIV and IDIV). a = divisor, b = width in bits | signed << 8.
#include <csignal>
#include <cstdint>

#include "worker/runtime/guest_fault.h"
#include "worker/runtime/thread.h"

namespace phybin::runtime {
namespace {

using Wide = unsigned __int128;

struct Quotient {
  bool valid;
  uint64_t quotient, remainder;
};

// The dividend has twice the width; the quotient must fit into one.
Quotient divide_unsigned(Wide dividend, uint64_t divisor, unsigned width) {
  if (divisor == 0 || dividend >> width >= divisor) return {};
  return {true, static_cast<uint64_t>(dividend / divisor), static_cast<uint64_t>(dividend % divisor)};
}

Quotient divide_signed(__int128 dividend, int64_t divisor, unsigned width) {
  const bool negative = dividend < 0;
  const Wide size = negative ? -static_cast<Wide>(dividend) : static_cast<Wide>(dividend);
  const uint64_t divisor_size = divisor < 0 ? -static_cast<uint64_t>(divisor) : static_cast<uint64_t>(divisor);
  const Quotient result = divide_unsigned(size, divisor_size, width);
  if (!result.valid) return {};
  const bool negative_quotient = negative != (divisor < 0);
  const uint64_t limit = uint64_t{1} << (width - 1);
  if (result.quotient > limit - (negative_quotient ? 0 : 1)) return {};
  return {true, negative_quotient ? -result.quotient : result.quotient,
          negative ? -result.remainder : result.remainder};
}

int64_t sign_extend(uint64_t value, unsigned width) {
  return static_cast<int64_t>(value << (64 - width)) >> (64 - width);
}

}  // namespace
}  // namespace phybin::runtime

extern "C" void phybin_helper_divide(phybin::GuestState* state, uint64_t divisor, uint64_t kind);

extern "C" void phybin_helper_divide(phybin::GuestState* state, uint64_t divisor, uint64_t kind) {
  using namespace phybin::runtime;
  const unsigned width = kind & 0xff;
  const bool is_signed = (kind >> 8) != 0;
  const uint64_t mask = ~uint64_t{0} >> (64 - width);
  uint64_t& rax = state->gpr[0];
  uint64_t& rdx = state->gpr[2];
  // 8 bits: AX is divided, AL and AH take the results.
  const uint64_t low = rax & mask, high = (width == 8 ? rax >> 8 : rdx) & mask;
  divisor &= mask;
  const Quotient result = is_signed ? divide_signed((static_cast<__int128>(sign_extend(high, width)) << width) | low,
                                                    sign_extend(divisor, width), width)
                                    : divide_unsigned(static_cast<Wide>(high) << width | low, divisor, width);
  if (!result.valid) {
    raise_trap(thread_of(*state), phybin::ir::TrapKind::kDivide, 0);
    return;
  }
  const uint64_t quotient = result.quotient & mask, remainder = result.remainder & mask;
  switch (width) {
    case 8:
      rax = (rax & ~uint64_t{0xffff}) | quotient | remainder << 8;
      break;
    case 16:
      rax = (rax & ~mask) | quotient;
      rdx = (rdx & ~mask) | remainder;
      break;
    default:
      rax = quotient;
      rdx = remainder;
  }
}
