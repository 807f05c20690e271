#include "runtime/failure_state.h"

#include <utility>

namespace tutti::internal {

std::optional<Failure> FailureState::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::optional<Failure> FailureState::reason() const {
  const std::lock_guard lock(mutex_);
  return failure_ ? failure_ : loss_ ? loss_ : accusation_;
}

bool FailureState::fail(Failure failure) {
  const std::lock_guard lock(mutex_);
  return end(loss_ ? *loss_ : std::move(failure));
}

bool FailureState::end(Failure failure) {
  if (failure_) return false;
  failure_ = std::move(failure);
  state_.store(State::failed, std::memory_order_release);
  verdict_.notify_all();
  return true;
}

bool FailureState::accuse(Failure failure) {
  const std::lock_guard lock(mutex_);
  if (failure_ || accusation_) return false;
  accusation_ = std::move(failure);
  accused_at_ = std::chrono::steady_clock::now();
  state_.store(State::accused, std::memory_order_release);
  return true;
}

bool FailureState::wait_for_verdict(std::chrono::milliseconds limit) const {
  std::unique_lock lock(mutex_);
  return verdict_.wait_for(lock, limit, [this] { return failure_.has_value(); });
}

bool FailureState::fail_by_accusation() {
  const std::lock_guard lock(mutex_);
  return accusation_ && end(*accusation_);
}

std::optional<std::chrono::steady_clock::time_point> FailureState::accused_at() const {
  const std::lock_guard lock(mutex_);
  return accusation_ && !failure_ ? std::optional(accused_at_) : std::nullopt;
}

void FailureState::lose(Failure loss) {
  const std::lock_guard lock(mutex_);
  if (failure_ || loss_) return;
  loss_ = std::move(loss);
  if (!accusation_) state_.store(State::bereaved, std::memory_order_release);
}

bool FailureState::fail_by_loss() {
  const std::lock_guard lock(mutex_);
  return loss_ && end(*loss_);
}

std::optional<std::string> FailureState::take_unheard() {
  if (!unheard_.exchange(false)) return std::nullopt;
  const auto what = failure();
  return what && claim_telling() ? std::optional(what->message) : std::nullopt;
}

}  // namespace tutti::internal
