// Events of one device that are used again: threads that make them hold each other up for longer than those that record
// them.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "cuda/stream.h"

namespace tutti::internal::cuda {

// Thread-safe. Outlives what was recorded.
class EventPool {
 public:
  explicit EventPool(int device) : device_(device) {}
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  struct Back {
    EventPool* pool;
    void operator()(Event* event) const noexcept;
  };
  using Recorded = std::unique_ptr<Event, Back>;  // goes back to the pool
  // What is on `stream` now; the stream is of the pool's device. Throws as Event does.
  Recorded record(Stream stream);

 private:
  Recorded take();

  const int device_;
  std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<Event>> free_;
  std::size_t made_ = 0;
};

}  // namespace tutti::internal::cuda
