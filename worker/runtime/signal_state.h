// Guest signal state shared by the files about signals: dispositions, delivery, the frame.
#pragma once

#include <csignal>
#include <cstdint>

#include "worker/runtime/thread.h"

namespace phybin::runtime {

inline constexpr int kSignals = 64;

constexpr uint64_t signal_bit(int signal) { return uint64_t{1} << (signal - 1); }
// The worker needs these itself: its handlers are always installed and the host never blocks them.
inline constexpr uint64_t kWorkerSignals =
    signal_bit(SIGSEGV) | signal_bit(SIGBUS) | signal_bit(SIGILL) | signal_bit(SIGTRAP) | signal_bit(SIGFPE);
inline constexpr uint64_t kUnblockable = signal_bit(SIGKILL) | signal_bit(SIGSTOP);

// struct sigaction as the x86_64 kernel has it.
struct GuestAction {
  uint64_t handler = 0;  // 0 default, 1 ignore
  uint64_t flags = 0;
  uint64_t restorer = 0;
  uint64_t mask = 0;
};

enum ActionFlag : uint64_t {
  kNoChildStop = 1,
  kNoChildWait = 2,
  kSigInfo = 4,
  kRestorer = 0x04000000,
  kOnStack = 0x08000000,
  kRestart = 0x10000000,
  kNoDefer = 0x40000000,
  kResetHandler = 0x80000000,
};

enum AlternateStackFlag : int32_t { kStackOn = 1, kStackDisabled = 2, kStackAutoDisarm = INT32_MIN };
inline constexpr uint64_t kMinimalStack = 2048;

// Dispositions are the process's; a child of vfork shares the memory but not them (take_own_actions).
// What was inherited from before exec is asked of the host when it is needed, since it hardly ever is.
struct ActionTable {
  GuestAction actions[kSignals + 1];
  uint64_t known = 0;  // bit n-1: actions[n] holds
};

void drop_own_actions(Thread& thread);

// The thread's host mask follows its guest mask; while a signal is queued everything is blocked.
void apply_guest_mask(Thread& thread);
void block_all_signals();
// Mask of a thread that the calling one creates.
uint64_t inherited_mask();

void install_worker_handlers();
// Host disposition of a signal that the guest handles (handler), or leaves to the kernel (default, ignore).
void ignore_on_host(int signal);
void set_host_disposition(int signal, const GuestAction& action);
// Dispositions that were inherited from before exec.
uint64_t host_disposition(int signal);

// In and out of run_thread().
void start_thread_signals(Thread& thread);
void end_thread_signals(Thread& thread);
// Delivers what waits: the fault first, then queued and held signals. Clears the safepoint.
void service_signals(Thread& thread);

// Puts a frame for `action` on the guest's stack and makes the handler next; false if the stack cannot be written.
bool push_signal_frame(Thread& thread, const GuestAction& action, const SignalInfo& info, const Fault* fault);
// Restores what the frame at RSP holds; false if it cannot be read.
bool pop_signal_frame(Thread& thread);

// Before the worker's handlers are installed: reads the dispositions that those replace.
void initialise_actions();
// In a forked child: what is queued for the parent's thread is not for this one.
void signals_after_fork_child();
void lock_signals();
void unlock_signals();

}  // namespace phybin::runtime
