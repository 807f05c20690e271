#include "runtime/failure_state.h"

#include <utility>

namespace tutti::internal {

std::optional<Failure> FailureState::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::optional<Failure> FailureState::reason() const {
  const std::lock_guard lock(mutex_);
  return failure_ ? failure_ : loss_;
}

bool FailureState::fail(Failure failure) {
  const std::lock_guard lock(mutex_);
  if (failure_) return false;
  failure_ = std::move(failure);
  state_.store(State::failed, std::memory_order_release);
  return true;
}

void FailureState::lose(Failure loss) {
  const std::lock_guard lock(mutex_);
  if (failure_ || loss_) return;
  loss_ = std::move(loss);
  state_.store(State::bereaved, std::memory_order_release);
}

bool FailureState::fail_by_loss() {
  const std::lock_guard lock(mutex_);
  if (failure_ || !loss_) return false;
  failure_ = loss_;
  state_.store(State::failed, std::memory_order_release);
  return true;
}

std::optional<std::string> FailureState::take_unheard() {
  if (!unheard_.exchange(false) || thrown_) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return failure_ ? std::optional(failure_->message) : std::nullopt;
}

}  // namespace tutti::internal
