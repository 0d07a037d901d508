// The guest's part of the address space: system calls that map memory, and who owns what.
//
// Guest addresses are host addresses. The guest's mappings lie below 2^47 and are kept in a list
// (core/mapping_list.h) that decides where new ones go, which ranges the guest may unmap, protect or map over (its
// own and free ones, never the worker's), and what the translator may read. The host never maps guest memory
// executable: code is translated, not run, so PROT_EXEC becomes PROT_READ.
//
// Locks: one for changing mappings, held across the host's system call and calls into the runtime; a short one for
// the list, below the runtime's own locks, because the runtime looks mappings up while it holds them.
#pragma once

#include <cstdint>
#include <functional>

#include "worker/config/options.h"
#include "worker/process/core/mapping_list.h"
#include "worker/runtime/runtime.h"

namespace phybin::process {

// Once at start, before the first guest mapping: finds out how large the address space is.
void initialise_address_space(const config::Options& options);

uint64_t page_size();
uint64_t guest_top();  // end of what the guest may use, at most 2^47 - 4096
// A page aligned random number below `limit`, for address randomisation; 0 where personality(2) turned that off.
uint64_t random_pages(uint64_t limit);

// The system calls, arguments as of the guest; results as of the kernel.
int64_t map_memory(uint64_t address, uint64_t length, int protection, int flags, int fd, uint64_t offset);
int64_t unmap_memory(uint64_t address, uint64_t length);
int64_t protect_memory(uint64_t address, uint64_t length, int protection);
int64_t remap_memory(uint64_t address, uint64_t old_length, uint64_t new_length, int flags, uint64_t new_address);
int64_t advise_memory(uint64_t address, uint64_t length, int advice);
int64_t attach_shared_memory(int id, uint64_t address, int flags);
int64_t detach_shared_memory(uint64_t address);

// The heap: free addresses for it are kept from `start` on.
void place_heap(uint64_t start, uint64_t size);
int64_t set_break(uint64_t address);
bool is_heap(uint64_t address);

// For the runtime (Config::find_mapping).
bool find_mapping(uint64_t address, runtime::GuestMapping& out);
// For the runtime (Config::find_aliases).
size_t find_aliases(uint64_t page, uint64_t* out, size_t limit);
// Calls visit(start, end, range) for the guest's mappings within [start, end), with the list locked.
void visit_mappings(uint64_t start, uint64_t end, const std::function<void(uint64_t, uint64_t, const Range&)>& visit);

// Memory is going to be shared with somebody (second thread, MAP_SHARED): in the model `auto` x86 ordering begins.
void begin_sharing();

// Around fork, in this order: changes, the runtime's locks, the list.
void lock_address_space();
void unlock_address_space();
void lock_mapping_list();
void unlock_mapping_list();

}  // namespace phybin::process
