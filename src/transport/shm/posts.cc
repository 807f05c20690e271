#include "transport/shm/posts.h"

#include <utility>

namespace tutti::internal::shm {

void Posts::write_alone(Lane& out) {
  Post& post = out.posts[(waiting_.message - 1) % kPosts];
  post.tag[0] = waiting_tag_.word[0];
  post.tag[1] = waiting_tag_.word[1];
  post.post = waiting_;
  post.stamp.store(waiting_.message, std::memory_order_release);
  waiting_ = {};
}

PostedAt Posts::take_along(const Tag& tag) {
  return waiting_tag_ == tag ? std::exchange(waiting_, PostedAt{}) : PostedAt{};
}

}  // namespace tutti::internal::shm
