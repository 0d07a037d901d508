// A growing array of plain values for what the translator fills anew in each translation: clearing it keeps its
// memory, and an added element is not initialised, since whoever adds one writes all of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace phybin {

template <class T>
class FlatArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  FlatArray() = default;
  ~FlatArray() { release(); }
  FlatArray(const FlatArray& other) { *this = other; }
  FlatArray& operator=(const FlatArray& other) {
    if (this == &other) return *this;
    size_ = 0;
    make_room(other.size_);
    std::copy_n(other.data_, other.size_, data_);
    size_ = other.size_;
    return *this;
  }
  FlatArray(FlatArray&& other) noexcept { swap(other); }
  FlatArray& operator=(FlatArray&& other) noexcept {
    swap(other);
    return *this;
  }
  void swap(FlatArray& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(room_, other.room_);
  }

  // The new last element. References to others are void after it. Cheapest before what is stored there is computed.
  T* add() {
    if (size_ == room_) [[unlikely]]
      grow(1);
    return data_ + size_++;
  }
  // Room for `count` more; then as many may be added without a look at the room.
  void make_room(std::size_t count) {
    if (room_ - size_ < count) [[unlikely]]
      grow(count);
  }
  // How many elements there is room for, with those that are there.
  std::size_t capacity() const { return room_; }
  T* add_in_room() { return data_ + size_++; }
  T& emplace_back() { return *add() = T{}; }
  void push_back(const T& value) {
    const T copy = value;
    *add() = copy;
  }
  void append(const T* values, std::size_t count) {
    make_room(count);
    std::copy_n(values, count, data_ + size_);
    size_ += count;
  }
  // Elements that are new are not initialised either.
  void set_size(std::size_t size) {
    if (size > room_) [[unlikely]]
      grow(size - size_);
    size_ = size;
  }
  void clear() { size_ = 0; }
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T* begin() { return data_; }
  const T* begin() const { return data_; }
  T* end() { return data_ + size_; }
  const T* end() const { return data_ + size_; }
  T& front() { return data_[0]; }
  const T& front() const { return data_[0]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }

  friend bool operator==(const FlatArray& x, const FlatArray& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end());
  }

 private:
  [[gnu::noinline, gnu::cold]] void grow(std::size_t count) {
    constexpr std::size_t kFirst = 128;
    const std::size_t room = std::max(kFirst, 2 * (size_ + count));
    T* const data = std::allocator<T>().allocate(room);
    std::copy_n(data_, size_, data);
    release();
    data_ = data;
    room_ = room;
  }
  void release() {
    if (data_ != nullptr) std::allocator<T>().deallocate(data_, room_);
  }

  T* data_ = nullptr;
  std::size_t size_ = 0, room_ = 0;
};

}  // namespace phybin
