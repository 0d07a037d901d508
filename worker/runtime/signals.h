// Guest signals: the system calls about them, and how the worker's own code raises one.
//
// The host thread's signal mask is the guest's mask (except for SIGSEGV, SIGBUS, SIGILL, SIGTRAP and SIGFPE, which
// the worker needs), and host dispositions follow the guest's: ignored and default signals are the kernel's business,
// for the others a handler queues the signal until the dispatcher can build the guest's frame. So sigpending,
// sigtimedwait, signalfd, and masks of ppoll and the like, need no emulation: pass them on.
#pragma once

#include <csignal>
#include <cstddef>
#include <cstdint>

#include "worker/translator/guest_state.h"

namespace phybin::runtime {

// System calls; results as the kernel's. Addresses are guest addresses; layouts of x86_64.
int64_t sys_rt_sigaction(int signal, uint64_t action, uint64_t old_action, size_t set_size);
int64_t sys_rt_sigprocmask(int how, uint64_t set, uint64_t old_set, size_t set_size);
int64_t sys_sigaltstack(GuestState& state, uint64_t stack, uint64_t old_stack);
int64_t sys_rt_sigsuspend(GuestState& state, uint64_t set, size_t set_size);
int64_t sys_rt_sigreturn(GuestState& state);  // the state is the interrupted one afterwards, RAX included

// `mask` as the host should have it while the guest asked for it (ppoll, pselect6, epoll_pwait, rt_sigtimedwait,
// signalfd): never blocks what the worker needs.
uint64_t host_mask(uint64_t guest_mask);
// ppoll, pselect6, epoll_pwait: a signal that arrived under the temporary mask is delivered with the mask of before;
// nothing to do for the caller.

// Raises a synchronous signal in the calling guest thread, at state.rip, before it runs on.
void raise_synchronous(GuestState& state, int signal, int code, uint64_t address);

// For the state of a child made with CLONE_VM but without CLONE_SIGHAND (vfork), before it runs: what it does to its
// dispositions is not the parent's.
void take_own_actions(GuestState& child);

// Around execve: gives the host thread the guest's mask and ignored signals, which the new program inherits. The
// second is for an execve that failed.
void prepare_exec();
void undo_prepare_exec();

// Dies of `signal` as the kernel would let the guest die (core flag, wait status).
[[noreturn]] void die_of_signal(int signal);

}  // namespace phybin::runtime
