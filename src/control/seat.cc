#include "control/seat.h"

#include <algorithm>
#include <utility>

namespace tutti::internal {
namespace {

bool ends(const Vote& vote, const Notice& event) {
  const bool is_making = vote.on == Vote::On::making;
  switch (event.kind) {
    case Notice::Kind::decided: return event.communicator == vote.communicator && event.on == vote.on;
    case Notice::Kind::poisoned: return is_making && event.communicator == vote.communicator;
    case Notice::Kind::lost:
    case Notice::Kind::left: return is_making && std::ranges::find(vote.ranks, event.peer) != vote.ranks.end();
    default: return false;
  }
}

// Whether it is that recall, or a vote that it takes back if it was said before.
bool is_of_recall(const ControlMessage& said, const Notice& answer) {
  if (const auto* recall = std::get_if<Recall>(&said))
    return recall->communicator == answer.communicator && recall->on == answer.on && recall->number == answer.sequence;
  const auto* vote = std::get_if<Vote>(&said);
  return vote != nullptr && vote->communicator == answer.communicator && vote->on == answer.on;
}

}  // namespace

Seat::Seat(int rank, std::vector<int> hosts, const Pace& pace, Clock::time_point now)
    : rank_(rank),
      hosts_(std::move(hosts)),
      pace_(pace),
      log_(static_cast<int>(hosts_.size())),
      heard_(now),
      last_tick_(now),
      last_look_(now) {
  if (rank == 0) relay_.emplace(0, hosts_, log_, Farewells(), pace, now, std::vector<Clock::time_point>(), false);
}

// --- what happens

void Seat::received(int from, const ControlMessage& message, Clock::time_point now) {
  if (is_over_) return;
  notice_sleep(now);
  const auto* const sign = std::get_if<LifeSign>(&message);
  if (sign != nullptr && sign->is_question && !log_.is_gone(from)) {  // perhaps an old one: no sign of life itself
    outgoing_.push_back({from, LifeSign{}});
    return;
  }
  roll_call_.heard(from, now);
  if (const auto* withdrawal = std::get_if<Withdrawal>(&message)) return withdrawn(from, withdrawal->to, now);
  const auto* const notice = std::get_if<Notice>(&message);
  const bool is_expelled = notice != nullptr && notice->kind == Notice::Kind::expelled;
  if (!is_expelled) return_to(from, now);
  if (sign != nullptr && !is_hub() && !log_.is_gone(from)) return;
  // A hub from which this rank has turned away.
  if (from < rank_ && doubts_.contains(from) && !log_.is_gone(from) && is_enlisted_ &&
      std::holds_alternative<Ping>(message)) {
    if (is_hub() || !without_hub_since_) outgoing_.push_back({from, Desertion{}});
    return;
  }
  if (const auto* summons = std::get_if<Summons>(&message); summons != nullptr && !log_.is_gone(from)) {
    if (from > rank_ || from <= hub_) return;
    if (summons->is_sure) return follow(from, now);
    outgoing_.push_back({from, Ping{log_.size()}});  // it lives, and waits for the hub that it knows
  } else if (is_expelled) {
    if (notice->authority == Authority::minority) return given_up_by_minority(from, now);
    // Not from one that this rank has given up itself, unless it has found no other hub since.
    if (!log_.is_gone(from) && (!doubts_.contains(from) || without_hub_since_)) fence(from, notice->message);
  } else if (notice != nullptr && notice->kind == Notice::Kind::left && notice->peer == rank_) {
    is_over_ = true;
  } else if (is_hub()) {
    relay_->received(from, message, now);
    take_relayed();
    if (relay_->is_deserted()) fence(from, silent_for(pace_.silence));
  } else if (from == hub_ || speaks_as_hub(from, message)) {
    if (from != hub_) follow(from, now);
    heard_ = now;
    const auto* const ping = std::get_if<Ping>(&message);
    if (std::holds_alternative<Death>(message) || (ping != nullptr && !ping->is_open)) {  // it may wait for others
      if (without_hub_since_) without_hub_since_ = now;
      return heard_from_hub(message);
    }
    spoken_ = std::max(spoken_, from);
    without_hub_since_.reset();
    roll_call_.end();
    std::erase_if(doubts_, [this](const auto& doubt) {
      return doubt.first > hub_ && doubt.second.evidence == Evidence::silence;
    });
    if (woke_ && now - *woke_ > pace_.tick) woke_.reset();  // not by what was said while this rank slept
    heard_from_hub(message);
    choose_hub(now);
  } else if (from > rank_ && !log_.is_gone(from)) {
    hold(from, message);
  } else if (from > hub_ && from < rank_ && !log_.is_gone(from) && std::holds_alternative<Ping>(message)) {
    outgoing_.push_back({from, Withdrawal{}});  // this rank has gone back from there
  } else if (log_.is_lost(from)) {
    outgoing_.push_back({from, expulsion(rank_, log_.loss_of(from))});
  }
  // A rank that comes to this one, to make it the hub, brings a loss that a later hub has decided. That hub is lost
  // too.
  if (notice != nullptr && notice->kind == Notice::Kind::lost && from > rank_ && !is_hub() && !log_.is_gone(from) &&
      notice->serial > log_.size() && notice->authority != Authority::minority && notice->peer >= 0 &&
      notice->peer < rank_ && !log_.is_gone(notice->peer)) {
    const bool is_proof = notice->authority == Authority::kernel;
    doubt(notice->peer, {notice->message, is_proof ? Evidence::kernel : Evidence::closing});
    if (notice->peer == hub_) doubt_hub(notice->message, Evidence::closing, now);
  }
  const auto* const death = std::get_if<Death>(&message);
  if (death == nullptr || death->rank < 0 || death->rank >= rank_ || log_.is_gone(death->rank)) return;
  if (log_.is_gone(from) || !is_of_one_host(from, death->rank) || (from == hub_ && !is_hub())) return;
  doubt(death->rank, {died_by_kernel(), Evidence::kernel});  // also of a rank that may become the hub
  if (death->rank == hub_) doubt_hub(died_by_kernel(), Evidence::kernel, now);
}

// For the hub that this rank may become. Who enlists again says again what is not settled.
void Seat::hold(int from, const ControlMessage& message) {
  const auto is_old = [&](const auto& said) {
    const auto* const event = std::get_if<Notice>(&said.second);
    return said.first == from && (event == nullptr || event->serial == 0);
  };
  if (std::holds_alternative<Enlistment>(message)) std::erase_if(held_, is_old);
  held_.emplace_back(from, message);
}

void Seat::heard_from_hub(const ControlMessage& message) {
  if (const auto* ping = std::get_if<Ping>(&message)) {
    log_.forget(ping->known);
    outgoing_.push_back({hub_, Ping{log_.size()}});
  } else if (const auto* probe = std::get_if<Probe>(&message)) {
    answer(*probe);
  } else if (const auto* notice = std::get_if<Notice>(&message)) {
    if (notice->peer < 0 || notice->peer >= log_.ranks()) return;
    if (notice->serial == 0 || log_.append(*notice)) deliver(*notice);
  } else if (const auto* farewell = std::get_if<Farewell>(&message)) {
    farewells_.compare(*farewell);
  }
}

void Seat::deliver(const Notice& notice) {
  settle(notice);
  if (notice.kind == Notice::Kind::lost && notice.peer == rank_) return fence(hub_, notice.message);
  if (notice.kind == Notice::Kind::left && notice.peer == rank_) {
    is_over_ = true;
    return;
  }
  if (notice.kind == Notice::Kind::lost && !is_hub())
    outgoing_.push_back({notice.peer, expulsion(rank_, log_.loss_of(notice.peer))});
  if (log_.is_gone(notice.peer) && notice.kind != Notice::Kind::answer)
    std::erase_if(held_, [&](const auto& said) { return said.first == notice.peer; });
  notices_.push_back(notice);
}

// This rank hears no more of the job.
void Seat::fence(int by, const std::string& why) {
  if (std::exchange(is_over_, true)) return;
  notices_.push_back(expulsion(by, {.why = why}));
}

void Seat::closed(int rank, const std::string& what, Evidence evidence, Clock::time_point now) {
  if (is_over_) return;
  notice_sleep(now);
  const std::string why = evidence == Evidence::silence ? what : died(what);
  std::erase_if(held_,
                [&](const auto& said) { return said.first == rank && !std::holds_alternative<Goodbye>(said.second); });
  if (is_hub()) {
    relay_->lose(rank, why, evidence, now);
    take_relayed();
  } else if (rank < rank_ && (rank == hub_ || without_hub_since_)) {
    doubt(rank, {why, evidence});
    if (rank == hub_) doubt_hub(why, evidence, now);
  } else {
    roll_call_.not_reached(rank);
  }
}

void Seat::ended(int rank, Clock::time_point now) {
  if (is_over_ || log_.is_gone(rank)) return;
  notice_sleep(now);
  if (rank < rank_ && rank != hub_) doubt(rank, {died_by_kernel(), Evidence::kernel});
  if (is_hub()) {
    relay_->lose(rank, died_by_kernel(), Evidence::kernel, now);
    take_relayed();
  } else if (rank == hub_) {
    unsettled_.emplace_back(Death{rank});  // the next hub may be of another host, and not know
    doubt_hub(died_by_kernel(), Evidence::kernel, now);
  } else {
    request(Death{rank}, now);
  }
}

void Seat::look(Clock::time_point now) {
  if (is_over_ || !is_hub()) return;
  notice_sleep(now);
  relay_->judge(now);
  take_relayed();
}

void Seat::tick(Clock::time_point now) {
  if (is_over_) return;
  notice_sleep(now);
  last_tick_ = last_look_ = now;
  if (is_hub()) {
    relay_->tick(now);
    take_relayed();
    return;
  }
  // Ranks that do not become the hub are asked in vain one after the other. At some time that has to end.
  if (without_hub_since_ && now - *without_hub_since_ > 3 * pace_.silence)
    for (int rank = hub_; rank < rank_; rank = log_.next_present(rank))
      doubt(rank, {silent_for(pace_.silence), Evidence::silence});
  if (now - heard_ > pace_.silence) doubt_hub(silent_for(pace_.silence), Evidence::silence, now);
  ask_for_signs_of_life(now);
}

std::optional<Clock::time_point> Seat::due() const { return is_hub() && !is_over_ ? relay_->due() : std::nullopt; }

// What the relay says to this rank itself is in the log already.
void Seat::take_relayed() {
  for (std::vector<Outgoing> batch = relay_->take_outgoing(); !batch.empty(); batch = relay_->take_outgoing())
    for (Outgoing& out : batch) {
      if (out.rank != rank_)
        outgoing_.push_back(std::move(out));
      else if (const auto* notice = std::get_if<Notice>(&out.message))
        deliver(*notice);
      else if (const auto* probe = std::get_if<Probe>(&out.message))
        answer(*probe);
    }
}

// --- what this rank wants

void Seat::request(ControlMessage message, Clock::time_point now) {
  if (is_over_) return;
  notice_sleep(now);
  if (const auto* poison = std::get_if<Notice>(&message); poison && log_.has_failed(poison->communicator)) return;
  if (auto* vote = std::get_if<Vote>(&message)) {
    if (vote->on == Vote::On::making && !log_.can_make(vote->communicator, vote->ranks)) return;
    vote->known = log_.size();
  }
  if (!std::holds_alternative<Probe>(message) && !std::holds_alternative<Survey>(message))
    unsettled_.push_back(message);
  if (is_hub()) {
    relay_->received(rank_, message, now);
    take_relayed();
  } else if (is_enlisted_) {
    outgoing_.push_back({hub_, std::move(message)});
  }
}

void Seat::say_goodbye(Clock::time_point now) {
  if (is_over_) return;
  leaves_ = true;
  if (!is_hub()) return request(Goodbye{}, now);
  relay_->leave();
  take_relayed();
}

void Seat::settle(const Notice& notice) {
  if (notice.kind == Notice::Kind::absent) {
    const auto is_it = [&](const ControlMessage& said) {
      return std::holds_alternative<Recall>(said) && is_of_recall(said, notice);
    };
    const auto end = std::ranges::find_if(unsettled_, is_it);  // a vote behind it is another one
    if (end == unsettled_.end()) return;
    const auto keep = std::remove_if(unsettled_.begin(), end + 1,
                                     [&](const ControlMessage& said) { return is_of_recall(said, notice); });
    unsettled_.erase(keep, end + 1);
    return;
  }
  std::erase_if(unsettled_, [&](const ControlMessage& said) {
    if (const auto* vote = std::get_if<Vote>(&said)) return ends(*vote, notice);
    switch (notice.kind) {
      case Notice::Kind::poisoned: {
        const auto* poison = std::get_if<Notice>(&said);
        return poison != nullptr && poison->communicator == notice.communicator;
      }
      case Notice::Kind::agreed:
      case Notice::Kind::differed: {
        const auto* farewell = std::get_if<Farewell>(&said);
        return farewell != nullptr && farewell->communicator == notice.communicator;
      }
      case Notice::Kind::lost:
      case Notice::Kind::left: {
        const auto* death = std::get_if<Death>(&said);
        return death != nullptr && death->rank == notice.peer;
      }
      default: return false;
    }
  });
}

void Seat::answer(const Probe& probe) {
  Answer reply = histories_.answer(probe);
  reply.notice.peer = rank_;
  if (relay_)
    relay_->received(rank_, reply, last_look_);
  else
    outgoing_.push_back({hub_, std::move(reply)});
}

std::vector<Notice> Seat::take_notices() { return std::exchange(notices_, {}); }
std::vector<Outgoing> Seat::take_outgoing() { return std::exchange(outgoing_, {}); }

}  // namespace tutti::internal
