#include "runtime/control_relay.h"

#include <algorithm>
#include <utility>

#include "runtime/join.h"

namespace tutti::runtime {
namespace {

// Whether this process slept (stopped, swapped out, suspended) between two ticks.
bool was_asleep(const Pace& pace, Clock::time_point last_tick, Clock::time_point now) {
  return now - last_tick > 3 * pace.tick;
}

std::string no_word_from(int rank, Clock::duration silence) {
  return "no word from rank " + std::to_string(rank) + " for " +
         in_seconds(std::chrono::duration_cast<std::chrono::milliseconds>(silence)) +
         ": its process is stopped, or its host unreachable";
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
    depart(Notice::Kind::left, from, "rank " + std::to_string(from) + " has left");
  } else if (const auto* notice = std::get_if<Notice>(&message); notice && notice->kind == Notice::Kind::poisoned) {
    Notice copy = *notice;
    copy.peer = from;
    tell_others(from, copy);
  } else if (const auto* probe = std::get_if<Probe>(&message)) {
    tell(probe->to, Probe{from, probe->to, probe->communicator, probe->sequence});
  } else if (const auto* answer = std::get_if<Answer>(&message)) {
    Notice copy = answer->notice;
    copy.kind = Notice::Kind::answer;
    copy.peer = from;
    tell(answer->to, std::move(copy));
  }
}

void Relay::closed(int rank, const std::string& why) {
  if (is_present(rank)) depart(Notice::Kind::lost, rank, "rank " + std::to_string(rank) + " died (" + why + ")");
}

void Relay::tick(Clock::time_point now) {
  if (was_asleep(pace_, last_tick_, now)) std::fill(heard_.begin(), heard_.end(), now);
  last_tick_ = now;
  for (int rank = 1; rank < static_cast<int>(present_.size()); ++rank) {
    if (!is_present(rank)) continue;
    if (now - heard_[static_cast<std::size_t>(rank)] > pace_.silence)
      depart(Notice::Kind::lost, rank, no_word_from(rank, pace_.silence));
    else
      tell(rank, Ping{});
  }
}

bool Relay::is_empty() const {
  return std::none_of(present_.begin() + 1, present_.end(), [](bool p) { return p; });
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

Seat::Seat(int rank, int size, const Pace& pace, Clock::time_point now)
    : rank_(rank), pace_(pace), gone_(static_cast<std::size_t>(size), false), heard_(now), last_tick_(now) {}

void Seat::received(const ControlMessage& message, Clock::time_point now) {
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
    notices_.push_back(*notice);
  }
}

void Seat::closed(const std::string& why) {
  if (is_gone(0)) return;
  Notice notice;
  notice.kind = Notice::Kind::lost;
  notice.peer = 0;
  notice.code = ErrorCode::peer_lost;
  notice.message = "rank 0 died (" + why + ")";
  gone_[0] = true;
  notices_.push_back(notice);
}

void Seat::tick(Clock::time_point now) {
  if (was_asleep(pace_, last_tick_, now)) heard_ = now;
  last_tick_ = now;
  if (now - heard_ > pace_.silence) closed(no_word_from(0, pace_.silence));
}

void Seat::publish(std::uint64_t communicator, std::shared_ptr<const CallHistory> history) {
  histories_[communicator] = std::move(history);
}

void Seat::answer(const Probe& probe) {
  Answer reply;
  reply.to = probe.from;
  reply.notice.kind = Notice::Kind::answer;
  reply.notice.peer = rank_;
  reply.notice.communicator = probe.communicator;
  reply.notice.sequence = probe.sequence;
  if (const auto found = histories_.find(probe.communicator); found != histories_.end()) {
    const CallHistory& history = *found->second;
    reply.notice.entered = history.at(probe.sequence, reply.notice.call) || history.is_ahead_of(probe.sequence);
    reply.notice.last = history.last_completed();
  }
  outgoing_.emplace_back(reply);
}

std::vector<Notice> Seat::take_notices() { return std::exchange(notices_, {}); }
std::vector<ControlMessage> Seat::take_outgoing() { return std::exchange(outgoing_, {}); }

}  // namespace tutti::runtime
