// The frame that the x86_64 kernel puts on the stack of a program that handles a signal (Linux arch/x86/kernel/
// signal_64.c, arch/x86/include/uapi/asm/sigcontext.h), and the way back.
//
// Downwards from the stack pointer: 128 bytes of red zone, the FXSAVE image at a multiple of 64, then the structure
// below with its end at a multiple of 16, so that the handler starts as if it had been called.
#include <cstddef>
#include <cstring>

#include "worker/runtime/flags.h"
#include "worker/runtime/fxsave.h"
#include "worker/runtime/helpers/x87_ops.h"
#include "worker/runtime/runtime.h"
#include "worker/runtime/signal_state.h"

namespace phybin::runtime {
namespace {

enum Gpr : unsigned { kRax, kRcx, kRdx, kRbx, kRsp, kRbp, kRsi, kRdi, kR8, kR9, kR10, kR11, kR12, kR13, kR14, kR15 };

struct GuestContext {  // struct sigcontext
  uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
  uint64_t rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, rflags;
  uint16_t cs, gs, fs, ss;
  uint64_t error, trap, old_mask, cr2;
  uint64_t fpstate;
  uint64_t reserved[8];
};
static_assert(sizeof(GuestContext) == 256);

struct SignalFrame {  // struct rt_sigframe
  uint64_t restorer;
  uint64_t uc_flags, uc_link;
  uint64_t stack_start;
  int32_t stack_flags, stack_pad;
  uint64_t stack_size;
  GuestContext context;
  uint64_t mask;
  SignalInfo info;
};
static_assert(sizeof(SignalFrame) == 440 && offsetof(SignalFrame, info) == 312);

constexpr uint64_t kUcSigcontextSs = 2, kUcStrictRestoreSs = 4;
constexpr uint16_t kUserCs = 0x33, kUserSs = 0x2b;
constexpr uint64_t kRedZone = 128;
constexpr uint32_t kDefaultMxcsr = 0x1f80;

// Order of the general registers in the context, by x86 number.
constexpr size_t kContextOffset[16] = {
    offsetof(GuestContext, rax), offsetof(GuestContext, rcx), offsetof(GuestContext, rdx),
    offsetof(GuestContext, rbx), offsetof(GuestContext, rsp), offsetof(GuestContext, rbp),
    offsetof(GuestContext, rsi), offsetof(GuestContext, rdi), offsetof(GuestContext, r8),
    offsetof(GuestContext, r9),  offsetof(GuestContext, r10), offsetof(GuestContext, r11),
    offsetof(GuestContext, r12), offsetof(GuestContext, r13), offsetof(GuestContext, r14),
    offsetof(GuestContext, r15),
};

uint64_t& context_register(GuestContext& context, unsigned number) {
  return *reinterpret_cast<uint64_t*>(reinterpret_cast<char*>(&context) + kContextOffset[number]);
}

// A handler starts with a fresh floating-point unit.
void reset_float_state(GuestState& state) {
  memset(state.x87, 0, sizeof state.x87);
  phybin_x87_fninit(x87_of(state), 0, 0);
  set_mxcsr(state, kDefaultMxcsr);
  memset(state.xmm, 0, sizeof state.xmm);
  memset(state.ymm_high, 0, sizeof state.ymm_high);
}

}  // namespace

bool push_signal_frame(Thread& thread, const GuestAction& action, const SignalInfo& info, const Fault* fault) {
  GuestState& state = thread.state;
  AlternateStack& alternate = thread.alternate_stack;
  const uint64_t rsp = state.gpr[kRsp];
  const bool disabled = (alternate.flags & kStackDisabled) != 0;
  const bool auto_disarm = (alternate.flags & kStackAutoDisarm) != 0;
  const bool on_stack = !disabled && !auto_disarm && rsp - alternate.start - 1 < alternate.size;
  uint64_t top = rsp - kRedZone;
  const bool switches = (action.flags & kOnStack) != 0 && !disabled && !on_stack;
  if (switches) top = alternate.start + alternate.size;
  const uint64_t fpstate = (top - sizeof(FxsaveImage)) & ~uint64_t{63};
  const uint64_t address = ((fpstate - sizeof(SignalFrame)) & ~uint64_t{15}) - 8;
  if ((switches || on_stack) && address - alternate.start >= alternate.size) return false;

  FxsaveImage image;
  save_fxsave(state, image);
  SignalFrame frame = {};
  frame.restorer = action.restorer;
  frame.uc_flags = kUcSigcontextSs | kUcStrictRestoreSs;
  frame.stack_start = alternate.start;
  frame.stack_size = alternate.size;
  frame.stack_flags = alternate.flags | (on_stack ? kStackOn : 0);
  for (unsigned i = 0; i < 16; ++i) context_register(frame.context, i) = state.gpr[i];
  frame.context.rip = state.rip;
  frame.context.rflags = rflags_of(state);
  frame.context.cs = kUserCs;
  frame.context.ss = kUserSs;
  frame.context.fpstate = fpstate;
  frame.context.old_mask = thread.guest_mask;
  if (fault != nullptr) {
    frame.context.trap = fault->trap;
    frame.context.error = fault->error;
    frame.context.cr2 = fault->address;
  }
  frame.mask = thread.guest_mask;
  frame.info = info;
  if (!copy_to_guest(fpstate, &image, sizeof image) || !copy_to_guest(address, &frame, sizeof frame)) return false;

  if (auto_disarm) alternate = {0, 0, kStackDisabled};
  reset_float_state(state);
  set_rflags(state, rflags_of(state) & ~uint64_t{kRflagsDf | kRflagsTf | kRflagsRf});
  state.gpr[kRax] = 0;
  state.gpr[kRdi] = static_cast<uint64_t>(info.signal);
  state.gpr[kRsi] = address + offsetof(SignalFrame, info);
  state.gpr[kRdx] = address + offsetof(SignalFrame, uc_flags);
  state.gpr[kRsp] = address;
  state.rip = action.handler;
  return true;
}

bool pop_signal_frame(Thread& thread) {
  GuestState& state = thread.state;
  SignalFrame frame;
  // The handler's RET has taken the restorer's address off.
  const uint64_t address = state.gpr[kRsp] - sizeof frame.restorer;
  if (!copy_from_guest(&frame, address, sizeof frame)) return false;
  FxsaveImage image;
  const bool has_float = frame.context.fpstate != 0;
  if (has_float && !copy_from_guest(&image, frame.context.fpstate, sizeof image)) return false;
  for (unsigned i = 0; i < 16; ++i) state.gpr[i] = context_register(frame.context, i);
  state.rip = frame.context.rip;
  constexpr uint64_t kRestored = 0x40dd5;  // what the kernel takes from the frame: AC OF DF TF SF ZF AF PF CF, RF
  set_rflags(state, (rflags_of(state) & ~kRestored) | (frame.context.rflags & kRestored));
  if (has_float)
    load_fxsave(state, image);
  else
    reset_float_state(state);
  thread.guest_mask = frame.mask & ~kUnblockable;
  AlternateStack& alternate = thread.alternate_stack;
  if ((frame.stack_flags & kStackDisabled) != 0)
    alternate = {0, 0, kStackDisabled};
  else
    alternate = {frame.stack_start, frame.stack_size, frame.stack_flags & kStackAutoDisarm};
  return true;
}

}  // namespace phybin::runtime
