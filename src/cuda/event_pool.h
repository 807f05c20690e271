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
  // To be recorded before it is waited for: it may still have what it was recorded for before. Throws as Event does.
  Taken take();
  // The same, recorded: what is on `stream` now, which is a stream of the pool's device.
  Taken record(Stream stream);

 private:
  const int device_;
  std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<Event>> free_;
  std::size_t made_ = 0;
};

}  // namespace tutti::internal::cuda
