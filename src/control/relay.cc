#include "control/relay.h"

#include <algorithm>
#include <utility>

#include "control/join.h"

namespace tutti::internal {
namespace {

// Whether this process slept (stopped, swapped out, suspended) between two ticks.
bool was_asleep(const Pace& pace, Clock::time_point last_tick, Clock::time_point now) {
  return now - last_tick > 3 * pace.tick;
}

// Why a rank is lost, called "it": its number differs between communicators.
std::string died(const std::string& why) { return "its process died (" + why + ")"; }
std::string silent_for(Clock::duration silence) {
  return "no word from it for " + in_seconds(std::chrono::duration_cast<std::chrono::milliseconds>(silence)) +
         ": its process is stopped, or its host unreachable";
}

Notice verdict_on(const Farewell& mine, const std::optional<Farewell>& other) {
  Notice notice;
  notice.kind = other ? Notice::Kind::differed : Notice::Kind::agreed;
  notice.communicator = mine.communicator;
  notice.peer = other ? other->rank : mine.rank;
  if (other) notice.sequence = other->account.calls;
  if (other) notice.last = other->account.last;
  return notice;
}

}  // namespace

Pace Pace::of(std::chrono::milliseconds connect_timeout) {
  const auto tick = std::clamp<std::chrono::milliseconds>(connect_timeout / 5, std::chrono::milliseconds(10),
                                                          std::chrono::seconds(1));
  return {tick, 3 * connect_timeout};
}

Relay::Relay(int size, const Pace& pace, Clock::time_point now)
    : pace_(pace),
      present_(static_cast<std::size_t>(size), true),
      heard_(static_cast<std::size_t>(size), now),
      last_tick_(now) {}

void Relay::received(int from, const ControlMessage& message, Clock::time_point now) {
  if (!is_present(from)) return;
  heard_[static_cast<std::size_t>(from)] = now;
  if (std::holds_alternative<Goodbye>(message)) {
    if (from == 0)  // the hub goes, and with it whoever could compare
      for (const Farewell& first : farewells_.first())
        for (int rank = 1; rank < static_cast<int>(present_.size()); ++rank) tell(rank, first);
    depart(Notice::Kind::left, from, "it has left");
  } else if (const auto* notice = std::get_if<Notice>(&message); notice && notice->kind == Notice::Kind::poisoned) {
    Notice copy = *notice;
    copy.peer = from;
    tell_others(from, copy);
  } else if (const auto* probe = std::get_if<Probe>(&message)) {
    Probe copy = *probe;
    copy.from = from;
    if (copy.to < 0 || copy.to >= static_cast<int>(present_.size())) return;
    if (is_present(copy.to)) return tell(copy.to, copy);
    if (std::optional<Notice> answer = farewells_.answer_to(copy)) tell(from, std::move(*answer));
  } else if (const auto* answer = std::get_if<Answer>(&message)) {
    Notice copy = answer->notice;
    copy.kind = Notice::Kind::answer;
    copy.peer = from;
    tell(answer->to, std::move(copy));
  } else if (const auto* farewell = std::get_if<Farewell>(&message)) {
    Farewell copy = *farewell;
    copy.rank = from;
    tell(from, verdict_on(copy, farewells_.compare(copy)));
  }
}

void Relay::closed(int rank, const std::string& why) {
  if (is_present(rank)) depart(Notice::Kind::lost, rank, died(why));
}

void Relay::tick(Clock::time_point now) {
  if (was_asleep(pace_, last_tick_, now)) std::fill(heard_.begin(), heard_.end(), now);
  last_tick_ = now;
  for (int rank = 1; rank < static_cast<int>(present_.size()); ++rank) {
    if (!is_present(rank)) continue;
    if (now - heard_[static_cast<std::size_t>(rank)] > pace_.silence)
      depart(Notice::Kind::lost, rank, silent_for(pace_.silence));
    else
      tell(rank, Ping{});
  }
}

void Relay::depart(Notice::Kind kind, int rank, const std::string& message) {
  present_[static_cast<std::size_t>(rank)] = false;
  Notice notice;
  notice.kind = kind;
  notice.peer = rank;
  notice.code = kind == Notice::Kind::left ? ErrorCode::peer_left : ErrorCode::peer_lost;
  notice.message = message;
  tell_others(rank, notice);
}

void Relay::tell(int rank, ControlMessage message) {
  if (rank < 0 || rank >= static_cast<int>(present_.size()) || !is_present(rank)) return;
  Outgoing& out = outgoing_.emplace_back();
  out.rank = rank;
  out.message = std::move(message);
}

void Relay::tell_others(int rank, const Notice& notice) {
  for (int other = 0; other < static_cast<int>(present_.size()); ++other)
    if (other != rank) tell(other, notice);
}

std::vector<Relay::Outgoing> Relay::take_outgoing() { return std::exchange(outgoing_, {}); }

ControlMember::ControlMember(int rank, int size, const Pace& pace, Clock::time_point now)
    : rank_(rank), pace_(pace), gone_(static_cast<std::size_t>(size), false), heard_(now), last_tick_(now) {}

void ControlMember::received(const ControlMessage& message, Clock::time_point now) {
  heard_ = now;
  if (std::holds_alternative<Ping>(message)) {
    outgoing_.emplace_back(Ping{});
  } else if (const auto* probe = std::get_if<Probe>(&message)) {
    answer(*probe);
  } else if (const auto* notice = std::get_if<Notice>(&message)) {
    if (notice->peer < 0 || notice->peer >= static_cast<int>(gone_.size())) return;
    if (notice->kind == Notice::Kind::lost || notice->kind == Notice::Kind::left) {
      if (is_gone(notice->peer)) return;
      gone_[static_cast<std::size_t>(notice->peer)] = true;
    }
    if (notice->kind == Notice::Kind::agreed || notice->kind == Notice::Kind::differed)
      std::erase_if(unheard_, [&](const Farewell& said) { return said.communicator == notice->communicator; });
    notices_.push_back(*notice);
  } else if (const auto* farewell = std::get_if<Farewell>(&message)) {
    farewells_.compare(*farewell);
  }
}

void ControlMember::say_farewell(const Farewell& farewell) {
  if (hub_is_gone_) {
    notices_.push_back(verdict_on(farewell, farewells_.compare(farewell)));
  } else {
    unheard_.push_back(farewell);
    outgoing_.emplace_back(farewell);
  }
}

bool ControlMember::knows_answer(const Probe& probe) {
  std::optional<Notice> answer = is_gone(probe.to) ? farewells_.answer_to(probe) : std::nullopt;
  if (!answer) return false;
  notices_.push_back(std::move(*answer));
  return true;
}

void ControlMember::hub_is_gone() {
  hub_is_gone_ = true;
  for (const Farewell& said : std::exchange(unheard_, {})) say_farewell(said);
}

void ControlMember::closed(const std::string& why) { lose_hub(died(why)); }

void ControlMember::lose_hub(const std::string& why) {
  hub_is_gone();
  lost(0, why);
}

void ControlMember::lost(int peer, const std::string& why) {
  if (is_gone(peer)) return;
  Notice notice;
  notice.kind = Notice::Kind::lost;
  notice.peer = peer;
  notice.code = ErrorCode::peer_lost;
  notice.message = why;
  gone_[static_cast<std::size_t>(peer)] = true;
  notices_.push_back(notice);
}

void ControlMember::tick(Clock::time_point now) {
  if (was_asleep(pace_, last_tick_, now)) heard_ = now;
  last_tick_ = now;
  if (now - heard_ > pace_.silence) lose_hub(silent_for(pace_.silence));
}

void ControlMember::publish(std::uint64_t communicator, std::shared_ptr<const CallHistory> history) {
  histories_[communicator] = std::move(history);
}

// Others may still ask what this rank did there.
void ControlMember::unpublish(std::uint64_t communicator) {
  const auto found = histories_.find(communicator);
  if (found == histories_.end()) return;
  left_.emplace_front(*found);
  if (left_.size() > kKeptLeft) left_.pop_back();
  histories_.erase(found);
}

void ControlMember::answer(const Probe& probe) {
  Answer reply;
  reply.to = probe.from;
  reply.notice.kind = Notice::Kind::answer;
  reply.notice.peer = rank_;
  reply.notice.communicator = probe.communicator;
  reply.notice.sequence = probe.sequence;
  const auto find_left = [&](std::uint64_t communicator) {
    return std::ranges::find(left_, communicator, [](const auto& entry) { return entry.first; });
  };
  const auto left = find_left(probe.communicator);
  const auto found = histories_.find(probe.communicator);
  const bool was_made = left != left_.end() || found != histories_.end();
  reply.notice.has_left = left != left_.end() || (!was_made && find_left(probe.whole) != left_.end());
  if (was_made) {
    const CallHistory& history = left != left_.end() ? *left->second : *found->second;
    reply.notice.entered = history.at(probe.sequence, reply.notice.call) || history.is_ahead_of(probe.sequence);
    reply.notice.last = history.last_completed();
  }
  outgoing_.emplace_back(reply);
}

std::vector<Notice> ControlMember::take_notices() { return std::exchange(notices_, {}); }
std::vector<ControlMessage> ControlMember::take_outgoing() { return std::exchange(outgoing_, {}); }

}  // namespace tutti::internal
