// A queue without allocation in steady state.
#pragma once

#include <cstddef>
#include <vector>

namespace tutti::internal::shm {

template <class T>
class Fifo {
 public:
  explicit Fifo(std::size_t capacity = 8) : items_(capacity), mask_(capacity - 1) {}  // at first: a power of two

  bool empty() const { return head_ == tail_; }
  std::size_t size() const { return tail_ - head_; }
  T& front() { return items_[head_ & mask_]; }
  const T& front() const { return items_[head_ & mask_]; }
  T& push(const T& item) {
    if (size() == items_.size()) grow();
    return items_[tail_++ & mask_] = item;
  }
  T& operator[](std::size_t i) { return items_[(head_ + i) & mask_]; }  // from the front
  const T& operator[](std::size_t i) const { return items_[(head_ + i) & mask_]; }
  void pop() { ++head_; }

 private:
  void grow() {
    std::vector<T> larger(items_.size() * 2);
    for (std::size_t i = head_; i != tail_; ++i) larger[i - head_] = items_[i & mask_];
    tail_ -= head_;
    head_ = 0;
    items_.swap(larger);
    mask_ = items_.size() - 1;
  }
  std::vector<T> items_;
  std::size_t mask_, head_ = 0, tail_ = 0;
};

}  // namespace tutti::internal::shm
