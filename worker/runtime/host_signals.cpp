// The worker's own signal handlers.
//
// Raw rt_sigaction, because guest libc uses signals 32 and 33, which the host's libc refuses to handle. Handlers run
// on a stack of their own and with all signals blocked. What they do to guest state is little: an asynchronous signal
// is queued and the thread's safepoint raised; after a fault in translated code the registers are put into GuestState
// and the thread is sent to its dispatcher, which can take locks and look at tables.
#include <pthread.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <bit>
#include <cstring>

#include "worker/runtime/guarded_translate.h"
#include "worker/runtime/guest_fault.h"
#include "worker/runtime/host_access.h"
#include "worker/runtime/regions.h"
#include "worker/runtime/runtime.h"
#include "worker/runtime/signal_state.h"
#include "worker/runtime/worker_memory.h"
#include "worker/translator/emit/homes.h"

namespace phybin::runtime {
namespace {

// struct sigaction as the ARM64 kernel has it.
struct HostAction {
  uint64_t handler = 0;
  uint64_t flags = 0;
  uint64_t restorer = 0;
  uint64_t mask = 0;
};

constexpr uint32_t kFpsimdMagic = 0x46508001;
constexpr uint32_t kEsrMagic = 0x45535201;
constexpr uint64_t kEsrWrite = 1u << 6;  // WnR of a data abort's syndrome

struct Record {
  uint32_t magic, size;
};
struct FpsimdRecord {
  Record head;
  uint32_t fpsr, fpcr;
  __uint128_t registers[32];
};
struct EsrRecord {
  Record head;
  uint64_t esr;
};

// The last fault of a guarded access of this thread.
thread_local SignalInfo guarded_fault;

template <typename T>
T* find_record(ucontext_t& context, uint32_t magic) {
  auto* at = reinterpret_cast<unsigned char*>(context.uc_mcontext.__reserved);
  unsigned char* const end = at + sizeof context.uc_mcontext.__reserved;
  while (at + sizeof(Record) <= end) {
    auto* record = reinterpret_cast<Record*>(at);
    if (record->magic == magic) return reinterpret_cast<T*>(at);
    if (record->magic == 0 || record->size < sizeof(Record)) break;
    at += record->size;
  }
  return nullptr;
}

bool in_range(uint64_t pc, void (*begin)(), void (*end)()) {
  return pc >= reinterpret_cast<uint64_t>(begin) && pc < reinterpret_cast<uint64_t>(end);
}

bool is_write(ucontext_t& context) {
  const EsrRecord* record = find_record<EsrRecord>(context, kEsrMagic);
  if (record != nullptr) return (record->esr & kEsrWrite) != 0;
  return is_store_instruction(*reinterpret_cast<const uint32_t*>(context.uc_mcontext.pc));
}

// An emulator on another architecture reports address 0 for an address that is not canonical on its own host: the
// base register of the access then tells more.
SignalInfo with_known_address(const SignalInfo& info, ucontext_t& context) {
  SignalInfo known = info;
  if (info.signal != SIGSEGV || info.fields[0] != 0) return known;
  const unsigned base = *reinterpret_cast<const uint32_t*>(context.uc_mcontext.pc) >> 5 & 31;
  const uint64_t address = base < 31 ? context.uc_mcontext.regs[base] : 0;
  if (address >> 47 != 0) known.fields[0] = address;
  return known;
}

// The interrupted registers are the guest's (emit/homes.h).
void save_guest_registers(Thread& thread, ucontext_t& context) {
  GuestState& state = thread.state;
  const auto& registers = context.uc_mcontext.regs;
  for (unsigned i = 0; i < emit::kGuestGprs; ++i) state.gpr[i] = registers[emit::gpr_home(i)];
  state.pf_raw = registers[emit::kPfHome];
  state.af_raw = registers[emit::kAfHome];
  state.shadow_stack = registers[emit::kShadowStack];
  state.nzcv = context.uc_mcontext.pstate & 0xf0000000;
  for (unsigned i = 0; i < 31; ++i) thread.left_registers[i] = registers[i];
  thread.left_pc = context.uc_mcontext.pc;
  if (const auto* vectors = find_record<FpsimdRecord>(context, kFpsimdMagic)) {
    for (unsigned i = 0; i < 16; ++i) memcpy(state.xmm[i], &vectors->registers[emit::vec_home(i)], 16);
    state.fpsr_collected = vectors->fpsr;
  }
}

void leave_code(Thread& thread, ucontext_t& context, uint64_t reason) {
  context.uc_mcontext.pc = reinterpret_cast<uint64_t>(phybin_leave);
  context.uc_mcontext.regs[0] = reason;
  context.uc_mcontext.regs[emit::kState] = reinterpret_cast<uint64_t>(&thread);
}

[[noreturn]] void leave_by_fault_exit() { siglongjmp(*fault_exit, 1); }

// Overflow (and an underflow beyond the sentinels) starts the shadow stack afresh: old entries only miss.
bool is_shadow_guard(const Thread& thread, uint64_t address) {
  return address - reinterpret_cast<uint64_t>(thread.shadow_mapping) < shadow_stack_bytes();
}

// Counts alignment faults by site. True once in a while for a site that has many and can do without: its region is
// then made again with barriers (regions.h). Sites that share an entry take it from each other; hot ones get through.
bool is_often_unaligned(const ucontext_t& context) {
  constexpr uint64_t kMany = 64;
  struct Site {
    std::atomic<uint64_t> pc, faults;
  };
  static Site sites[4096];
  const uint64_t pc = context.uc_mcontext.pc;
  if (!is_ordered_access(*reinterpret_cast<const uint32_t*>(pc))) return false;
  Site& site = sites[pc / 4 % 4096];
  if (site.pc.exchange(pc) != pc) site.faults = 0;
  return ++site.faults % kMany == 0;
}

bool handle_code_fault(Thread& thread, const SignalInfo& info, ucontext_t& context) {
  const uint64_t address = info.fields[0];
  if (info.signal == SIGSEGV && address - reinterpret_cast<uint64_t>(poll_page(thread)) < host_page_size()) {
    save_guest_registers(thread, context);
    leave_code(thread, context, EXIT_SAFEPOINT);
    return true;
  }
  if (info.signal == SIGSEGV && is_shadow_guard(thread, address)) {
    context.uc_mcontext.regs[emit::kShadowStack] = thread.shadow_top;
    return true;
  }
  const SignalInfo* cause = &info;
  if (info.signal == SIGBUS && info.code == BUS_ADRALN) {
    ++counts.alignment_faults;
    if (is_often_unaligned(context)) {
      save_guest_registers(thread, context);
      leave_code(thread, context, EXIT_ALIGNMENT);
      return true;
    }
    const Completion completion = complete_unaligned_access(context);
    if (completion == Completion::kDone) return true;
    if (completion == Completion::kFaulted) cause = &guarded_fault;
  }
  if (info.signal == SIGTRAP) {
    // BRK #TrapKind.
    thread.trap_info = *reinterpret_cast<const uint32_t*>(context.uc_mcontext.pc) >> 5 & 0xffff;
    save_guest_registers(thread, context);
    leave_code(thread, context, EXIT_TRAP_IN_PLACE);
    return true;
  }
  if (info.signal != SIGSEGV && info.signal != SIGBUS) return false;
  thread.fault = host_fault(with_known_address(*cause, context), is_write(context));
  save_guest_registers(thread, context);
  leave_code(thread, context, EXIT_FAULT);
  return true;
}

// True if the interrupted code can go on as the context says now.
bool handle_fault(Thread* thread, const SignalInfo& info, ucontext_t& context) {
  const uint64_t pc = context.uc_mcontext.pc;
  if (in_range(pc, phybin_guarded_begin, phybin_guarded_end)) {
    guarded_fault = info;
    context.uc_mcontext.pc = reinterpret_cast<uint64_t>(phybin_guarded_fail);
    return true;
  }
  if (fault_exit != nullptr) {
    context.uc_mcontext.pc = reinterpret_cast<uint64_t>(leave_by_fault_exit);
    return true;
  }
  if (thread == nullptr) return false;
  if (is_code_address(pc)) return handle_code_fault(*thread, info, context);
  // A state helper works on guest memory for the guest; its state is in memory already.
  if (thread->helper_return != 0 && (info.signal == SIGSEGV || info.signal == SIGBUS)) {
    thread->fault = host_fault(info, is_write(context));
    leave_code(*thread, context, EXIT_FAULT);
    return true;
  }
  return false;
}

void queue_signal(Thread& thread, const SignalInfo& info, ucontext_t& context) {
  const uint64_t bit = signal_bit(info.signal);
  if ((bit & kWorkerSignals) != 0 && ((thread.guest_mask & bit) != 0 || thread.pending.load() != 0)) {
    if ((thread.held & bit) != 0) return;  // as the kernel: one of a kind is enough
    thread.held |= bit;
    for (SignalInfo& slot : thread.held_info) {
      if (slot.signal == 0 || slot.signal == info.signal) {
        slot = info;
        break;
      }
    }
    return;
  }
  thread.queued = info;
  thread.pending.store(1);
  if (thread.in_code.load() != 0) raise_safepoint(thread);
  const uint64_t mask = ~kWorkerSignals;
  memcpy(&context.uc_sigmask, &mask, sizeof mask);
  auto& pc = context.uc_mcontext.pc;
  if (in_range(pc, phybin_syscall_begin, phybin_syscall_end)) pc = reinterpret_cast<uint64_t>(phybin_syscall_abort);
}

// On a host thread that is not yet, or no longer, in run_thread(): stays pending until the guest's mask is installed.
void postpone(const SignalInfo& info, ucontext_t& context) {
  uint64_t mask;
  memcpy(&mask, &context.uc_sigmask, sizeof mask);
  mask |= signal_bit(info.signal);
  memcpy(&context.uc_sigmask, &mask, sizeof mask);
  syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), info.signal, &info);
}

void handler(int signal, SignalInfo* info, ucontext_t* context) {
  Thread* thread = this_thread;
  const bool synchronous = (signal_bit(signal) & kWorkerSignals) != 0 && info->code > 0;
  if (!synchronous) {
    if (thread != nullptr)
      queue_signal(*thread, *info, *context);
    else
      postpone(*info, *context);
    return;
  }
  if (handle_fault(thread, *info, *context)) return;
  // The worker itself is broken: let the fault happen again without a handler.
  static constexpr char kMessage[] = "phybin: internal error: fault in the worker\n";
  [[maybe_unused]] const ssize_t written = write(2, kMessage, sizeof kMessage - 1);
  HostAction action;
  syscall(SYS_rt_sigaction, signal, &action, nullptr, 8);
}

void install(int signal, uint64_t extra_flags) {
  HostAction action;
  action.handler = reinterpret_cast<uint64_t>(handler);
  action.flags = SA_SIGINFO | SA_ONSTACK | extra_flags;
  action.mask = ~kWorkerSignals;
  syscall(SYS_rt_sigaction, signal, &action, nullptr, 8);
}

}  // namespace

void install_worker_handlers() {
  for (uint64_t left = kWorkerSignals; left != 0; left &= left - 1) install(std::countr_zero(left) + 1, SA_RESTART);
}

uint64_t host_disposition(int signal) {
  HostAction action;
  syscall(SYS_rt_sigaction, signal, nullptr, &action, 8);
  return action.handler;
}

void ignore_on_host(int signal) {
  HostAction action;
  action.handler = 1;
  syscall(SYS_rt_sigaction, signal, &action, nullptr, 8);
}

void set_host_disposition(int signal, const GuestAction& action) {
  const uint64_t child_flags = action.flags & (kNoChildStop | kNoChildWait);
  // Restarting is the kernel's decision, by the guest's flag.
  const uint64_t restart = (action.flags & kRestart) != 0 ? SA_RESTART : 0;
  if ((kWorkerSignals & signal_bit(signal)) != 0) return install(signal, restart);
  if (action.handler > 1) return install(signal, child_flags | restart);
  HostAction host;
  host.handler = action.handler;
  host.flags = child_flags;
  syscall(SYS_rt_sigaction, signal, &host, nullptr, 8);
}

}  // namespace phybin::runtime
