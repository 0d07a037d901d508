// See lazy_data.h.
#include "worker/process/lazy_data.h"

#include <elf.h>
#include <sys/mman.h>

#include <cstdint>

#include "worker/runtime/worker_memory.h"

extern "C" {
// Of the linker, and of lazy_data.ld. Hidden: no pointer to them has to be relocated itself.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern Elf64_Dyn _DYNAMIC[] __attribute__((visibility("hidden")));
extern char __ehdr_start[] __attribute__((visibility("hidden")));
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
extern char phybin_lazy_data[] __attribute__((visibility("hidden")));
extern char phybin_lazy_data_end[] __attribute__((visibility("hidden")));
void phybin_postpone_relocations();
}

namespace phybin::process {
namespace {

const Elf64_Rela* postponed = nullptr;
uint64_t postponed_count = 0;

void relocate(uint64_t base, const Elf64_Rela& relocation) {
  *reinterpret_cast<uint64_t*>(base + relocation.r_offset) = base + static_cast<uint64_t>(relocation.r_addend);
}

}  // namespace

bool relocate_lazy_data() {
  if (postponed_count == 0) return true;
  // It may share pages with data that libc has made read-only.
  const uint64_t mask = runtime::host_page_size() - 1, base = reinterpret_cast<uint64_t>(__ehdr_start);
  const uint64_t from = reinterpret_cast<uint64_t>(phybin_lazy_data) & ~mask;
  const uint64_t to = (reinterpret_cast<uint64_t>(phybin_lazy_data_end) + mask) & ~mask;
  if (mprotect(reinterpret_cast<void*>(from), to - from, PROT_READ | PROT_WRITE) != 0) return false;
  for (; postponed_count != 0; ++postponed, --postponed_count) relocate(base, *postponed);
  return mprotect(reinterpret_cast<void*>(from), to - from, PROT_READ) == 0;
}

}  // namespace phybin::process

// Called before relocation, by phybin_start: may use nothing but code and what is found relative to it. The linker
// has sorted the table: relocations that add the load address first, ascending by place.
void phybin_postpone_relocations() {
  using namespace phybin::process;
  Elf64_Dyn *table = nullptr, *size = nullptr, *count = nullptr;
  for (Elf64_Dyn* entry = _DYNAMIC; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_RELA) table = entry;
    if (entry->d_tag == DT_RELASZ) size = entry;
    if (entry->d_tag == DT_RELACOUNT) count = entry;
  }
  if (table == nullptr || size == nullptr || count == nullptr) return;
  const uint64_t base = reinterpret_cast<uint64_t>(__ehdr_start);
  const auto* relocations = reinterpret_cast<const Elf64_Rela*>(base + table->d_un.d_ptr);
  const uint64_t start = reinterpret_cast<uint64_t>(phybin_lazy_data) - base;
  const uint64_t end = reinterpret_cast<uint64_t>(phybin_lazy_data_end) - base;
  uint64_t before = 0, low = 0, high = count->d_un.d_val;
  while (low < high) {
    const uint64_t middle = (low + high) / 2;
    if (relocations[middle].r_offset < end)
      low = middle + 1;
    else
      high = middle;
  }
  // Only the initial values of thread-local data stand in front.
  for (; before < low && relocations[before].r_offset < start; ++before) relocate(base, relocations[before]);
  postponed = relocations + before;
  postponed_count = low - before;
  // The rest at once: libc's loop takes 7 instructions for each, this one 4.4.
  const uint64_t all = count->d_un.d_val;
#pragma GCC unroll 8
  for (uint64_t i = low; i < all; ++i) relocate(base, relocations[i]);
  table->d_un.d_ptr += all * sizeof(Elf64_Rela);
  size->d_un.d_val -= all * sizeof(Elf64_Rela);
  count->d_un.d_val = 0;
}
