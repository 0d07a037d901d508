// Self-modifying code: which guest pages hold translated code, and what happens when somebody writes there.
//
// A page that the guest may write to and that was translated is write-protected, and so are other places of this
// process where the same shared memory is mapped writable. A store faults, what was translated from the page is
// retired, the page becomes writable, the store is executed again. A page on which this happens often is not
// protected any more: its translations are single blocks with a copy of the bytes they were made from, entered by way
// of the dispatcher only, which compares first ("checked"). After enough good comparisons the page is given another
// chance.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/runtime/runtime.h"
#include "worker/translator/translate.h"

namespace phybin::runtime {

// A page that must be protected before a translation of it counts, and where it can be written.
struct WritablePage {
  uint64_t page;
  int protection;                // the guest's; of `page` itself
  std::vector<uint64_t> places;  // addresses of pages to protect: `page` if it is writable, and its aliases
};
// Which pages of the ranges are writable. `around` is the mapping that most of it lies in. Without the code lock.
std::vector<WritablePage> writable_pages(const FlatArray<GuestRange>& ranges, const GuestMapping& around);
// False if is_volatile_page() is false for all. Without the code lock.
bool any_volatile_page();

// The rest wants the code lock.

enum class Protection : uint8_t {
  kWasThere,  // all were protected before
  kNew,       // not all were: what was read may have changed since
  kNotNow,    // the kernel may be writing there for some thread
};
Protection protect_pages(const std::vector<WritablePage>& pages);
// Notes that `region` was translated from these bytes.
void watch_pages(const FlatArray<GuestRange>& ranges, uint32_t region);
// True if translations of `guest` are to be checked.
bool is_volatile_page(uint64_t guest);
bool reaches_volatile_page(const std::vector<WritablePage>& pages);
// A checked translation of `guest` was found good.
void note_good_check(uint64_t guest);
// Changes whenever bytes of guest code may have changed: what was translated meanwhile is translated again.
uint64_t write_generation();

// Takes the code lock: a store of the guest at `address` has faulted. False if the runtime did not protect the page.
bool resolve_write_fault(uint64_t address);

}  // namespace phybin::runtime
