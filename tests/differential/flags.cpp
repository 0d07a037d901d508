// Which flags an instruction reads, defines and leaves undefined (Intel SDM, the instructions' "Flags Affected").
#include "tests/differential/snippet.h"

namespace phybin::difftest {

FlagEffects flag_effects(const Instruction& instruction, int cl) {
  FlagEffects effects;
  if (!instruction.form) return effects;
  const Form& form = *instruction.form;
  effects.read = form.flags_read;
  effects.written = form.flags_written;
  effects.undefined = form.flags_undefined;
  const bool shift = form.special == Special::kShift || form.special == Special::kDoubleShift;
  const bool rotate = form.special == Special::kRotate || form.special == Special::kRotateCarry;
  if (form.special == Special::kString && form.flags_written) {
    // With a count of zero nothing is compared.
    if (instruction.repeat) effects.written = 0;
    return effects;
  }
  if (!shift && !rotate) return effects;

  const unsigned bits = form.size * 8u;
  const uint8_t opcode = form.opcode.back();
  const bool by_cl = opcode == 0xd2 || opcode == 0xd3 || opcode == 0xa5 || opcode == 0xad;
  const bool by_one = opcode == 0xd0 || opcode == 0xd1;
  int count = by_one ? 1 : by_cl ? cl : int(instruction.immediate);
  if (count >= 0) count &= bits == 64 ? 63 : 31;
  const bool arithmetic_right = shift && form.digit == 7;
  const uint32_t written = effects.written;
  effects.written = 0;
  if (count == 0) return effects;
  uint32_t undefined = 0;
  if (shift) undefined |= kAf;
  if (count != 1) undefined |= kOf;
  if (form.special == Special::kShift && !arithmetic_right && (count < 0 || count >= int(bits))) undefined |= kCf;
  if (form.special == Special::kDoubleShift && (count < 0 || count > int(bits))) undefined |= kStatusFlags;
  effects.undefined = undefined;
  // Where the count is not known the flags may also stay as they were.
  if (count > 0) effects.written = written & ~undefined;
  // RCL and RCR by a multiple of the width and carry leave CF as it was.
  if (form.special == Special::kRotateCarry && count > int(bits)) effects.written = 0;
  return effects;
}

}  // namespace phybin::difftest
