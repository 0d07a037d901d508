// The worker's own mappings: kept in one list, so that a guest MAP_FIXED onto them can be refused and /proc/self/maps
// can leave them out.
#pragma once

#include <cstddef>
#include <cstdint>

namespace phybin::runtime {

// mmap for the worker itself, noted in the list; nullptr on failure. Never MAP_FIXED.
void* map_worker_memory(size_t size, int protection, int flags, int fd, int64_t offset);
void unmap_worker_memory(void* address, size_t size);
// Notes a range that was mapped otherwise (the worker's image, its stack and heap).
void note_worker_range(uint64_t start, uint64_t end);
bool overlaps_worker_memory(uint64_t start, uint64_t end);
// Calls `visit` for each range in ascending order.
void for_each_worker_range(void (*visit)(uint64_t start, uint64_t end, void* data), void* data);

size_t host_page_size();

// Around fork (runtime.h).
void lock_worker_memory();
void unlock_worker_memory();

}  // namespace phybin::runtime
