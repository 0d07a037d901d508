// Reading guest code that may vanish meanwhile: another guest thread unmaps it, or its file was cut short.
#pragma once

#include <atomic>
#include <csetjmp>
#include <cstddef>
#include <cstdint>

#include "worker/translator/translate.h"

namespace phybin::runtime {

// A translator and its result, borrowed for one translation and kept for the next one: by this process, not by each
// thread, so that memory stays small; two threads that translate at once get one each.
class BorrowedTranslator {
 public:
  BorrowedTranslator();
  ~BorrowedTranslator();
  BorrowedTranslator(const BorrowedTranslator&) = delete;
  BorrowedTranslator& operator=(const BorrowedTranslator&) = delete;

  // translate(), but false as well when the guest's bytes cannot be read.
  bool translate(const TranslateInput& input);
  RegionCode& code();

 private:
  struct Kept;
  static std::atomic<Kept*> spare;
  Kept* kept_;
};

// The same with a translator of its own.
bool guarded_translate(const TranslateInput& input, RegionCode& out);
// True if guest memory at `address` is readable and equals `expected`.
bool guest_equals(uint64_t address, const uint8_t* expected, size_t size);

// Set while this thread reads guest memory in C++ code that is not prepared for faults; the fault handler leaves by
// it.
extern constinit thread_local sigjmp_buf* fault_exit;

}  // namespace phybin::runtime
