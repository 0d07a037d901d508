// See write_watch.h.
#include "worker/runtime/write_watch.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <map>

#include "worker/runtime/images.h"
#include "worker/runtime/regions.h"
#include "worker/runtime/thread.h"
#include "worker/runtime/worker_memory.h"

namespace phybin::runtime {
namespace {

constexpr uint32_t kFaultsUntilVolatile = 8;
constexpr uint32_t kChecksUntilTrusted = 1024;

struct WatchedPage {
  std::vector<uint32_t> regions;
  std::vector<uint64_t> places;  // write-protected now
  int protection = 0;            // the guest's, of the page itself
  uint32_t faults = 0;
  uint32_t good_checks = 0;
  uint32_t relapses = 0;
  bool is_volatile = false;
};

std::map<uint64_t, WatchedPage> pages;                  // by address of the page
std::map<uint64_t, std::vector<uint64_t>> place_pages;  // protected place -> pages of code that it is a place of
std::atomic<size_t> protected_places = 0;
std::atomic<size_t> volatile_pages = 0;
std::atomic<uint64_t> generation = 0;

// The page that was asked for last: translations of one page mostly follow each other. Null: none.
WatchedPage* recent_page = nullptr;
uint64_t recent_address = 0;

WatchedPage& watched_page(uint64_t address) {
  if (recent_page == nullptr || recent_address != address) {
    recent_page = &pages[address];
    recent_address = address;
  }
  return *recent_page;
}

uint64_t page_of(uint64_t address) { return address & ~(uint64_t{host_page_size()} - 1); }

// Guest code is only read by the host, so executable means readable there.
int host_protection(int guest) {
  return (guest & (PROT_READ | PROT_WRITE)) | ((guest & PROT_EXEC) != 0 ? PROT_READ : 0);
}

void set_protection(uint64_t place, int protection) {
  mprotect(reinterpret_cast<void*>(place), host_page_size(), protection);
}

void retire_translations(WatchedPage& page) {
  if (page.regions.empty()) return;
  retire_regions(page.regions);
  page.regions.clear();
}

// Nothing protects `address` any more. Places get back the protection the guest gave them: the page itself its own,
// aliases were writable.
void release_places(uint64_t address, WatchedPage& page) {
  for (uint64_t place : page.places) {
    auto users = place_pages.find(place);
    std::erase(users->second, address);
    if (!users->second.empty()) continue;
    place_pages.erase(users);
    --protected_places;
    set_protection(place, place == address ? host_protection(page.protection) : PROT_READ | PROT_WRITE);
  }
  page.places.clear();
}

// A write to the place is about to happen, or has.
bool open_place(uint64_t place) {
  auto users = place_pages.find(place);
  if (users == place_pages.end()) return false;
  generation.fetch_add(1);
  const std::vector<uint64_t> affected = users->second;
  for (uint64_t address : affected) {
    WatchedPage& page = pages[address];
    retire_translations(page);
    release_places(address, page);
    if (++page.faults >= kFaultsUntilVolatile && !page.is_volatile) {
      page.is_volatile = true;
      ++volatile_pages;
      page.good_checks = 0;
    }
  }
  return true;
}

bool kernel_may_write(uint64_t place) {
  struct Question {
    uint64_t place;
    bool answer = false;
  } question{place};
  for_each_thread(
      [](Thread& thread, void* data) {
        auto& q = *static_cast<Question*>(data);
        const uint32_t count = thread.kernel_write_count.load();
        for (uint32_t i = 0; i < count; ++i) {
          const Thread::KernelWrite& range = thread.kernel_writes[i];
          q.answer |= range.start < q.place + host_page_size() && q.place < range.end;
        }
      },
      &question);
  return question.answer;
}

void note_kernel_write(uint64_t start, uint64_t end) {
  Thread* thread = this_thread;
  if (thread == nullptr) return;
  const uint32_t count = thread->kernel_write_count.load(std::memory_order_relaxed);
  if (count < Thread::kKernelWrites) {
    thread->kernel_writes[count] = {start, end};
    thread->kernel_write_count.store(count + 1);
  } else {  // more than needed: everything between
    Thread::KernelWrite& last = thread->kernel_writes[count - 1];
    last = {std::min(last.start, start), std::max(last.end, end)};
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
}

}  // namespace

std::vector<WritablePage> writable_pages(const FlatArray<GuestRange>& ranges, const GuestMapping& around) {
  std::vector<WritablePage> result;
  uint64_t last = 0;
  for (const GuestRange& range : ranges) {
    const bool known = range.start >= around.start && range.end <= around.end;
    if (known && !around.shared && (around.protection & PROT_WRITE) == 0) continue;
    for (uint64_t page = page_of(range.start); page < range.end; page += host_page_size()) {
      GuestMapping mapping = around;
      if (page == last || (!known && !config.find_mapping(page, mapping))) continue;
      last = page;
      WritablePage entry{page, mapping.protection, {}};
      if ((mapping.protection & PROT_WRITE) != 0) entry.places.push_back(page);
      if (mapping.shared && config.find_aliases != nullptr) {
        uint64_t aliases[8];
        const size_t count = config.find_aliases(page, aliases, 8);
        entry.places.insert(entry.places.end(), aliases, aliases + count);
      }
      if (!entry.places.empty()) result.push_back(std::move(entry));
    }
  }
  return result;
}

// A system call that has announced a write must not meet a page that was protected meanwhile: it would fail with
// EFAULT, and what it had taken (a datagram) would be lost. before_kernel_writes() notes the range and then looks at
// `protected_places`; here it is the other way round, so at least one of the two sees the other.
Protection protect_pages(const std::vector<WritablePage>& wanted) {
  if (wanted.empty()) return Protection::kWasThere;
  ++protected_places;
  Protection result = Protection::kWasThere;
  for (const WritablePage& entry : wanted) {
    WatchedPage& page = pages[entry.page];
    if (page.is_volatile) continue;
    page.protection = entry.protection;
    for (uint64_t place : entry.places) {
      if (std::find(page.places.begin(), page.places.end(), place) != page.places.end()) continue;
      if (kernel_may_write(place)) {
        --protected_places;
        return Protection::kNotNow;
      }
      page.places.push_back(place);
      std::vector<uint64_t>& users = place_pages[place];
      if (users.empty()) {
        ++protected_places;
        set_protection(place, PROT_READ);
      }
      users.push_back(entry.page);
      result = Protection::kNew;
    }
  }
  --protected_places;
  return result;
}

void watch_pages(const FlatArray<GuestRange>& ranges, uint32_t region) {
  const uint64_t page_size = host_page_size();
  uint64_t last = UINT64_MAX;
  for (const GuestRange& range : ranges) {
    for (uint64_t address = range.start & ~(page_size - 1); address < range.end; address += page_size) {
      if (address == last) continue;
      last = address;
      std::vector<uint32_t>& list = watched_page(address).regions;
      if (!list.empty() && list.back() == region) continue;
      if (list.capacity() == 0) list.reserve(16);
      // Regions that were retired for another page of theirs stay in the list; drop them now and then.
      if (list.size() >= 64 && (list.size() & (list.size() - 1)) == 0)
        std::erase_if(list, [](uint32_t id) { return region_record(id).retired; });
      list.push_back(region);
    }
  }
}

bool any_volatile_page() { return volatile_pages.load() != 0; }

bool is_volatile_page(uint64_t guest) {
  if (!any_volatile_page()) return false;
  auto found = pages.find(page_of(guest));
  return found != pages.end() && found->second.is_volatile;
}

bool reaches_volatile_page(const std::vector<WritablePage>& reached) {
  return std::any_of(reached.begin(), reached.end(), [](const WritablePage& p) { return is_volatile_page(p.page); });
}

void note_good_check(uint64_t guest) {
  auto found = pages.find(page_of(guest));
  if (found == pages.end() || !found->second.is_volatile) return;
  WatchedPage& page = found->second;
  if (++page.good_checks < kChecksUntilTrusted << std::min(page.relapses, 16u)) return;
  page.is_volatile = false;
  --volatile_pages;
  page.faults = 0;
  ++page.relapses;
  retire_translations(page);
}

uint64_t write_generation() { return generation.load(); }

bool resolve_write_fault(uint64_t address) {
  CodeLock lock;
  if (!open_place(page_of(address))) return false;
  ++counts.write_faults;
  finish_retiring();
  return true;
}

void before_kernel_writes(uint64_t start, uint64_t length) {
  if (length == 0) return;
  note_kernel_write(start, start + length);
  if (protected_places.load() == 0) return;
  CodeLock lock;
  bool any = false;
  for (;;) {
    auto next = place_pages.lower_bound(page_of(start));
    if (next == place_pages.end() || next->first - page_of(start) >= start + length - page_of(start)) break;
    any |= open_place(next->first);
  }
  if (any) finish_retiring();
}

void invalidate_code(uint64_t start, uint64_t length) {
  generation.fetch_add(1);
  std::vector<uint64_t> opened;
  {
    CodeLock lock;
    bool any = retire_images_within(start, start + length);
    auto next = pages.lower_bound(page_of(start));
    while (next != pages.end() && next->first < start + length) {
      any |= !next->second.regions.empty();
      retire_translations(next->second);
      if (!next->second.places.empty()) {
        opened.push_back(next->first);
        release_places(next->first, next->second);
      }
      if (next->second.is_volatile) --volatile_pages;
      recent_page = nullptr;
      next = pages.erase(next);
    }
    if (any) {
      finish_retiring();
      free_passed();
    }
  }
  // The guest's protection may be another one by now.
  for (uint64_t page : opened) {
    GuestMapping mapping;
    if (config.find_mapping(page, mapping)) set_protection(page, host_protection(mapping.protection));
  }
}

}  // namespace phybin::runtime
