// Whether a communicator can be used, and why not.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "tutti/error.h"

namespace tutti::internal {

// Why a communicator cannot be used.
struct Failure {
  ErrorCode code;
  int peer;  // of the communicator, or -1
  std::string message;
};

// It never goes back:
// - well: calls are made, and go on.
// - bereaved: a rank is lost. Calls under way go on, none begins.
// - accused: this rank found a failure, and has asked the hub for the verdict. Calls stand still.
// - failed: the first event of the hub that concerns the communicator has been heard: a loss or a verdict.
// Thread-safe: the control thread hears the events.
//
// A failure that no call throws has to be said in another way when the rank leaves: the state keeps account of that.
class FailureState {
 public:
  bool is_well() const { return state_.load(std::memory_order_acquire) == State::well; }
  bool goes_on() const { return state_.load(std::memory_order_acquire) <= State::bereaved; }  // calls under way do
  bool has_failed() const { return state_.load(std::memory_order_acquire) == State::failed; }
  std::optional<Failure> failure() const;  // nothing unless has_failed()
  std::optional<Failure> reason() const;   // the failure, else the loss; nothing if is_well()

  // The verdict. If a loss was heard before, that is the failure. False where it had failed before.
  bool fail(Failure failure);

  // False where it is accused already or has failed.
  bool accuse(Failure failure);
  // Blocks until the verdict is there, or until `limit` has passed. Whether it is there.
  bool wait_for_verdict(std::chrono::milliseconds limit) const;
  // No verdict comes: fails with what this rank has found. False where there is none, or where it had failed before.
  bool fail_by_accusation();
  std::optional<std::chrono::steady_clock::time_point> accused_at() const;

  // A rank is lost. What it sent may still be on its way, and be all that the calls under way need. So they go on; the
  // communicator fails once one of them makes no progress: fail_by_loss(). The first loss counts.
  void lose(Failure loss);
  bool fail_by_loss();  // fails with the loss; false where there is none, or where it had failed before

  // True once: whoever is about to tell the user of the failure, in an error or in the log, is the first.
  bool claim_telling() { return !told_.exchange(true); }
  void note_unheard() { unheard_ = true; }  // a call failed, and nobody waits for it
  // What failed, if it is unheard and nobody has told of it yet; the caller tells of it.
  std::optional<std::string> take_unheard();

 private:
  enum class State : std::uint8_t { well, bereaved, accused, failed };
  bool end(Failure failure);  // the caller holds the mutex

  std::atomic<State> state_{State::well};
  std::atomic<bool> told_{false}, unheard_{false};
  mutable std::mutex mutex_;  // guards what follows
  mutable std::condition_variable verdict_;
  std::optional<Failure> failure_, loss_, accusation_;
  std::chrono::steady_clock::time_point accused_at_;
};

}  // namespace tutti::internal
