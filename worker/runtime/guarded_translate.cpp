// See guarded_translate.h. A fault leaves the translator by siglongjmp and leaks what it had allocated; that happens
// to programs that are about to die, or are unmapping code that they still run.
#include "worker/runtime/guarded_translate.h"

#include <cstring>

namespace phybin::runtime {

constinit thread_local sigjmp_buf* fault_exit = nullptr;

struct BorrowedTranslator::Kept {
  Translator translator;
  RegionCode code;
};

std::atomic<BorrowedTranslator::Kept*> BorrowedTranslator::spare = nullptr;

BorrowedTranslator::BorrowedTranslator() : kept_(spare.exchange(nullptr)) {
  if (kept_ == nullptr) kept_ = new Kept;
}

BorrowedTranslator::~BorrowedTranslator() { delete spare.exchange(kept_); }

RegionCode& BorrowedTranslator::code() { return kept_->code; }

bool BorrowedTranslator::translate(const TranslateInput& input) {
  sigjmp_buf exit;
  if (sigsetjmp(exit, 0) != 0) {
    fault_exit = nullptr;
    return false;
  }
  fault_exit = &exit;
  const TranslateStatus status = kept_->translator.translate(input, kept_->code);
  fault_exit = nullptr;
  return status == TranslateStatus::kOk;
}

bool guarded_translate(const TranslateInput& input, RegionCode& out) {
  BorrowedTranslator translator;
  const bool done = translator.translate(input);
  if (done) out = translator.code();
  return done;
}

bool guest_equals(uint64_t address, const uint8_t* expected, size_t size) {
  sigjmp_buf exit;
  if (sigsetjmp(exit, 0) != 0) {
    fault_exit = nullptr;
    return false;
  }
  fault_exit = &exit;
  const bool equal = memcmp(reinterpret_cast<const void*>(address), expected, size) == 0;
  fault_exit = nullptr;
  return equal;
}

}  // namespace phybin::runtime
