// Events of one device that are used again. To make one delays other threads for longer than to record one.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "cuda/stream.h"

namespace tutti::internal::cuda {

// Thread-safe. Outlives what was taken. No lock is held while an event is made.
class EventPool {
 public:
  explicit EventPool(int device) : device_(device) {}
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  struct Back {
    EventPool* pool;
    void operator()(Event* event) const noexcept;
  };
  using Taken = std::unique_ptr<Event, Back>;  // goes back to the pool
  // One that says what it was last recorded for. Throws as Event does.
  Taken take();
  // One that is recorded: what is on `stream` now; the stream is of the pool's device.
  Taken record(Stream stream);

 private:
  const int device_;
  std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<Event>> free_;
  std::size_t made_ = 0;
};

}  // namespace tutti::internal::cuda
