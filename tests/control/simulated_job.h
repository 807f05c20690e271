// A job of Seats without sockets, processes or clocks: the messages between them take their time, and ranks are
// stopped, killed and cut off as a test says. Time goes in steps of a millisecond.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/seat.h"

namespace tutti::internal {

class SimulatedJob {
 public:
  using Kind = Notice::Kind;
  using milliseconds = std::chrono::milliseconds;

  SimulatedJob(std::vector<int> hosts, const Pace& pace, unsigned seed)
      : hosts_(std::move(hosts)), pace_(pace), random_(seed), ranks_(hosts_.size()) {
    for (int rank = 0; rank < size(); ++rank) {
      Rank& one = at(rank);
      one.seat = std::make_unique<Seat>(rank, hosts_, pace_, now_);
      one.next_tick = now_ + milliseconds(1 + random_() % 500);
      if (rank > 0) open(0, rank);
    }
  }

  int size() const { return static_cast<int>(ranks_.size()); }
  Seat& seat(int rank) { return *at(rank).seat; }
  const std::vector<Notice>& heard(int rank) { return at(rank).heard; }
  std::vector<Notice> events(int rank) {
    std::vector<Notice> events;
    for (const Notice& notice : heard(rank))
      if (notice.serial > 0) events.push_back(notice);
    return events;
  }
  bool has_heard(int rank, Kind kind, int peer) {
    return std::ranges::any_of(heard(rank), [&](const Notice& n) { return n.kind == kind && n.peer == peer; });
  }
  // The process is there and runs. It may have left the job.
  bool runs(int rank) { return at(rank).state == State::runs; }
  Clock::time_point now() const { return now_; }

  // --- what a test does
  void poison(int rank, std::uint64_t communicator, const std::string& why) {
    Notice poison;
    poison.kind = Kind::poisoned;
    poison.peer = rank;
    poison.communicator = communicator;
    poison.message = why;
    seat(rank).request(poison, now_);
    pump(rank);
  }
  // All ranks make something together; those that are stopped say so when they go on.
  void make(std::uint64_t communicator) {
    Vote vote{.communicator = communicator, .on = Vote::On::making, .has_made = true};
    for (int rank = 0; rank < size(); ++rank) vote.ranks.push_back(rank);
    for (int rank = 0; rank < size(); ++rank) {
      if (at(rank).state == State::dead || at(rank).leaves) continue;
      seat(rank).request(vote, now_);
      if (runs(rank)) pump(rank);
    }
  }
  void leave(int rank) {
    at(rank).leaves = true;
    seat(rank).say_goodbye(now_);
    pump(rank);
  }
  // child: a forked child keeps its connections open.
  void kill(int rank, bool child = false) {
    at(rank).state = State::dead;
    if (!child) close_all(rank);
    for (int other = 0; other < size(); ++other)
      if (hosts_[static_cast<std::size_t>(other)] == hosts_[static_cast<std::size_t>(rank)])
        at(other).ended.emplace_back(now_ + milliseconds(10), rank);
  }
  void stop(int rank) {
    if (at(rank).state == State::runs) at(rank).state = State::stopped;
  }
  void go_on(int rank) {
    if (at(rank).state == State::stopped) at(rank).state = State::runs;
  }
  void cut(int host, int other) { cuts_.insert(std::minmax(host, other)); }
  // Each connection comes back within that time, not all at once.
  void mend(milliseconds within) {
    for (int a = 0; a < size(); ++a)
      for (int b = 0; b < a; ++b)
        if (is_cut(a, b)) back_at_[{b, a}] = now_ + milliseconds(random_() % static_cast<unsigned>(within.count() + 1));
    cuts_.clear();
  }

  void run(milliseconds time) {
    for (const auto end = now_ + time; now_ < end;) step();
  }

 private:
  enum class State { runs, stopped, dead };
  struct Rank {
    std::unique_ptr<Seat> seat;
    State state = State::runs;
    bool leaves = false;
    Clock::time_point next_tick;
    std::vector<Notice> heard;
    std::vector<std::pair<Clock::time_point, int>> ended;  // processes of its host, and when it hears of that
    std::map<int, Clock::time_point> called;               // ranks to which it makes a connection, and since when
    std::set<int> summoned;                                // by it as the hub, over the connections that are there
  };
  // One direction of a connection. A message that is empty is the end.
  struct Line {
    bool is_open = true;
    std::deque<std::pair<Clock::time_point, std::optional<ControlMessage>>> on_the_way;
  };

  Rank& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  bool is_cut(int a, int b) const {
    const auto back = back_at_.find(std::minmax(a, b));
    return cuts_.contains(std::minmax(hosts_[static_cast<std::size_t>(a)], hosts_[static_cast<std::size_t>(b)])) ||
           (back != back_at_.end() && now_ < back->second);
  }
  void open(int a, int b) {
    lines_[{a, b}] = lines_[{b, a}] = Line();
    at(a).summoned.erase(b);
    at(b).summoned.erase(a);
  }
  bool is_open(int from, int to) {
    const auto line = lines_.find({from, to});
    return line != lines_.end() && line->second.is_open;
  }
  void put(int from, int to, std::optional<ControlMessage> message) {
    Line& line = lines_[{from, to}];
    auto when = now_ + milliseconds(1 + random_() % 3);
    if (!line.on_the_way.empty()) when = std::max(when, line.on_the_way.back().first);
    if (!message) line.is_open = false;
    line.on_the_way.emplace_back(when, std::move(message));
  }
  void close_all(int rank) {
    for (int other = 0; other < size(); ++other)
      if (is_open(rank, other)) put(rank, other, std::nullopt);
  }

  void step() {
    now_ += milliseconds(1);
    for (int rank = 0; rank < size(); ++rank) {
      Rank& one = at(rank);
      if (one.state != State::runs) continue;
      for (int other = 0; other < size(); ++other) take(other, rank);
      for (const auto& [when, who] : std::vector(one.ended))
        if (when <= now_ && watches(rank, who)) one.seat->ended(who, now_);
      std::erase_if(one.ended, [&](const auto& end) { return end.first <= now_ && watches(rank, end.second); });
      const auto due = one.seat->due();
      if (due && *due <= now_) one.seat->look(now_);
      if (one.next_tick <= now_) one.seat->tick(now_);
      if (one.next_tick <= now_) one.next_tick = now_ + pace_.tick + milliseconds(random_() % 3);
      if (one.leaves && one.seat->is_hub() && !one.seat->is_over()) one.seat->say_goodbye(now_);
      pump(rank);
      call(rank);
    }
  }

  // The lowest of a host watches the others, these the lowest other. Those before the hub are doubted.
  bool watches(int rank, int who) {
    for (int lower = seat(rank).hub(); lower < std::min(rank, who); ++lower)
      if (hosts_[static_cast<std::size_t>(lower)] == hosts_[static_cast<std::size_t>(rank)] &&
          !seat(rank).log().is_gone(lower))
        return false;
    return true;
  }

  void take(int from, int to) {
    const auto line = lines_.find({from, to});
    if (line == lines_.end()) return;
    auto& queue = line->second.on_the_way;
    while (!queue.empty() && queue.front().first <= now_ && !is_cut(from, to)) {
      const auto message = std::move(queue.front().second);
      queue.pop_front();
      if (message) {
        seat(to).received(from, *message, now_);
      } else {
        if (is_open(to, from)) put(to, from, std::nullopt);
        seat(to).closed(from, "closed", Evidence::closing, now_);
      }
      pump(to);
    }
  }

  void pump(int rank) {
    Rank& one = at(rank);
    for (Outgoing& out : one.seat->take_outgoing())
      if (is_open(rank, out.rank)) put(rank, out.rank, std::move(out.message));
    for (Notice& notice : one.seat->take_notices()) {
      one.heard.push_back(notice);
      if ((notice.kind == Kind::lost || notice.kind == Kind::left) && is_open(rank, notice.peer))
        put(rank, notice.peer, std::nullopt);
    }
    if (one.seat->is_over()) close_all(rank);
  }

  void call(int rank) {
    Rank& one = at(rank);
    if (!one.seat->is_hub()) one.summoned.clear();
    for (int other = 0; other < size(); ++other) {
      if (other == rank) continue;
      if (!one.seat->wants(other) || is_open(rank, other)) {
        one.called.erase(other);
        if (one.seat->wants(other) && one.seat->is_hub() && one.summoned.insert(other).second) {
          one.seat->called(other);
          pump(rank);
        }
        continue;
      }
      const auto since = now_ - one.called.emplace(other, now_).first->second;
      if (since < milliseconds(3)) continue;
      Rank& callee = at(other);
      const bool is_there = is_cut(rank, other) || (callee.state != State::dead && !callee.seat->is_over());
      if (callee.state == State::runs && is_there && !is_cut(rank, other)) {
        open(rank, other);
        one.called.erase(other);
        if (one.seat->is_hub()) one.summoned.insert(other);
        one.seat->reached(other, now_);
        one.seat->called(other);
        pump(rank);
      } else if (!is_there || since > pace_.silence / (is_cut(rank, other) ? 5 : 1)) {
        one.called.erase(other);
        one.seat->closed(other, is_there ? "no answer" : "refused", is_there ? Evidence::silence : Evidence::closing,
                         now_);
        pump(rank);
      }
    }
    if (one.seat->is_over() || one.seat->is_enlisted() || !is_open(rank, one.seat->hub())) return;
    one.seat->connected(now_);
    pump(rank);
  }

  const std::vector<int> hosts_;
  const Pace pace_;
  std::mt19937 random_;
  Clock::time_point now_{};
  std::vector<Rank> ranks_;
  std::map<std::pair<int, int>, Line> lines_;                 // from, to
  std::set<std::pair<int, int>> cuts_;                        // hosts
  std::map<std::pair<int, int>, Clock::time_point> back_at_;  // ranks
};

}  // namespace tutti::internal
