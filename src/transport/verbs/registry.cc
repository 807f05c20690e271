#include "transport/verbs/registry.h"

#include <cstdint>
#include <functional>
#include <utility>

namespace tutti::verbs {

void Registry::add(std::byte* data, std::size_t bytes) {
  Region region{bytes, fabric_.register_memory(data, bytes)};
  const std::lock_guard lock(mutex_);
  regions_.emplace(data, std::move(region));
}

void Registry::remove(std::byte* data) {
  const std::lock_guard lock(mutex_);
  if (const auto found = regions_.find(data); found != regions_.end()) regions_.erase(found);
}

// Regions are few, and seldom overlap: the nearest start before the data is nearly always the one.
std::shared_ptr<const Registration> Registry::find(const std::byte* data, std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  const auto at = reinterpret_cast<std::uintptr_t>(data);
  for (auto region = regions_.upper_bound(data); region != regions_.begin();) {
    --region;
    const auto start = reinterpret_cast<std::uintptr_t>(region->first);
    if (at - start <= region->second.bytes && bytes <= region->second.bytes - (at - start))
      return region->second.registration;
  }
  return nullptr;
}

std::size_t Registry::bytes() const {
  const std::lock_guard lock(mutex_);
  std::size_t sum = 0;
  for (const auto& [start, region] : regions_) sum += region.bytes;
  return sum;
}

}  // namespace tutti::verbs
