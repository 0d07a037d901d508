// See code_memory.h.
#include "worker/runtime/code_memory.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "worker/runtime/worker_memory.h"

namespace phybin::runtime {
namespace {

// A System V segment attached at `place` and, for writing, elsewhere: returns that, null on failure.
char* attach_twice(char* place) {
  const int id = shmget(IPC_PRIVATE, kCodeBytes, IPC_CREAT | 0600);
  if (id < 0) return nullptr;
  void* alias = shmat(id, nullptr, 0);
  const bool attached = alias != reinterpret_cast<void*>(-1);
  const bool placed = attached && shmat(id, place, SHM_REMAP) == place;
  shmctl(id, IPC_RMID, nullptr);
  if (attached && !placed) shmdt(alias);
  if (!placed) return nullptr;
  note_worker_range(reinterpret_cast<uint64_t>(alias), reinterpret_cast<uint64_t>(alias) + kCodeBytes);
  return static_cast<char*>(alias);
}

// The same memory twice. A memfd is refused or deadly under RLIMIT_FSIZE (SIGXFSZ) and may be forbidden to be
// executable (vm.memfd_noexec); shared anonymous memory can be doubled too, by mremap with an old size of 0.
bool map_code_twice(char* executable_place, char** writable) {
  struct rlimit limit;
  const bool limited = getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < kCodeBytes;
  if (!limited) {
    const int fd = static_cast<int>(syscall(SYS_memfd_create, "phybin-code", 1u /* MFD_CLOEXEC */));
    if (fd >= 0) {
      void* code = MAP_FAILED;
      void* alias = nullptr;
      if (ftruncate(fd, kCodeBytes) == 0) {
        alias = map_worker_memory(kCodeBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (alias != nullptr)
          code = mmap(executable_place, kCodeBytes, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED, fd, 0);
      }
      close(fd);
      if (code != MAP_FAILED) {
        *writable = static_cast<char*>(alias);
        return true;
      }
      unmap_worker_memory(alias, kCodeBytes);
    }
  }
  char* alias =
      static_cast<char*>(map_worker_memory(kCodeBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (alias == nullptr) return false;
  void* code = mremap(alias, 0, kCodeBytes, MREMAP_MAYMOVE | MREMAP_FIXED, executable_place);
  if (code == MAP_FAILED) {
    // qemu-user does not know that form.
    unmap_worker_memory(alias, kCodeBytes);
    alias = attach_twice(executable_place);
    if (alias == nullptr) return false;
    code = executable_place;
  }
  if (mprotect(code, kCodeBytes, PROT_READ | PROT_EXEC) != 0) {
    unmap_worker_memory(alias, kCodeBytes);
    return false;
  }
  *writable = alias;
  return true;
}

// Order of Arm ARM B2.4.4 for code written through another mapping: clean the data cache to the point of unification
// where it was written, then invalidate the instruction cache where it runs. The release store that makes the code
// reachable comes after it (regions.cpp).
void synchronise_caches(const char* written, const char* executed, size_t size) {
  uint64_t type;
  asm volatile("mrs %0, ctr_el0" : "=r"(type));
  const size_t data_line = size_t{4} << (type >> 16 & 15);
  const size_t code_line = size_t{4} << (type & 15);
  const auto line = [](const char* p, size_t unit) { return reinterpret_cast<uint64_t>(p) & ~(unit - 1); };
  for (uint64_t p = line(written, data_line); p < reinterpret_cast<uint64_t>(written) + size; p += data_line)
    asm volatile("dc cvau, %0" ::"r"(p) : "memory");
  asm volatile("dsb ish" ::: "memory");
  for (uint64_t p = line(executed, code_line); p < reinterpret_cast<uint64_t>(executed) + size; p += code_line)
    asm volatile("ic ivau, %0" ::"r"(p) : "memory");
  asm volatile("dsb ish\n isb" ::: "memory");
}

}  // namespace

Chunk* new_chunk(uint32_t id) {
  char* place =
      static_cast<char*>(map_worker_memory(kChunkBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (place == nullptr) return nullptr;
  char* writable = nullptr;
  if (!map_code_twice(place, &writable)) {
    unmap_worker_memory(place, kChunkBytes);
    return nullptr;
  }
  Chunk* chunk = new Chunk;
  chunk->id = id;
  chunk->code = place;
  chunk->writable = writable;
  return chunk;
}

void close_chunk(Chunk& chunk) {
  unmap_worker_memory(chunk.writable, kCodeBytes);
  chunk.writable = nullptr;
}

void free_chunk(Chunk* chunk) {
  close_chunk(*chunk);
  unmap_worker_memory(chunk->code, kChunkBytes);
  delete chunk;
}

uint64_t append_code(Chunk& chunk, const RegionCode& region) {
  const size_t bytes = region.words.size() * 4;
  const size_t first_pair = chunk.pairs.size();
  char* writable = chunk.writable + chunk.used;
  char* code = chunk.code + chunk.used;
  uint64_t* slot = chunk.slot(first_pair);
  // Their distance in words is at bit 5 of LDR (literal), and of ADR, too, whose low two bits of the distance are
  // zero.
  const uint64_t slots = reinterpret_cast<uint64_t>(slot) - reinterpret_cast<uint64_t>(code);
  chunk.pairs.make_room(region.slot_pairs.size());
  for (const SlotPair& pair : region.slot_pairs) {
    slot[2] = pair.target;
    slot += kSlotPairBytes / sizeof *slot;
    *chunk.pairs.add_in_room() = {pair.target, {}, false};
  }
  memcpy(writable, region.words.data(), bytes);
  for (const SlotUse& use : region.slots) {
    const uint64_t distance = slots + use.pair * kSlotPairBytes - use.code_offset;
    *reinterpret_cast<uint32_t*>(writable + use.code_offset) |= static_cast<uint32_t>(distance >> 2 & 0x7ffff) << 5;
  }
  synchronise_caches(writable, code, bytes);
  // Regions start on a cache line of 16 bytes at least: what jumps to their first instruction fetches whole groups.
  chunk.used += (bytes + 15) & ~size_t{15};
  return reinterpret_cast<uint64_t>(code);
}

}  // namespace phybin::runtime
