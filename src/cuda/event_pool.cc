#include "cuda/event_pool.h"

#include <utility>

namespace tutti::internal::cuda {

EventPool::Recorded EventPool::take() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) {
    free_.reserve(made_ + 1);  // so that all can come back
    Recorded made(new Event(device_), Back{this});
    ++made_;
    return made;
  }
  Recorded taken(free_.back().release(), Back{this});
  free_.pop_back();
  return taken;
}

EventPool::Recorded EventPool::record(Stream stream) {
  Recorded event = take();
  event->record(stream);
  return event;
}

void EventPool::Back::operator()(Event* event) const noexcept {
  const std::lock_guard lock(pool->mutex_);
  pool->free_.emplace_back(event);
}

}  // namespace tutti::internal::cuda
