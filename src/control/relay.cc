#include "control/relay.h"

#include <algorithm>
#include <utility>

namespace tutti::internal {
namespace {

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

Relay::Relay(int rank, std::vector<int> hosts, EventLog& log, Farewells farewells, const Pace& pace,
             Clock::time_point now, const std::vector<Clock::time_point>& heard, bool may_be_given_up)
    : rank_(rank),
      hosts_(std::move(hosts)),
      log_(log),
      known_at_first_(log.size()),
      farewells_(std::move(farewells)),
      pace_(pace),
      may_be_given_up_(may_be_given_up),
      last_look_(now),
      begun_(now),
      is_open_(heard.empty()),
      members_(hosts_.size(), Member{now, heard.empty(), heard.empty(), log.size()}) {
  for (std::size_t other = 0; other < heard.size(); ++other) members_[other].heard = heard[other];
  member(rank).enlisted = member(rank).confirmed = true;
}

void Relay::replay(const std::vector<std::pair<int, ControlMessage>>& said, Clock::time_point now) {
  is_replaying_ = true;
  for (const auto& [from, message] : said) received(from, message, now);
  is_replaying_ = false;
  for (int rank = 0; rank < log_.ranks(); ++rank) member(rank).confirmed = rank == rank_;
}

void Relay::received(int from, const ControlMessage& message, Clock::time_point now) {
  if (log_.is_lost(from)) return expel(from);  // it was given up, and has woken up
  if (log_.has_left(from)) {                   // and may not have heard that all know
    outgoing_.push_back({from, Notice{.kind = Notice::Kind::left, .peer = from}});
    return;
  }
  if (std::holds_alternative<Desertion>(message)) return deserted(from);  // as if it were silent
  deserters_.erase(from);
  member(from).heard = now;
  if (const auto silent = suspicions_.find(from);
      silent != suspicions_.end() && silent->second.evidence == Evidence::silence)
    suspicions_.erase(silent);
  if (std::holds_alternative<LifeSign>(message)) return;
  if (const auto* ping = std::get_if<Ping>(&message)) {
    if (is_open_) member(from).events = std::max(member(from).events, std::min(ping->known, log_.size()));
    member(from).confirmed = true;
    judge(now);
  } else if (const auto* enlistment = std::get_if<Enlistment>(&message)) {
    member(from).confirmed = true;
    if (!is_open_)  // it says again what is not settled
      std::erase_if(early_, [&](const auto& said) { return said.first == from; });
    enlist(from, enlistment->events);
    judge(now);
  } else if (const auto* event = std::get_if<Notice>(&message); event != nullptr && event->serial > 0) {
    if (is_open_ || !log_.append(*event)) return;
    tell(rank_, *event);
    if (event->kind == Notice::Kind::lost) expel(event->peer);
  } else if (const auto* death = std::get_if<Death>(&message)) {  // also before all have come: it may be waited for
    const int rank = death->rank;
    if (rank < 0 || rank >= log_.ranks() || rank == rank_) return;
    if (hosts_[static_cast<std::size_t>(rank)] == hosts_[static_cast<std::size_t>(from)])
      lose(rank, died_by_kernel(), Evidence::kernel, now);
  } else if (is_open_) {
    serve(from, message);
    judge(now);
  } else {
    early_.emplace_back(from, message);
  }
}

void Relay::deserted(int by) {
  deserters_.insert(by);
  is_deserted_ = log_.is_majority([this](int rank) { return deserters_.contains(rank); });
}

void Relay::enlist(int rank, std::uint32_t events) {
  const bool is_new = !std::exchange(member(rank).enlisted, true);
  member(rank).events = events;
  if (!is_open_) return;
  // It comes too late: it has heard from the last hub what nobody else has, and this one has decided otherwise since.
  if ((is_new && events > opened_at_) || events > log_.size())
    return lose(rank, "it came too late to the new hub", Evidence::closing, member(rank).heard);
  if (events < log_.forgotten())
    return lose(rank, "it does not know what all others know", Evidence::closing, member(rank).heard);
  for (const Notice& event : log_.behind(events)) tell(rank, event);
}

void Relay::forget(int rank) {
  member(rank).enlisted = false;
  std::erase_if(early_, [&](const auto& said) { return said.first == rank; });
}

std::vector<int> Relay::enlisted() const {
  std::vector<int> ranks;
  for (int rank = 0; rank < log_.ranks(); ++rank)
    if (rank != rank_ && !log_.is_gone(rank) && members_[static_cast<std::size_t>(rank)].enlisted)
      ranks.push_back(rank);
  return ranks;
}

void Relay::open_if_complete() {
  if (is_open_ || is_replaying_) return;
  for (int rank = 0; rank < log_.ranks(); ++rank)
    if (!log_.is_gone(rank) && !suspicions_.contains(rank) && !(member(rank).enlisted && member(rank).confirmed))
      return;
  is_open_ = true;
  opened_at_ = log_.size();
  if (log_.is_majority([this](int rank) { return member(rank).enlisted; })) may_be_given_up_ = false;
  for (int rank = 0; rank < log_.ranks(); ++rank)
    if (rank != rank_ && member(rank).enlisted) enlist(rank, member(rank).events);
  for (const auto& [from, message] : std::exchange(early_, {}))
    if (!log_.is_gone(from)) serve(from, message);
}

void Relay::serve(int from, const ControlMessage& message) {
  if (std::holds_alternative<Goodbye>(message)) {
    log({.kind = Notice::Kind::left, .peer = from, .code = ErrorCode::peer_left, .message = "it has left"});
  } else if (const auto* notice = std::get_if<Notice>(&message); notice && notice->kind == Notice::Kind::poisoned) {
    if (log_.has_failed(notice->communicator)) return;
    log({.kind = Notice::Kind::poisoned,
         .peer = from,
         .communicator = notice->communicator,
         .code = notice->code,
         .message = notice->message,
         .about = notice->about});
  } else if (const auto* vote = std::get_if<Vote>(&message)) {
    votes_.heard(from, *vote, log_);
  } else if (const auto* recall = std::get_if<Recall>(&message)) {
    tell(from, Notice{.kind = Notice::Kind::absent,
                      .peer = from,
                      .communicator = recall->communicator,
                      .on = recall->on,
                      .ranks = votes_.recall(from, recall->communicator, recall->on, log_),
                      .sequence = recall->number});
  } else if (const auto* asked = std::get_if<Survey>(&message)) {
    survey(from, *asked);
  } else if (const auto* probe = std::get_if<Probe>(&message)) {
    Probe copy = *probe;
    copy.from = from;
    if (copy.to < 0 || copy.to >= log_.ranks()) return;
    if (!log_.is_gone(copy.to)) return tell(copy.to, copy);
    if (std::optional<Notice> answer = farewells_.answer_to(copy)) tell(from, std::move(*answer));
  } else if (const auto* answer = std::get_if<Answer>(&message)) {
    Notice copy = answer->notice;
    copy.kind = Notice::Kind::answer;
    copy.peer = from;
    copy.serial = 0;
    tell(answer->to, std::move(copy));
  } else if (const auto* farewell = std::get_if<Farewell>(&message)) {
    Farewell copy = *farewell;
    copy.rank = from;
    const std::optional<Farewell> other = farewells_.compare(copy);
    if (other && copy.peer < 0 && other->peer < 0 && !log_.has_failed(copy.communicator)) {
      const auto [mine, theirs] = first_difference(copy, *other);
      log({.kind = Notice::Kind::poisoned,
           .peer = from,
           .communicator = copy.communicator,
           .code = ErrorCode::mismatch,
           .about = other->rank,
           .call = mine,
           .last = theirs});
    }
    tell(from, verdict_on(copy, other));
  }
}

void Relay::close_votes() {
  const auto is_suspected = [this](int rank) { return !is_here(rank); };
  for (Notice& decided : votes_.take_decided(log_, is_suspected)) {
    decided.peer = rank_;
    log(std::move(decided));
  }
}

std::uint32_t Relay::known_to_all() const {
  std::uint32_t known = log_.size();
  for (int rank = 0; rank < log_.ranks(); ++rank) {
    const Member& one = members_[static_cast<std::size_t>(rank)];
    if (rank != rank_ && !log_.is_gone(rank)) known = std::min(known, one.enlisted ? one.events : 0);
  }
  return known;
}

void Relay::survey(int from, const Survey& survey) {
  const auto [last, is_first] = surveys_.try_emplace(survey.communicator, survey.sequence, from);
  auto& [sequence, asker] = last->second;
  if (!is_first && sequence == survey.sequence && asker != from && !log_.is_gone(asker)) return;
  last->second = {survey.sequence, from};
  for (const std::int32_t rank : survey.ranks)
    serve(from, Probe{from, rank, survey.communicator, survey.whole, survey.sequence});
}

// The hub goes, and with it whoever could compare.
void Relay::leave() {
  if (!is_open_) return;
  const int next = log_.next_present(rank_);
  for (const Farewell& first : farewells_.first()) tell(next, first);
  serve(rank_, Goodbye{});
}

void Relay::log(Notice event) {
  event.serial = log_.size() + 1;
  if (!log_.append(event)) return;
  const bool leaves = event.kind == Notice::Kind::left;  // it hears that it has been heard
  for (int rank = 0; rank < log_.ranks(); ++rank)
    if (rank == rank_ || (member(rank).enlisted && (!log_.is_gone(rank) || (leaves && rank == event.peer))))
      outgoing_.push_back({rank, event});
  if (event.kind == Notice::Kind::lost) expel(event.peer);
}

void Relay::expel(int rank) { outgoing_.push_back({rank, expulsion(rank_, log_.loss_of(rank))}); }

void Relay::tell(int rank, ControlMessage message) {
  if (rank < 0 || rank >= log_.ranks() || (log_.is_gone(rank) && rank != rank_)) return;
  outgoing_.push_back({rank, std::move(message)});
}

std::vector<Outgoing> Relay::take_outgoing() { return std::exchange(outgoing_, {}); }

}  // namespace tutti::internal
