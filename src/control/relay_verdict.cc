// How the hub finds out which ranks are lost.
#include <algorithm>
#include <utility>

#include "base/seconds.h"
#include "control/relay.h"

namespace tutti::internal {

using std::chrono::milliseconds;

namespace {

// The time for which further suspects are waited for; after silence a tick.
constexpr milliseconds kAfterClosing{25};
// In which members come to a new hub by themselves. Then it calls them.
constexpr milliseconds kEnlistsWithin{25};

}  // namespace

Clock::duration slept_between(const Pace& pace, Clock::time_point last_look, Clock::time_point now) {
  const auto gap = now - last_look;
  return gap > 3 * pace.tick ? gap - pace.tick : Clock::duration(0);
}

std::string died(const std::string& why) { return "its process died (" + why + ")"; }
std::string died_by_kernel() { return died("the kernel of its host says so"); }
std::string silent_for(Clock::duration silence) {
  return "no word from it for " + in_seconds(std::chrono::duration_cast<std::chrono::milliseconds>(silence)) +
         ": its process is stopped, or its host unreachable";
}

Notice expulsion(int by, const EventLog::Loss& loss) {
  Notice notice;
  notice.kind = Notice::Kind::expelled;
  notice.peer = by;
  notice.code = ErrorCode::expelled;
  notice.message = loss.why;
  notice.authority = loss.authority;
  return notice;
}

Pace Pace::of(std::chrono::milliseconds heartbeat_timeout) {
  const auto tick = std::clamp<std::chrono::milliseconds>(heartbeat_timeout / 10, std::chrono::milliseconds(10),
                                                          std::chrono::milliseconds(500));
  return {tick, heartbeat_timeout};
}

void Relay::lose(int rank, const std::string& why, Evidence evidence, Clock::time_point now) {
  if (log_.is_gone(rank) || rank == rank_) return;
  const auto wait = is_confirmed(rank, evidence)    ? Clock::duration(0)
                    : evidence == Evidence::silence ? pace_.tick
                                                    : kAfterClosing;
  const auto known = suspicions_.find(rank);
  if (known == suspicions_.end() || evidence < known->second.evidence)
    suspicions_.insert_or_assign(rank, Suspicion{why, evidence, now + wait});
  judge(now);
}

void Relay::notice_sleep(Clock::time_point now) {
  const auto slept = slept_between(pace_, last_look_, now);
  if (slept == Clock::duration(0)) return;
  last_look_ = now;
  for (Member& one : members_) one.heard = std::min(now, one.heard + slept);
  begun_ = std::min(now, begun_ + slept);
  // A suspect may have spoken meanwhile: that is read first. Once only, or ranks that sleep again and again never
  // judge.
  for (auto& [rank, suspicion] : suspicions_)
    if (!std::exchange(suspicion.has_slept, true)) suspicion.until = std::max(suspicion.until, now + kAfterClosing);
}

void Relay::tick(Clock::time_point now) {
  notice_sleep(now);
  last_look_ = now;
  const std::uint32_t known = known_to_all();
  log_.forget(known);
  const auto patience = 3 * pace_.silence / 2;  // within the silence a rank turns away from a hub that is lost
  // A new hub may have heard nothing of ranks that it has only just called.
  const auto grace = kEnlistsWithin + std::min<Clock::duration>(2 * pace_.tick, milliseconds(100));
  // Lower ones too: one that was doubted may have spoken once more, and have ended then.
  for (int rank = 0; rank < log_.ranks(); ++rank) {
    if (rank == rank_ || log_.is_gone(rank)) continue;
    const auto limit = member(rank).enlisted ? pace_.silence : pace_.silence / 2;  // in which it would enlist
    if (now - begun_ > grace && now - member(rank).heard > limit) lose(rank, silent_for(limit), Evidence::silence, now);
    if (member(rank).enlisted)
      tell(rank, Ping{known, is_open_});
    else if (now - begun_ > patience)
      lose(rank, "it did not come to the new hub", Evidence::silence, now);
    else if (is_late_ && rank > rank_)
      tell(rank, Summons{});
  }
  judge(now);
}

std::optional<Clock::time_point> Relay::due() const {
  if (!is_open_) return is_late_ ? std::nullopt : std::optional(begun_ + kEnlistsWithin);
  std::optional<Clock::time_point> last;
  for (const auto& [rank, suspicion] : suspicions_)
    if (!last || suspicion.until > *last) last = suspicion.until;
  return last;
}

// All that is suspected is judged together once the last suspicion is old enough; proofs do not wait. Nothing is
// decided before the members have brought what they know.
void Relay::judge(Clock::time_point now) {
  open_if_complete();
  is_late_ = !is_open_ && now - begun_ >= kEnlistsWithin;
  if (!is_open_) return;
  judge_suspects(now);
  close_votes();  // with the ranks that are left now
}

// Where a rank is silent, another one that has not answered the last pings may be behind the same broken network.
bool Relay::may_be_more(Clock::time_point now) const {
  const auto is_silent = [](const auto& entry) { return entry.second.evidence == Evidence::silence; };
  if (std::ranges::none_of(suspicions_, is_silent)) return false;
  for (int rank = 0; rank < log_.ranks(); ++rank) {
    const Member& one = members_[static_cast<std::size_t>(rank)];
    const bool is_watched = rank != rank_ && !log_.is_gone(rank) && !suspicions_.contains(rank) && one.enlisted;
    if (is_watched && now - one.heard > 2 * pace_.tick) return true;
  }
  return false;
}

void Relay::judge_suspects(Clock::time_point now) {
  const auto decide = [&](int rank, ErrorCode code, const std::string& why, Authority authority) {
    log({.kind = Notice::Kind::lost, .peer = rank, .code = code, .message = why, .authority = authority});
  };
  std::map<int, Suspicion> rest;
  for (auto& [rank, suspicion] : std::exchange(suspicions_, {})) {
    if (log_.is_gone(rank)) continue;
    if (is_confirmed(rank, suspicion.evidence))
      decide(rank, ErrorCode::peer_lost, suspicion.why, Authority::kernel);
    else
      rest.emplace(rank, std::move(suspicion));
  }
  suspicions_ = std::move(rest);
  if (suspicions_.empty() || std::ranges::any_of(suspicions_, [&](const auto& s) { return s.second.until > now; }))
    return;
  if (may_be_more(now)) {
    for (auto& [rank, suspicion] : suspicions_) suspicion.until = now + pace_.tick / 2;
    return;
  }
  const bool decides = log_.is_majority([&](int rank) { return is_here(rank); });
  // What is decided from here on is not for them: they may go on by themselves.
  for (const auto& [rank, suspicion] : suspicions_) member(rank).enlisted = false;
  for (const auto& [rank, suspicion] : std::exchange(suspicions_, {})) {
    const bool partitioned = !decides && suspicion.evidence >= Evidence::gave_up;
    decide(rank, partitioned ? ErrorCode::partitioned : ErrorCode::peer_lost,
           suspicion.why + (partitioned ? "; the ranks that are left here are no majority" : ""),
           decides ? Authority::majority : Authority::minority);
  }
}

}  // namespace tutti::internal
