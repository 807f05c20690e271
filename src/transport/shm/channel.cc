#include "transport/shm/channel.h"

namespace tutti::internal::shm {

std::uint64_t Channel::sent_after_progress() {
  if (sender_.has_waiting()) progress();
  return sender_.sent();
}

std::uint64_t Channel::published() {
  if (sender_.has_waiting()) progress();
  return sender_.published();
}

bool Channel::progress() {
  const bool pushed = sender_.push_waiting();
  return receiver_.fill() || pushed;
}

}  // namespace tutti::internal::shm
