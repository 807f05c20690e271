// What peers have answered when they were asked how they stand in a call.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "control/control.h"
#include "runtime/members.h"
#include "types/call.h"

namespace tutti::internal {

// Thread-safe: the control thread brings the answers.
class PeerAnswers {
 public:
  explicit PeerAnswers(const Members& members) : members_(members) {}

  void heard(int peer, const Notice& answer) {
    const std::lock_guard lock(mutex_);
    answers_[peer] = answer;
  }

  // Whether `peer` has said that it is in the call.
  bool has_entered(int peer, std::uint32_t sequence) const {
    const std::lock_guard lock(mutex_);
    const auto answer = answers_.find(peer);
    return answer != answers_.end() && answer->second.sequence == sequence && answer->second.entered;
  }

  // How `peer` stands in the call, as far as it has said: "rank 2 has not entered all_reduce #412 (float32 x 1048576,
  // sum); it last completed broadcast #411;". takes: this rank waits for it to take what was sent to it.
  std::string standing_of(int peer, const Call& call, bool takes) const {
    const std::lock_guard lock(mutex_);
    const auto answer = answers_.find(peer);
    const std::string name = members_.name_of(peer), words = members_.name_of(call);
    if (answer == answers_.end() || answer->second.sequence != call.sequence)
      return name + " does not answer in " + words;
    if (answer->second.entered)
      return name + " is in " + words + " too, but " +
             (takes ? "has not taken what is sent to it" : "what it should send has not come");
    const bool some = answer->second.last != Tag{};
    return name + " has not entered " + words + "; it " +
           (some ? "last completed " + members_.name_of(Call::unpack(answer->second.last))
                 : "has completed no call yet") +
           ";";
  }

 private:
  const Members& members_;
  mutable std::mutex mutex_;
  std::map<int, Notice> answers_;  // by peer
};

}  // namespace tutti::internal
