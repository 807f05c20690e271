// Whether a communicator can be used, and why not.
#pragma once

#include <atomic>
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

// well -> bereaved -> failed, or well -> failed; it never goes back. The first failure stays. Thread-safe: the control
// thread finds failures too.
//
// A failure that no call throws has to be said in another way when the rank leaves: the state keeps account of that.
class FailureState {
 public:
  // No rank is lost and no call has failed.
  bool is_well() const { return state_.load(std::memory_order_acquire) == State::well; }
  bool has_failed() const { return state_.load(std::memory_order_acquire) == State::failed; }
  std::optional<Failure> failure() const;  // nothing unless has_failed()
  std::optional<Failure> reason() const;   // the failure, else the loss; nothing if is_well()

  // False where it had failed before: then `failure` is dropped.
  bool fail(Failure failure);

  // A rank is lost. What it sent may still be on its way, and be all that the calls under way need. So they go on; the
  // communicator fails once one of them makes no progress: fail_by_loss(). The first loss counts.
  void lose(Failure loss);
  bool fail_by_loss();  // fails with the loss; false where there is none, or where it had failed before

  void note_thrown() { thrown_ = true; }      // a call has thrown the failure
  void note_unheard() { unheard_ = true; }    // a call failed, and nobody waits for it
  std::optional<std::string> take_unheard();  // what failed, once, if it is unheard and was never thrown

 private:
  enum class State : std::uint8_t { well, bereaved, failed };  // bereaved: a rank is lost

  std::atomic<State> state_{State::well};
  std::atomic<bool> thrown_{false}, unheard_{false};
  mutable std::mutex mutex_;  // guards the two below
  std::optional<Failure> failure_, loss_;
};

}  // namespace tutti::internal
