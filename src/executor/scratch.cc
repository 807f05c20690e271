#include "executor/scratch.h"

#include <algorithm>
#include <utility>

namespace tutti::internal {

bool Scratch::Area::is_read(std::span<const PeerLink> links, int& reader) {
  for (std::size_t rank = 0; rank < left.size(); ++rank) {
    if (links[rank].channel == nullptr || links[rank].channel->sent() >= left[rank]) continue;
    reader = static_cast<int>(rank);
    return false;
  }
  left.clear();
  return true;
}

void Scratch::fit(const Plan& plan, const Allocate& allocate) {
  if (plan.scratch_bytes == 0) return;
  for (Area& place : plan.leaves_copies ? std::span(copies_) : std::span(&own_, 1)) {
    if (place.has(plan.scratch_bytes)) continue;
    if (!place.left.empty()) outgrown_.push_back(std::move(place));
    place = {};
    place.memory = allocate(plan.scratch_bytes);
    place.data = place.memory->data();
  }
}

bool Scratch::is_read(std::span<const PeerLink> links, int& reader) {
  int of_outgrown = -1;
  std::erase_if(outgrown_, [&](Area& place) { return place.is_read(links, of_outgrown); });
  return copies_[turn_].is_read(links, reader);
}

void Scratch::leave(std::span<const PeerLink> links) {
  std::vector<std::uint64_t>& left = copies_[turn_].left;
  left.resize(links.size());
  for (std::size_t rank = 0; rank < links.size(); ++rank) left[rank] = links[rank].sent;
}

void Scratch::hand_to(std::span<const PeerLink> links) const {
  const auto hand = [&](const Area& area) {
    for (const PeerLink& link : links)
      if (area.memory != nullptr && link.channel != nullptr) link.channel->keep(area.memory);
  };
  hand(own_);
  std::ranges::for_each(copies_, hand);
  std::ranges::for_each(outgrown_, hand);
}

}  // namespace tutti::internal
