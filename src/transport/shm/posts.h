// Where the two ends of a channel want each other's messages (PostedAt). A post waits for a line of the same tag to
// take it along; it goes alone, to a place of its own in the lane, when the channel is flushed or another post comes.
#pragma once

#include <array>
#include <cstdint>

#include "transport/shm/lane.h"
#include "transport/transport.h"
#include "types/tag.h"

namespace tutti::internal::shm {

class Posts {
 public:
  // --- what this end wants. `out`: the lane that this rank writes
  void want(const PostedAt& post, const Tag& tag, Lane& out) {
    if (has_waiting()) write_alone(out);
    waiting_ = post;
    waiting_tag_ = tag;
  }
  bool has_waiting() const { return waiting_.message != 0; }
  // For a line of `tag`: the post that waits, if it may go along; else none. Requires has_waiting(), as the next does.
  PostedAt take_along(const Tag& tag);
  void write_alone(Lane& out);
  // Message number `message` has come without.
  void forget(std::uint64_t message) {
    if (waiting_.message == message + 1) waiting_ = {};
  }

  // --- what the peer wants
  void heard(const PostedAt& post) {
    if (post.message != 0) heard_[(post.message - 1) % kPosts] = post;
  }
  // The peer's post for message number `message`, of `tag`; if there is none, its `message` is 0. `in`: the lane that
  // the peer writes. Throws TagMismatch, which names `peer`.
  PostedAt find(std::uint64_t message, const Tag& tag, const Lane& in, int peer) const {
    const PostedAt heard = heard_[message % kPosts];
    if (heard.message == message + 1) return heard;
    const Post& alone = in.posts[message % kPosts];
    if (alone.stamp.load(std::memory_order_acquire) != message + 1) return {};
    if (tag_of(alone.tag) != tag) throw TagMismatch{peer, tag, tag_of(alone.tag)};
    return alone.post;
  }

 private:
  PostedAt waiting_{};
  Tag waiting_tag_;
  std::array<PostedAt, kPosts> heard_{};  // by lines
};

}  // namespace tutti::internal::shm
