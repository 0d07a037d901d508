// The dispatcher: one loop per guest thread, which enters translated code by guest address and deals with the reason
// why it was left. It never nests; delivering a signal changes the state that the loop goes on with.
#include <sys/mman.h>

#include <csignal>

#include "worker/runtime/flags.h"
#include "worker/runtime/guest_fault.h"
#include "worker/runtime/images.h"
#include "worker/runtime/regions.h"
#include "worker/runtime/runtime.h"
#include "worker/runtime/signal_state.h"
#include "worker/runtime/thread.h"
#include "worker/runtime/worker_memory.h"
#include "worker/runtime/write_watch.h"
#include "worker/translator/emit/homes.h"
#include "worker/translator/ir/ir.h"

namespace phybin::runtime {
namespace {

constexpr unsigned kRax = 0, kRcx = 1, kR11 = 11;
constexpr uint64_t kSyscallLength = 2;

void fill_lookup(GuestState& state, uint64_t guest, CodeAddress code) {
  LookupEntry& entry = state.lookup[guest & (kLookupEntries - 1)];
  entry.code = code.host;
  entry.key = guest | (code.needs_flags ? kNeedsFlags : 0);
}

void handle_syscall(Thread& thread) {
  GuestState& state = thread.state;
  const uint64_t number = state.gpr[kRax];
  state.gpr[kRcx] = state.rip;
  state.gpr[kR11] = rflags_of(state);
  thread.state_replaced = false;
  config.handle_syscall(state);
  if (!thread.state_replaced && state.gpr[kRax] == static_cast<uint64_t>(-kRestartCall)) {
    state.gpr[kRax] = number;
    state.rip -= kSyscallLength;
  }
}

// Translated code was left at an instruction of its own (a fault or a safepoint): the registers are in the state, the
// rest is rebuilt from the location table. Still counts as being in code: it may not be freed yet.
void rebuild_state(Thread& thread) {
  GuestState& state = thread.state;
  KnownPlace location;
  thread.goes_back = false;
  if (thread.helper_return != 0) {
    // The stub has stored RIP. Flags are as the code had them at the call, if it says so.
    if (locate_code(thread.helper_return - 4, location)) make_flags_canonical(state, location.flag_form);
    thread.helper_return = 0;
    return;
  }
  if (!locate_code(thread.left_pc, location))
    worker_error("a fault in translated code at a place that no table knows");
  state.rip = location.guest;
  thread.goes_back = (location.pf & emit::kGoesBack) != 0;
  const unsigned pf = location.pf & ~unsigned{emit::kGoesBack};
  if (pf != emit::kPfHome) state.pf_raw = thread.left_registers[pf];
  const auto value = [&](unsigned r) { return r == 31 ? 0 : thread.left_registers[r]; };
  state.af_raw = value(location.af_a) ^ value(location.af_b);
  make_flags_canonical(state, location.flag_form);
}

// Decides what a memory fault of guest code means. True: the thread goes on at state.rip.
bool resolve_fault(Thread& thread) {
  const GuestState& state = thread.state;
  const Fault& fault = thread.fault;
  if (fault.info.signal != SIGSEGV || !fault.from_host) return false;
  if (fault.write && resolve_write_fault(fault.address)) {
    const uint64_t page = ~(uint64_t{host_page_size()} - 1);
    constexpr uint64_t kLongestInstruction = 15;
    thread.step_once = ((state.rip ^ fault.address) & page) == 0 ||
                       (((state.rip + kLongestInstruction - 1) ^ fault.address) & page) == 0;
    return true;
  }
  // Another thread has changed the protection since: the access is allowed by now. If it faults again and again at
  // the same place, it is not.
  GuestMapping mapping;
  const int wanted = fault.write ? PROT_WRITE : PROT_READ | PROT_WRITE | PROT_EXEC;
  if (!config.find_mapping(fault.address, mapping) || (mapping.protection & wanted) == 0) return false;
  if (thread.last_fault_rip == state.rip && thread.last_fault_address == fault.address) {
    if (++thread.fault_repeats > 3) return false;
  } else {
    thread.fault_repeats = 0;
  }
  thread.last_fault_rip = state.rip;
  thread.last_fault_address = fault.address;
  return true;
}

// Code for state.rip, or none after a fault was raised.
CodeAddress next_code(Thread& thread) {
  GuestState& state = thread.state;
  CodeAddress code;
  if (thread.step_once) {
    thread.step_once = false;
    code = translate_single_step(state.rip);
  } else {
    const LookupEntry& known = state.lookup[state.rip & (kLookupEntries - 1)];
    if ((known.key & ~kNeedsFlags) == state.rip && known.code != 0) return {known.code, false, false};
    code = find_or_translate(state.rip);
    if (code.host != 0 && !code.checked) fill_lookup(state, state.rip, code);
  }
  if (code.host == 0) raise_fetch_fault(thread, state.rip);
  return code;
}

}  // namespace

int run_thread(GuestState& state) {
  Thread& thread = thread_of(state);
  Thread* const outer = this_thread;
  this_thread = &thread;
  start_thread_signals(thread);
  thread.ended = false;
  while (!thread.ended) {
    if (thread.attention.load() != 0 || thread.has_fault || thread.pending.load() != 0 || thread.held != 0)
      service_signals(thread);
    thread.kernel_write_count.store(0, std::memory_order_release);
    // Order matters: tables are cleared of what was retired up to `epoch`; what is found afterwards may be retired
    // before in_code is set, and then the epoch has changed. Who retires code raises the epoch before looking at
    // in_code, so either this loop or the safepoint notices.
    const uint64_t epoch = retire_epoch();
    if (thread.passed_epoch.load() != epoch) {
      clear_code_tables(thread);
      thread.passed_epoch.store(epoch);
    }
    const CodeAddress code = next_code(thread);
    if (code.host == 0) continue;
    thread.in_code.store(1);
    if (retire_epoch() != epoch || thread.pending.load() != 0) {
      thread.in_code.store(0);
      continue;
    }
    const uint64_t reason = phybin_enter(&state, code.host);
    if (reason >= EXIT_FAULT) rebuild_state(thread);
    thread.in_code.store(0);
    switch (reason) {
      case EXIT_LOOKUP:
        ++counts.lookups;
        break;
      case EXIT_SLOT:
        link_slot(thread.slot, state.rip);
        break;
      case EXIT_SYSCALL:
        // A signal that came before the call is delivered before it.
        if (thread.pending.load() != 0)
          state.rip -= kSyscallLength;
        else
          handle_syscall(thread);
        break;
      case EXIT_TRAP:
      case EXIT_TRAP_IN_PLACE:
        raise_trap(thread, static_cast<ir::TrapKind>(thread.trap_info & 0xff), thread.trap_info >> 8);
        break;
      case EXIT_FAULT:
        // A load that was made together with instructions before it: from these on singly, until the fault comes
        // again.
        if (thread.goes_back) {
          thread.step_once = true;
        } else {
          thread.has_fault = !resolve_fault(thread);
        }
        break;
      case EXIT_ALIGNMENT:
        use_barriers(thread.left_pc, state.rip);
        break;
      case EXIT_SAFEPOINT:
        thread.attention.store(1);
        break;
      default:
        break;
    }
  }
  end_thread_signals(thread);
  this_thread = outer;
  return thread.status;
}

void end_thread(GuestState& state, int status) {
  Thread& thread = thread_of(state);
  thread.ended = true;
  thread.status = status;
}

void adopt_thread(GuestState* state) { this_thread = state != nullptr ? &thread_of(*state) : nullptr; }

int64_t interruptible_syscall(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f) {
  static const std::atomic<uint64_t> never = 0;
  return phybin_syscall(number, a, b, c, d, e, f, this_thread != nullptr ? &this_thread->pending : &never);
}

}  // namespace phybin::runtime
