#include "transport/inproc/hub.h"

namespace tutti::internal::inproc {

std::shared_ptr<Direction> Hub::direction(const Key& key) {
  std::shared_ptr<Direction>& direction = directions_[key];
  if (!direction) direction = std::make_shared<Direction>();
  return direction;
}

void Hub::drop_if_left(const Key& key) {
  const auto at = directions_.find(key);
  if (at != directions_.end() && at->second->sender_gone && at->second->receiver_gone) directions_.erase(at);
}

}  // namespace tutti::internal::inproc
