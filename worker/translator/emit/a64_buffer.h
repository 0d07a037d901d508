// Where the words of a translation are collected. A flat array that grows by doubling and is kept from one
// translation to the next, so that emitting a word is a bounds check and a store.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace phybin::a64 {

class CodeBuffer {
 public:
  CodeBuffer() { grow(); }
  CodeBuffer(const CodeBuffer&) = delete;
  CodeBuffer& operator=(const CodeBuffer&) = delete;
  void push(uint32_t word) {
    *cursor_++ = word;
    if (cursor_ == end_) [[unlikely]]
      grow();
  }
  uint32_t size() const { return static_cast<uint32_t>(cursor_ - words_.get()); }
  uint32_t& operator[](uint32_t index) { return words_[index]; }
  std::span<const uint32_t> words() const { return {words_.get(), size()}; }
  void clear() { cursor_ = words_.get(); }

 private:
  void grow();

  uint32_t* cursor_ = nullptr;
  uint32_t* end_ = nullptr;
  std::unique_ptr<uint32_t[]> words_;
};

}  // namespace phybin::a64
