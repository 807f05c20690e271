// What peers have answered when they were asked how they stand in a call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

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

  // Before all are asked anew.
  void forget() {
    const std::lock_guard lock(mutex_);
    answers_.clear();
  }

  // Whether `peer` has said that it is in the call.
  bool has_entered(int peer, std::uint32_t sequence) const {
    const std::lock_guard lock(mutex_);
    const auto answer = answers_.find(peer);
    return answer != answers_.end() && answer->second.sequence == sequence && answer->second.entered;
  }

  // Likewise, and too long ago to say which call that was.
  bool is_beyond(int peer, std::uint32_t sequence) const {
    const std::lock_guard lock(mutex_);
    const auto answer = answers_.find(peer);
    return answer != answers_.end() && answer->second.sequence == sequence && answer->second.entered &&
           answer->second.call == Tag{};
  }

  // The ranks that have said that they are not in the call. Nothing while one but `own` has not answered, unless
  // `is_late`.
  std::optional<std::vector<int>> absent_from(std::uint32_t sequence, int own, bool is_late) const {
    const std::lock_guard lock(mutex_);
    std::vector<int> absent;
    for (int peer = 0; peer < members_.size(); ++peer) {
      if (peer == own) continue;
      const auto answer = answers_.find(peer);
      const bool is_here = answer != answers_.end() && answer->second.sequence == sequence;
      if (!is_here && !is_late) return std::nullopt;
      if (is_here && !answer->second.entered) absent.push_back(peer);
    }
    return absent;
  }

  // "ranks 2 and 5 have not entered barrier #412; rank 2 last completed broadcast #411; rank 5 has completed no call
  // yet;", the first few of many.
  std::string absence_of(const std::vector<int>& absent, const Call& call) const {
    if (absent.size() == 1) return standing_of(absent.front(), call, false);
    const std::lock_guard lock(mutex_);
    std::string last;
    for (std::size_t i = 0; i < std::min(absent.size(), Members::kNamed); ++i)
      last.append(" ").append(members_.name_of(absent[i])).append(" ").append(last_of(absent[i])).append(";");
    return members_.names_of(absent) + " have not entered " + members_.name_of(call) + ";" + last;
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
    return name + " has not entered " + words + "; it " + last_of(peer) + ";";
  }

 private:
  // The caller holds the mutex, and there is an answer.
  std::string last_of(int peer) const {
    const Tag& last = answers_.at(peer).last;
    return last != Tag{} ? "last completed " + members_.name_of(Call::unpack(last)) : "has completed no call yet";
  }

  const Members& members_;
  mutable std::mutex mutex_;
  std::map<int, Notice> answers_;  // by peer
};

}  // namespace tutti::internal
