#include "transport/inproc/hub.h"

namespace tutti::internal::inproc {

std::shared_ptr<Lane> Hub::lane(const Key& key) {
  std::shared_ptr<Lane>& lane = lanes_[key];
  if (!lane) lane = std::make_shared<Lane>();
  return lane;
}

void Hub::drop_if_left(const Key& key) {
  const auto at = lanes_.find(key);
  if (at != lanes_.end() && at->second->sender_gone && at->second->receiver_gone) lanes_.erase(at);
}

}  // namespace tutti::internal::inproc
