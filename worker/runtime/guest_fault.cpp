// See guest_fault.h.
#include "worker/runtime/guest_fault.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "worker/runtime/helpers/x87_state.h"
#include "worker/runtime/regions.h"
#include "worker/runtime/runtime.h"
#include "worker/runtime/signals.h"

namespace phybin::runtime {
namespace {

constexpr int kSiKernel = 0x80;

enum Vector : uint32_t {
  kDivideError = 0,
  kBreakpointTrap = 3,
  kOverflow = 4,
  kInvalidOpcodeFault = 6,
  kGeneralProtectionFault = 13,
  kPageFault = 14,
  kX87Error = 16,
};

// Bits of a page fault's error code.
constexpr uint32_t kPresent = 1, kWrite = 2, kUser = 4, kFetch = 16;

void raise_exception(Thread& thread, int signal, int code, uint64_t address, uint32_t vector, uint32_t error) {
  Fault fault;
  fault.info.signal = signal;
  fault.info.code = code;
  fault.info.address() = address;
  fault.trap = vector;
  fault.error = error;
  thread.fault = fault;
  thread.has_fault = true;
}

void raise_general_protection(Thread& thread, uint32_t error) {
  raise_exception(thread, SIGSEGV, kSiKernel, 0, kGeneralProtectionFault, error);
}

// INT n: through the gates that user code may use, 3 and 4; the 32-bit system call does not exist here.
void raise_interrupt(Thread& thread, uint32_t number) {
  constexpr uint64_t kLength = 2;
  if (number == kBreakpointTrap) {
    thread.state.rip += kLength;
    return raise_exception(thread, SIGTRAP, kSiKernel, 0, kBreakpointTrap, 0);
  }
  if (number == kOverflow) {
    thread.state.rip += kLength;
    return raise_exception(thread, SIGSEGV, kSiKernel, 0, kOverflow, 0);
  }
  raise_general_protection(thread, number * 8 + 2);
}

// Programs that use ud2 on purpose are rare: this mostly names an instruction that is not implemented.
void log_invalid_opcode(uint64_t rip) {
  uint8_t bytes[15] = {};
  if (config.log_line == nullptr) return;
  for (unsigned i = 0; i < sizeof bytes && copy_from_guest(bytes + i, rip + i, 1); ++i) {
  }
  char text[3 * sizeof bytes + 1];
  for (unsigned i = 0; i < sizeof bytes; ++i) snprintf(text + 3 * i, 4, " %02x", bytes[i]);
  config.log_line("undefined instruction at 0x%lx:%s", rip, text);
}

// The code that goes with the unmasked exceptions of the x87 (fpu__exception_code()).
int x87_exception_code(const GuestState& state) {
  const auto& unit = reinterpret_cast<const x87::X87State&>(state.x87);
  const uint32_t pending = unit.status_word & ~unit.control_word;
  if ((pending & x87::kInvalid) != 0) return FPE_FLTINV;
  if ((pending & x87::kZeroDivide) != 0) return FPE_FLTDIV;
  if ((pending & x87::kOverflow) != 0) return FPE_FLTOVF;
  if ((pending & (x87::kDenormal | x87::kUnderflow)) != 0) return FPE_FLTUND;
  return FPE_FLTRES;
}

}  // namespace

void raise_trap(Thread& thread, ir::TrapKind kind, uint64_t immediate) {
  if (thread.helper_return != 0) thread.leave_helper = 1;
  const uint64_t rip = thread.state.rip;
  switch (kind) {
    case ir::TrapKind::kInvalidOpcode:
      log_invalid_opcode(rip);
      return raise_exception(thread, SIGILL, ILL_ILLOPN, rip, kInvalidOpcodeFault, 0);
    case ir::TrapKind::kBreakpoint:
      thread.state.rip += 1;
      return raise_exception(thread, SIGTRAP, kSiKernel, 0, kBreakpointTrap, 0);
    case ir::TrapKind::kDivide:
      return raise_exception(thread, SIGFPE, FPE_INTDIV, rip, kDivideError, 0);
    case ir::TrapKind::kX87:
      return raise_exception(thread, SIGFPE, x87_exception_code(thread.state), rip, kX87Error, 0);
    case ir::TrapKind::kGeneralProtection:
      return raise_general_protection(thread, 0);
    case ir::TrapKind::kInt:
      return raise_interrupt(thread, static_cast<uint32_t>(immediate & 0xff));
    case ir::TrapKind::kDecodeFault: {
      // The instruction runs into memory that cannot be fetched: the fault is at its first byte there.
      GuestMapping mapping;
      uint64_t address = rip;
      while (config.find_mapping(address, mapping) && (mapping.protection & 4) != 0 && mapping.end - rip < 16)
        address = mapping.end;
      return raise_fetch_fault(thread, address);
    }
  }
}

void raise_fetch_fault(Thread& thread, uint64_t address) {
  GuestMapping mapping;
  const bool mapped = config.find_mapping(address, mapping);
  if (mapped && (mapping.protection & 4) != 0) {  // beyond the end of its file
    raise_exception(thread, SIGBUS, BUS_ADRERR, address, kPageFault, kUser | kFetch);
  } else if (address >> 47 != 0) {
    raise_general_protection(thread, 0);
  } else {
    raise_exception(thread, SIGSEGV, mapped ? SEGV_ACCERR : SEGV_MAPERR, address, kPageFault,
                    kUser | kFetch | (mapped ? kPresent : 0));
  }
  thread.fault.address = address;
}

Fault host_fault(const SignalInfo& info, bool write) {
  Fault fault;
  fault.info.signal = info.signal;
  fault.info.code = info.code;
  fault.info.fields[0] = info.fields[0];
  fault.address = info.fields[0];
  fault.write = write;
  fault.from_host = true;
  fault.trap = kPageFault;
  fault.error = kUser | (write ? kWrite : 0) | (info.signal == SIGSEGV && info.code == SEGV_ACCERR ? kPresent : 0);
  // Not canonical, or CMPXCHG16B (LDAXP, CASP) on a misaligned operand: no page fault on x86.
  if (fault.address >> 47 != 0 || (info.signal == SIGBUS && info.code == BUS_ADRALN)) {
    fault.info.signal = SIGSEGV;
    fault.info.code = kSiKernel;
    fault.info.fields[0] = 0;
    fault.trap = kGeneralProtectionFault;
    fault.error = 0;
    fault.from_host = false;
  }
  return fault;
}

void raise_synchronous(GuestState& state, int signal, int code, uint64_t address) {
  Thread& thread = thread_of(state);
  const bool page_fault = signal == SIGSEGV && code != kSiKernel;
  raise_exception(thread, signal, code, address,
                  page_fault          ? kPageFault
                  : signal == SIGSEGV ? kGeneralProtectionFault
                                      : kInvalidOpcodeFault,
                  page_fault ? kUser : 0);
  thread.fault.address = address;
  // From a helper: the stub sees it and goes to the dispatcher.
  if (thread.helper_return != 0) thread.leave_helper = 1;
}

void worker_error(const char* message) {
  fprintf(stderr, "phybin: internal error: %s\n", message);
  abort();
}

}  // namespace phybin::runtime
