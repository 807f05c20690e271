#include "control/lines.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <utility>

#include "base/descriptor.h"

namespace tutti::internal {

namespace asio = boost::asio;
using boost::system::error_code;
using std::chrono::milliseconds;

namespace {

// How long a connection that is told something final stays to be closed by the other end.
constexpr milliseconds kToTheEnd{1000};
constexpr milliseconds kLeavesWithin{1000};
// The ranks of a job mostly end together. So a hub that leaves waits this long for the others, before it hands over.
constexpr milliseconds kHubWaits{100};
constexpr milliseconds kCallsAgainAfter{10};

// A number for each rank, equal for those of one host.
std::vector<int> hosts_of(const std::vector<Member>& members) {
  std::vector<int> hosts;
  for (const Member& member : members) {
    const auto first = std::ranges::find(members, member.host_id, &Member::host_id);
    hosts.push_back(static_cast<int>(first - members.begin()));
  }
  return hosts;
}

}  // namespace

Lines::Lines(asio::io_context& io, int rank, const std::vector<Member>& members, std::string key, const Pace& pace,
             std::vector<std::shared_ptr<Link>> links, std::function<void(Notice)> hear)
    : io_(io),
      rank_(rank),
      members_(members),
      key_(std::move(key)),
      answers_within_(pace.silence),
      peers_(members.size()),
      hear_(std::move(hear)),
      seat_(rank, hosts_of(members), pace, Clock::now()),
      watch_(io, rank, members,
             [this](int ended) {
               seat_.ended(ended, Clock::now());
               act();
             }),
      alarm_(io),
      parting_(io) {
  for (std::size_t other = 0; other < links.size(); ++other)
    if (links[other]) carry(static_cast<int>(other), links[other], true);
  follow_log();
}

// If both ranks have made a connection, that of the higher one counts. The lower one closes the other, once it has
// both: if the higher one did, the lower one might see that first, and take it for a death.
void Lines::carry(int rank, const std::shared_ptr<Link>& made, bool by_higher) {
  if (is_open(rank)) {
    if (!by_higher && !peer(rank).by_lower) return made->close();
    const bool is_other_ends = rank < rank_ && by_higher && peer(rank).by_lower;
    if (!is_other_ends) peer(rank).link->close();
    if (rank == seat_.hub()) seat_.disconnected();
  }
  peer(rank).by_lower = !by_higher;
  peer(rank).link = made;
  peer(rank).is_summoned = false;
  made->on_message = [this, rank](const ControlMessage& message) {
    seat_.received(rank, message, Clock::now());
    act();
  };
  made->on_closed = [this, rank, raw = made.get()](const std::string& why) {
    if (peer(rank).link.get() != raw) return;
    peer(rank).link = nullptr;
    if (peer(rank).is_called) return;  // the other end may prefer that connection
    seat_.closed(rank, why, Evidence::closing, Clock::now());
    act();
  };
}

void Lines::arrived(const std::shared_ptr<Link>& made) {
  const int from = made->handshake().opening().from;
  if (from < 0 || from == rank_ || from >= ranks()) return made->close();
  carry(from, made, from > rank_);
  made->carry_messages(from < rank_ ? FrameReader::kFromHub : FrameReader::kFromMember);
  act();
}

void Lines::tick() {
  seat_.tick(Clock::now());
  act();
}

// What the seat wants done. What is heard may make this rank want more.
void Lines::act() {
  if (std::exchange(acting_, true)) return;
  while (true) {
    const auto outgoing = seat_.take_outgoing();
    auto notices = seat_.take_notices();
    if (outgoing.empty() && notices.empty()) break;
    for (const Outgoing& out : outgoing)
      if (is_open(out.rank)) peer(out.rank).link->send(out.message);
    bool is_news = false;
    for (Notice& notice : notices) {
      is_news = is_news || notice.kind == Notice::Kind::lost || notice.kind == Notice::Kind::left;
      hear_(std::move(notice));
    }
    if (is_news) follow_log();
  }
  if (seat_.hub() != watched_for_) follow_log();
  acting_ = false;
  call();
  set_alarm();
  if (left_) take_leave();
}

void Lines::follow_log() {
  for (int rank = 0; rank < ranks(); ++rank)
    if (seat_.log().is_gone(rank) && is_open(rank)) peer(rank).link->finish(kToTheEnd);
  watched_for_ = seat_.hub();
  watch_.follow([this](int rank) { return seat_.log().is_gone(rank); },
                [this](int rank) { return rank < watched_for_; });
}

void Lines::set_alarm() {
  const auto due = seat_.due();
  if (!due) return;
  alarm_.expires_at(*due);
  alarm_.async_wait([this](error_code ec) {
    if (ec) return;
    seat_.look(Clock::now());
    act();
  });
}

// Makes the connections that the seat wants. Those that it wants no more stay: a rank that becomes the hub speaks
// there.
void Lines::call() {
  bool has_summoned = false;
  for (int rank = 0; rank < ranks(); ++rank) {
    if (!seat_.is_hub()) peer(rank).is_summoned = false;
    if (!seat_.wants(rank)) continue;
    if (!is_open(rank) && !peer(rank).is_called) connect_to(rank);
    // A member has called all ranks that may become the hub, and waits for one of the others.
    if (!seat_.is_hub() || !is_open(rank) || std::exchange(peer(rank).is_summoned, true)) continue;
    seat_.called(rank);
    has_summoned = true;
  }
  if (has_summoned) act();
  if (seat_.is_over() || seat_.is_enlisted() || !is_open(seat_.hub())) return;
  seat_.connected(Clock::now());
  act();
}

void Lines::connect_to(int rank) {
  if (!peer(rank).is_called) peer(rank).called = Clock::now();
  peer(rank).is_called = true;
  const Member &theirs = members_[static_cast<std::size_t>(rank)], &mine = members_[static_cast<std::size_t>(rank_)];
  const auto place = theirs.host_id == mine.host_id ? Endpoint::local(theirs.local_name)
                                                    : Endpoint::parse(theirs.address, theirs.port);
  if (!place) return not_reached(rank, "it listens on no network address", Evidence::silence);
  int error = 0;
  Socket socket = start_connecting(*place, error);
  if (error == EAGAIN || is_out_of_descriptors(error)) return connect_again(rank);  // a local queue is full
  if (error != 0 && error != EINPROGRESS) {
    if (error != ECONNREFUSED && is_patient_with(rank)) return connect_again(rank);
    return not_reached(rank, system_words(error), error == ECONNREFUSED ? Evidence::closing : Evidence::silence);
  }
  if (place->is_local() && !is_same_user(socket.fd()))
    return not_reached(rank, "another user's process answers for it", Evidence::closing);
  const auto made = std::make_shared<Link>(
      io_, std::move(socket),
      Handshake::connecting({Handshake::Purpose::control, rank_, rank, 0}, key_, random_digest()));
  made->on_authenticated = [this, rank, raw = made.get()] {
    peer(rank).is_called = false;
    carry(rank, raw->shared_from_this(), rank < rank_);
    raw->carry_messages(rank < rank_ ? FrameReader::kFromHub : FrameReader::kFromMember);
    seat_.reached(rank, Clock::now());
    seat_.called(rank);
    peer(rank).is_summoned = seat_.is_hub();
    act();
  };
  made->on_closed = [this, rank, raw = made.get()](const std::string& why) {
    // If too many call a rank, it drops callers that have not yet proven that they are ranks.
    const auto failure = raw->handshake().failure();
    const bool may_be_busy = raw->has_connected() && !raw->is_unanswered() &&
                             (failure == Handshake::Failure::none || failure == Handshake::Failure::no_room);
    if (may_be_busy && Clock::now() - peer(rank).called < answers_within_) return connect_again(rank);
    if (raw->is_unanswered() && is_patient_with(rank)) return connect_again(rank);
    not_reached(rank, why, raw->is_unanswered() ? Evidence::silence : Evidence::closing);
  };
  // Where nobody takes the connection its host is away. A process that does not answer may be slow.
  made->start(error == EINPROGRESS, answers_within_ / 5, answers_within_);
}

// The network may be away for a moment. The hub has half the heartbeat timeout for a rank that does not come, and so
// has a rank for a hub that it is sure of. With the next ones after a hub that is lost it is quick.
bool Lines::is_patient_with(int rank) const {
  const bool is_sure = seat_.is_hub() || seat_.log().next_present(-1) == rank;
  return is_sure && Clock::now() - peers_[static_cast<std::size_t>(rank)].called < answers_within_ / 2;
}

void Lines::connect_again(int rank) {
  const auto pause = std::make_shared<asio::steady_timer>(io_, kCallsAgainAfter);
  pause->async_wait([this, pause, rank](error_code ec) {
    if (ec) return;
    if (seat_.wants(rank) && !is_open(rank)) return connect_to(rank);
    peer(rank).is_called = false;
    act();
  });
}

// Later, not now: whoever wants the connection is in the middle of something.
void Lines::not_reached(int rank, const std::string& why, Evidence evidence) {
  asio::post(io_, [this, rank, why, evidence] {
    peer(rank).is_called = false;
    if (is_open(rank)) return;  // it has called meanwhile
    seat_.closed(rank, "it cannot be reached any more: " + why, evidence, Clock::now());
    act();
  });
}

bool Lines::is_open(int rank) const {
  const auto& link = peers_[static_cast<std::size_t>(rank)].link;
  return link && link->is_open();
}

// --- leaving

void Lines::leave(std::function<void()> done) {
  left_ = std::move(done);
  leaves_by_ = Clock::now() + kLeavesWithin;
  if (!seat_.is_hub()) seat_.say_goodbye(Clock::now());
  keep_leaving();
}

void Lines::keep_leaving() {
  if (Clock::now() >= leaves_by_) end_leave();
  act();
  if (!left_) return;
  parting_.expires_after(kCallsAgainAfter);
  parting_.async_wait([this](error_code ec) {
    if (!ec && left_) keep_leaving();
  });
}

void Lines::take_leave() {
  if (seat_.is_hub() && !seat_.is_over()) {
    const bool waits = Clock::now() < leaves_by_ - kLeavesWithin + kHubWaits && has_other_processes();
    if (!waits) seat_.say_goodbye(Clock::now());
    if (seat_.is_over()) return act();
  }
  if (!seat_.is_over()) return;
  bool is_closed = true;
  for (int rank = 0; rank < ranks(); ++rank) {
    if (!is_open(rank)) continue;
    peer(rank).link->finish(kToTheEnd);
    // Who is above this rank must have heard what it has decided as the hub.
    is_closed = is_closed && (rank < rank_ || !seat_.is_hub());
  }
  if (is_closed) end_leave();
}

// Ranks of this process may leave one after the other, and this one first.
bool Lines::has_other_processes() const {
  const Member& own = members_[static_cast<std::size_t>(rank_)];
  return std::ranges::any_of(members_, [&](const Member& other) {
    const bool is_own = other.pid == own.pid && other.pid_space == own.pid_space && other.host_id == own.host_id;
    return !is_own && !seat_.log().is_gone(other.rank);
  });
}

void Lines::end_leave() {
  parting_.cancel();
  alarm_.cancel();
  if (const auto done = std::exchange(left_, nullptr)) done();
}

}  // namespace tutti::internal
