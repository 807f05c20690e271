#include "transport/verbs/registry.h"

#include <unistd.h>

#include <cstdint>

namespace tutti::internal::verbs {

std::shared_ptr<void> Registry::add(std::byte* data, std::size_t bytes) {
  Region region{bytes, state_->fabric->register_memory(data, bytes)};
  const std::lock_guard lock(state_->mutex);
  const auto at = state_->regions.emplace(data, std::move(region));
  return {state_.get(), [state = state_, at, process = ::getpid()](void*) {
            if (::getpid() != process) {  // a forked child: the device's memory is its parent's
              new auto(state);
              return;
            }
            const std::lock_guard at_the_end(state->mutex);
            state->regions.erase(at);
          }};
}

// Regions are few, and seldom overlap: the nearest start before the data is nearly always the one.
std::shared_ptr<const Registration> Registry::find(const std::byte* data, std::size_t bytes) const {
  const std::lock_guard lock(state_->mutex);
  const auto at = reinterpret_cast<std::uintptr_t>(data);
  for (auto region = state_->regions.upper_bound(data); region != state_->regions.begin();) {
    --region;
    const std::size_t before = at - reinterpret_cast<std::uintptr_t>(region->first);
    if (before <= region->second.bytes && bytes <= region->second.bytes - before) return region->second.registration;
  }
  return nullptr;
}

}  // namespace tutti::internal::verbs
