// Guest dispositions, masks and delivery.
//
// At most one asynchronous signal of a thread is queued here at a time: its handler blocks all others until the
// dispatcher has delivered it, so order, queueing and choice of thread stay the kernel's.
#include "worker/runtime/signals.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>

#include "worker/runtime/lock.h"
#include "worker/runtime/regions.h"
#include "worker/runtime/runtime.h"
#include "worker/runtime/signal_state.h"

namespace phybin::runtime {
namespace {

Lock action_lock;
ActionTable process_actions;

ActionTable& action_table() {
  ActionTable* own = this_thread != nullptr ? this_thread->own_actions : nullptr;
  return own != nullptr ? *own : process_actions;
}

constexpr uint64_t kDefault = 0, kIgnore = 1;

// With action_lock held.
GuestAction& action_of(int signal) {
  ActionTable& table = action_table();
  if ((table.known & signal_bit(signal)) == 0) {
    table.known |= signal_bit(signal);
    if (host_disposition(signal) == kIgnore) table.actions[signal].handler = kIgnore;
  }
  return table.actions[signal];
}

constexpr uint64_t kIgnoredByDefault =
    signal_bit(SIGCHLD) | signal_bit(SIGURG) | signal_bit(SIGWINCH) | signal_bit(SIGCONT);
constexpr uint64_t kStopsByDefault =
    signal_bit(SIGSTOP) | signal_bit(SIGTSTP) | signal_bit(SIGTTIN) | signal_bit(SIGTTOU);

void set_host_mask(uint64_t mask) { syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, sizeof mask); }

// What the kernel does when nobody handles the signal. Returns only if the process survives it.
void default_action(int signal) {
  if ((kIgnoredByDefault & signal_bit(signal)) != 0) return;
  if ((kStopsByDefault & signal_bit(signal)) != 0) {
    kill(getpid(), SIGSTOP);
    return;
  }
  die_of_signal(signal);
}

// `fault`: what the signal stems from, or null for one that was sent.
void deliver(Thread& thread, const SignalInfo& info, const Fault* fault) {
  const int signal = info.signal;
  action_lock.lock();
  GuestAction& current = action_of(signal);
  const GuestAction action = current;
  const bool handled = action.handler != kDefault && action.handler != kIgnore;
  if (handled && (action.flags & kResetHandler) != 0) {
    current.handler = kDefault;
    set_host_disposition(signal, current);
  }
  action_lock.unlock();

  if (fault != nullptr && (!handled || (thread.guest_mask & signal_bit(signal)) != 0)) die_of_signal(signal);
  if (action.handler == kDefault) return default_action(signal);
  if (action.handler == kIgnore) return;
  ++counts.signals_delivered;
  if (!push_signal_frame(thread, action, info, fault)) die_of_signal(SIGSEGV);
  thread.guest_mask |= action.mask & ~kUnblockable;
  if ((action.flags & kNoDefer) == 0) thread.guest_mask |= signal_bit(signal);
}

bool take_held(Thread& thread, SignalInfo& info) {
  const uint64_t ready = thread.held & ~thread.guest_mask;
  if (ready == 0) return false;
  const int signal = __builtin_ctzll(ready) + 1;
  for (const SignalInfo& held : thread.held_info) {
    if (held.signal == signal) info = held;
  }
  thread.held &= ~signal_bit(signal);
  return true;
}

}  // namespace

void lock_signals() { action_lock.lock(); }
void unlock_signals() { action_lock.unlock(); }

uint64_t host_mask(uint64_t guest_mask) { return guest_mask & ~kWorkerSignals; }

void apply_guest_mask(Thread& thread) { set_host_mask(host_mask(thread.guest_mask)); }

void block_all_signals() { set_host_mask(~uint64_t{0}); }

uint64_t inherited_mask() {
  if (this_thread != nullptr) return this_thread->guest_mask;
  uint64_t mask = 0;
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &mask, sizeof mask);
  return mask;
}

void prepare_exec() {
  block_all_signals();
  for (uint64_t left = kWorkerSignals; left != 0; left &= left - 1) {
    const int signal = std::countr_zero(left) + 1;
    if (action_of(signal).handler == kIgnore) ignore_on_host(signal);
  }
  set_host_mask(this_thread->guest_mask);
}

void undo_prepare_exec() {
  block_all_signals();
  install_worker_handlers();
  if (this_thread->pending.load() == 0) apply_guest_mask(*this_thread);
}

void signals_after_fork_child() {
  this_thread->pending.store(0);
  this_thread->held = 0;
  apply_guest_mask(*this_thread);
}

void take_own_actions(GuestState& child) {
  action_lock.lock();
  thread_of(child).own_actions = new ActionTable(action_table());
  action_lock.unlock();
}

void drop_own_actions(Thread& thread) { delete thread.own_actions; }

void start_thread_signals(Thread& thread) {
  stack_t stack = {};
  stack.ss_sp = thread.handler_stack;
  stack.ss_size = kHandlerStackBytes;
  sigaltstack(&stack, nullptr);
  apply_guest_mask(thread);
}

void end_thread_signals(Thread& thread) {
  block_all_signals();
  // A signal that this thread took but did not deliver is for the others.
  if (thread.pending.load() != 0) {
    syscall(SYS_rt_sigqueueinfo, getpid(), thread.queued.signal, &thread.queued);
    thread.pending.store(0);
  }
  stack_t stack = {};
  stack.ss_flags = SS_DISABLE;
  sigaltstack(&stack, nullptr);
}

void service_signals(Thread& thread) {
  if (thread.attention.load() != 0) clear_safepoint(thread);
  for (;;) {
    if (thread.has_fault) {
      thread.has_fault = false;
      const Fault fault = thread.fault;
      deliver(thread, fault.info, &fault);
      // Nothing may come between the fault and its handler but what the handler's mask lets through.
      if (thread.pending.load() == 0) apply_guest_mask(thread);
      continue;
    }
    SignalInfo info;
    if (thread.pending.load() != 0) {
      info = thread.queued;
      thread.pending.store(0);
      deliver(thread, info, nullptr);
      apply_guest_mask(thread);
    } else if (thread.held != 0 && take_held(thread, info)) {
      deliver(thread, info, nullptr);
      apply_guest_mask(thread);
    } else {
      return;
    }
  }
}

void initialise_actions() {
  for (uint64_t left = kWorkerSignals; left != 0; left &= left - 1) action_of(std::countr_zero(left) + 1);
}

int64_t sys_rt_sigaction(int signal, uint64_t action, uint64_t old_action, size_t set_size) {
  if (set_size != 8 || signal < 1 || signal > kSignals) return -EINVAL;
  if (action != 0 && (kUnblockable & signal_bit(signal)) != 0) return -EINVAL;
  GuestAction wanted;
  if (action != 0 && !read_guest(action, wanted)) return -EFAULT;
  wanted.mask &= ~kUnblockable;
  action_lock.lock();
  GuestAction& current = action_of(signal);
  const GuestAction before = current;
  if (action != 0) {
    current = wanted;
    set_host_disposition(signal, wanted);
  }
  action_lock.unlock();
  if (old_action != 0 && !write_guest(old_action, before)) return -EFAULT;
  return 0;
}

int64_t sys_rt_sigprocmask(int how, uint64_t set, uint64_t old_set, size_t set_size) {
  if (set_size != 8) return -EINVAL;
  Thread& thread = *this_thread;
  const uint64_t before = thread.guest_mask;
  if (set != 0) {
    uint64_t mask;
    if (!read_guest(set, mask)) return -EFAULT;
    switch (how) {
      case SIG_BLOCK:
        mask = before | mask;
        break;
      case SIG_UNBLOCK:
        mask = before & ~mask;
        break;
      case SIG_SETMASK:
        break;
      default:
        return -EINVAL;
    }
    thread.guest_mask = mask & ~kUnblockable;
    // With a signal queued the host blocks everything until it is delivered.
    if (thread.pending.load() == 0) apply_guest_mask(thread);
  }
  if (old_set != 0 && !write_guest(old_set, before)) return -EFAULT;
  return 0;
}

int64_t sys_sigaltstack(GuestState& state, uint64_t stack, uint64_t old_stack) {
  struct GuestStack {
    uint64_t start;
    int32_t flags;
    int32_t pad;
    uint64_t size;
  };
  AlternateStack& current = thread_of(state).alternate_stack;
  const uint64_t rsp = state.gpr[4];
  const bool on_stack = (current.flags & kStackDisabled) == 0 && (current.flags & kStackAutoDisarm) == 0 &&
                        rsp - current.start - 1 < current.size;
  GuestStack wanted;
  if (stack != 0 && !read_guest(stack, wanted)) return -EFAULT;
  const GuestStack before = {current.start, current.flags | (on_stack ? kStackOn : 0), 0, current.size};
  if (stack != 0) {
    const int32_t mode = wanted.flags & ~kStackAutoDisarm;
    if (on_stack) return -EPERM;
    if (mode != 0 && mode != kStackOn && mode != kStackDisabled) return -EINVAL;
    if (mode == kStackDisabled) {
      current = {0, 0, kStackDisabled};
    } else {
      if (wanted.size < kMinimalStack) return -ENOMEM;
      current = {wanted.start, wanted.size, wanted.flags & kStackAutoDisarm};
    }
  }
  if (old_stack != 0 && !write_guest(old_stack, before)) return -EFAULT;
  return 0;
}

int64_t sys_rt_sigsuspend(GuestState&, uint64_t set, size_t set_size) {
  if (set_size != 8) return -EINVAL;
  uint64_t mask;
  if (!read_guest(set, mask)) return -EFAULT;
  mask = host_mask(mask);
  return interruptible_syscall(SYS_rt_sigsuspend, reinterpret_cast<uint64_t>(&mask), sizeof mask);
}

int64_t sys_rt_sigreturn(GuestState& state) {
  Thread& thread = thread_of(state);
  thread.state_replaced = true;
  if (!pop_signal_frame(thread)) {
    raise_synchronous(state, SIGSEGV, 0x80 /* SI_KERNEL */, 0);
    return static_cast<int64_t>(state.gpr[0]);
  }
  if (thread.pending.load() == 0) apply_guest_mask(thread);
  return static_cast<int64_t>(state.gpr[0]);
}

void die_of_signal(int signal) {
  block_all_signals();
  struct {
    uint64_t handler = 0, flags = 0, mask = 0;
    uint64_t spare = 0;
  } action;
  syscall(SYS_rt_sigaction, signal, &action, nullptr, 8);
  syscall(SYS_tgkill, getpid(), gettid(), signal);
  set_host_mask(~signal_bit(signal));
  _exit(128 + signal);  // the signal was one that does not kill
}

}  // namespace phybin::runtime
