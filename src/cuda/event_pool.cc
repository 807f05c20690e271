#include "cuda/event_pool.h"

#include <utility>

namespace tutti::internal::cuda {

EventPool::Taken EventPool::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      Taken taken(free_.back().release(), Back{this});
      free_.pop_back();
      return taken;
    }
    free_.reserve(++made_);  // so that all can come back
  }
  return {new Event(device_), Back{this}};
}

EventPool::Taken EventPool::record(Stream stream) {
  Taken event = take();
  event->record(stream);
  return event;
}

void EventPool::Back::operator()(Event* event) const noexcept {
  const std::lock_guard lock(pool->mutex_);
  pool->free_.emplace_back(event);
}

}  // namespace tutti::internal::cuda
