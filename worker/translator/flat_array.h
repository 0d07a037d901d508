// A growing array of plain values for what the translator fills anew in each translation: clearing it keeps its
// memory, and an added element is not initialised, since whoever adds one writes all of it.
#pragma once

#include <cstddef>
#include <type_traits>
#include <vector>

namespace phybin {

template <class T>
class FlatArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  // The new last element. References to others are void after it.
  T* add() {
    if (size_ == storage_.size()) [[unlikely]]
      grow();
    return storage_.data() + size_++;
  }
  // Room for `count` more; then as many may be added without a look at the room.
  void make_room(std::size_t count) {
    if (storage_.size() - size_ < count) [[unlikely]]
      storage_.resize(2 * (size_ + count));
  }
  // How many elements there is room for, with those that are there.
  std::size_t capacity() const { return storage_.size(); }
  T* add_in_room() { return storage_.data() + size_++; }
  T& emplace_back() { return *add() = T{}; }
  void push_back(const T& value) {
    const T copy = value;
    *add() = copy;
  }
  // Elements that are new are not initialised either.
  void set_size(std::size_t size) {
    if (size > storage_.size()) storage_.resize(size * 2);
    size_ = size;
  }
  void clear() { size_ = 0; }
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return storage_.data()[i]; }
  const T& operator[](std::size_t i) const { return storage_.data()[i]; }
  T* data() { return storage_.data(); }
  const T* data() const { return storage_.data(); }
  T& back() { return storage_.data()[size_ - 1]; }
  const T& back() const { return storage_.data()[size_ - 1]; }

 private:
  [[gnu::noinline, gnu::cold]] void grow() { storage_.resize(size_ == 0 ? 512 : size_ * 2); }

  std::vector<T> storage_;
  std::size_t size_ = 0;
};

}  // namespace phybin
