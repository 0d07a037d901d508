// A list of plain values that allocates nothing while it is short.
#pragma once

#include <cstddef>
#include <type_traits>
#include <vector>

namespace phybin::process {

template <typename T, size_t Short = 4>
class Few {
 public:
  static_assert(std::is_trivially_copyable_v<T>);
  Few() {}  // NOLINT(modernize-use-equals-default): that would be deleted, for the union

  void push_back(const T& value) {
    if (count_ < Short) {
      few_[count_++] = value;
      return;
    }
    if (count_ == Short) many_.assign(few_, few_ + Short);
    many_.push_back(value);
    ++count_;
  }
  size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  T* begin() { return count_ <= Short ? few_ : many_.data(); }
  T* end() { return begin() + count_; }
  const T* begin() const { return count_ <= Short ? few_ : many_.data(); }
  const T* end() const { return begin() + count_; }
  T& operator[](size_t i) { return begin()[i]; }
  T& back() { return end()[-1]; }

 private:
  union {
    T few_[Short];  // not constructed before it is used
  };
  std::vector<T> many_;  // all of them, once they are more
  size_t count_ = 0;
};

}  // namespace phybin::process
