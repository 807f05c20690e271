// What this rank has called on one communicator.
#pragma once

#include <cstdint>
#include <memory>

#include "control/control.h"
#include "types/call.h"

namespace tutti::internal {

// Numbers the calls, and keeps account of them: for the peers that ask what this rank is doing (CallHistory, which the
// control thread reads), and for the account that the rank gives when it leaves. Calls of one kind in a row count by
// their number alone, so a call like the one before costs a few stores. Under the engine's lock.
class CallLedger {
 public:
  const std::shared_ptr<CallHistory>& history() const { return history_; }

  std::uint32_t number_next() { return ++count_; }
  std::uint32_t count() const { return count_; }  // the number of the last

  // Call `sequence` is of this kind, a tag with sequence 0; so are those behind it until this is called again. Before
  // enter(sequence). `more`: what the tag does not say of it.
  void begin_kind(std::uint32_t sequence, const Tag& kind, std::uint64_t more = 0) {
    if (kind == kind_) return;
    kind_ = kind;
    history_->begins(sequence, kind);
    digest_ = mix(mix(mix(digest_ + sequence) + kind.word[0]) + kind.word[1]) + more;
  }
  // The next call begins now, if it can: then enter() says which one that is.
  void begin() { clock_.enters(); }
  void enter(std::uint32_t sequence) { history_->entered(sequence); }
  void complete(std::uint32_t sequence) {
    history_->completed(sequence);
    clock_.completes();
  }
  // It took so little that its end counts as its beginning.
  void complete_at_once(std::uint32_t sequence) {
    history_->completed(sequence);
    clock_.completes_at_once();
  }

  CallAccount account() const { return {count_, digest_, count_ == 0 ? Tag{} : Call::numbered(kind_, count_)}; }

 private:
  const std::shared_ptr<CallHistory> history_ = std::make_shared<CallHistory>();
  CallTimes::Clock clock_{history_->times()};
  std::uint32_t count_ = 0;
  Tag kind_{};  // of the last call that was entered
  std::uint64_t digest_ = 0;
};

}  // namespace tutti::internal
