#include "transport/shm/kept.h"

namespace tutti::internal::shm {

std::size_t Kept::reusing(const Unread& lines) {
  while (!reusing_.empty() && !lines.has(reusing_.front())) reusing_.pop();
  return reusing_.size();
}

bool Kept::should_keep(const Unread& lines) {
  if (may_keep_ == 0 || spaces_.size() + reusing(lines) >= most_) return false;
  --may_keep_;
  return true;
}

bool Kept::should_keep_own() {
  if (may_keep_ == 0) return false;
  --may_keep_;
  return true;
}

std::byte* Kept::find(std::size_t bytes) {
  for (; !spaces_.empty(); spaces_.pop())
    if (spaces_.front().bytes >= bytes) return spaces_.front().data;
  return nullptr;
}

std::uint32_t Kept::take(std::uint32_t line) {
  const std::uint32_t first = first_line();
  is_held_ = false;
  spaces_.pop();
  reusing_.push(line);
  return first;
}

void Kept::give_up() {
  if (spaces_.empty()) return;
  const Space first = spaces_.front();
  while (!spaces_.empty()) spaces_.pop();
  if (is_held_) spaces_.push(first);
}

}  // namespace tutti::internal::shm
