// How a group's calls are waited for.
#include <emmintrin.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>

#include "runtime/group.h"

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;

constexpr auto kWorthALook = 1ms;  // of waiting
// A peer is first asked how it stands after this time multiplied by the ranks of the job, because all questions go
// through the hub; then after twice as long, and so on.
constexpr auto kAskAfterForEach = 5ms;
constexpr std::chrono::milliseconds kLongestBetweenAsking{1000};
// What a peer sent before it left, or very long ago, may still be on its way, and so may the hub's word on what it had
// called. Over a network the closed connection says that all has come; the longer time is for a peer to which none was
// made.
constexpr std::chrono::milliseconds kGraceAfterLeaving{1000}, kGraceOverANetwork{5000};
// Likewise of a rank that is lost. All are to hear of it within a second.
constexpr std::chrono::milliseconds kGraceAfterLoss{200};
// At a timeout all ranks are asked whether they are in the call. They have that long to answer: a machine that others
// use too may give their control threads no processor for a while.
constexpr std::chrono::milliseconds kSurveyWithin{2000};
// A peer that is in the call may know better who holds it up. So it is let time out first. kGraceForWhoKnows counts at
// most a fourth of the timeout.
constexpr std::chrono::milliseconds kLeastGrace{300}, kGraceForWhoKnows{1000};

// A look counts at most a fourth of the timeout, so that several are needed; but at least 1 ms. While a survey is under
// way it counts at most kCountedOfSurvey.
constexpr std::chrono::milliseconds kLeastCounted{1}, kCountedOfSurvey{500};

std::string seconds(BackoffPolicy::Clock::duration time) {
  char text[32];
  std::snprintf(text, sizeof text, time < 100ms ? "%.3f s" : "%.1f s", std::chrono::duration<double>(time).count());
  return text;
}

}  // namespace

// --- waiting --------------------------------------------------------------------------------------------------------

bool Group::drive(Request& request, Engine::Lock& lock, BackoffPolicy::Clock::time_point until, bool among_others) {
  const FloatEnvironment environment;
  advance();
  if (request.is_over()) return true;
  // Two threads of this rank may be at a driven one.
  const auto gives_way = [&] { return job_->engine().crowding().is_crowded() || request.driven; };
  BackoffPolicy backoff(gives_way(), job_->engine().crowding().no_yield_before(),
                        request.driven ? BackoffPolicy::kSpinsBesideThread : BackoffPolicy::kCrowdedSpins);
  const auto moved = [&] { return among_others ? job_->engine().moves() : moves(); };
  std::uint64_t seen = moved();
  while (true) {
    among_others ? job_->engine().advance_all() : advance();
    if (request.is_over() || moved() != seen) {
      if (backoff.look_back()) job_->engine().watch_processor(backoff.look());
      if (request.is_over()) return true;
      seen = moved();
      backoff.reset();
      if (until != BackoffPolicy::Clock::time_point::max() && BackoffPolicy::Clock::now() >= until) return false;
      continue;
    }
    bool looked;
    const Pause pause = backoff.next(looked);
    if (looked) {
      watch(backoff.now());
      job_->engine().watch_driven(backoff.now());
      job_->engine().advance_all();
      job_->engine().watch_processor(backoff.look());
      backoff.set_crowded(gives_way(), job_->engine().crowding().no_yield_before());
      lock.yield();
      if (request.is_over() || moved() != seen) continue;
      if (backoff.now() >= until) return false;
    }
    switch (pause) {
      case Pause::spin: _mm_pause(); break;
      case Pause::yield: job_->engine().yield(); break;
      case Pause::sleep:
        request.sleeps = true;
        job_->engine().sleep(
            lock, [&] { return request.is_over(); }, until - backoff.now());
        request.sleeps = false;
        break;
    }
  }
}

// Waits for the calls that have been started, which happens seldom.
void Group::finish_all(Engine::Lock& lock) {
  const FloatEnvironment environment;
  while (current_ != nullptr || !queue_.empty()) {
    job_->engine().advance_all();
    watch(BackoffPolicy::Clock::now());
    lock.yield();
    ::sched_yield();
  }
}

std::chrono::milliseconds Group::current_timeout() const {
  if (current_ != nullptr && current_->timeout.count() > 0) return current_->timeout;
  return timeout_.count() > 0 ? timeout_ : job_->settings().timeout;
}

// By what the caller can change.
std::string Group::name_of_timeout() const {
  if (current_->timeout.count() > 0) return " (the timeout of this call)";
  if (timeout_.count() > 0) return " (the timeout that set_timeout() set)";
  return job_->has_timeout_of_env() ? " (TUTTI_TIMEOUT)" : " (the timeout of the job; set_timeout() changes it)";
}

// Called now and then while somebody waits, be it by calling test() again and again.
void Group::watch(BackoffPolicy::Clock::time_point now) {
  const Settings& settings = job_->settings();
  const auto timeout = current_timeout();
  const auto longest_gap = stall_.has_surveyed() ? kCountedOfSurvey : std::max(timeout / 4, kLeastCounted);
  if (!stall_.look(moves(), now, longest_gap)) return ledger_.history()->waits_no_more();
  const auto waited = stall_.waited();
  if (waited < kWorthALook || current_ == nullptr || cut_off_ || !failure_->goes_on()) return;
  if (stall_.is_lost_for(!failure_->is_well(), kGraceAfterLoss)) return fail_by_loss();
  const int missing = current_->participation == nullptr ? -1 : current_->participation->missing();
  if (current_->waits_device && missing < 0) return watch_device();
  const auto [peer, takes] = missing >= 0 ? Operation::Awaited{missing, false} : current_->operation.waiting_for();
  if (peer < 0) return;
  record_wait(peer, takes, now);
  const std::chrono::milliseconds first =
      std::min({kAskAfterForEach * settings.size, kLongestBetweenAsking, timeout / 4});
  const bool has_left = job_->notices().has_left(members_.job_rank_of(peer));
  if (stall_.is_time_to_ask(first, kLongestBetweenAsking, has_left)) {
    job_->control().probe(members_.job_rank_of(peer), id_, told_as_, current_->sequence);
    job_->transports().look_at_peers();
  }
  if (stall_.is_time_to_survey(timeout)) {
    answers_.forget();
    job_->control().survey(members_.job_ranks(), id_, told_as_, current_->sequence);
  }
  auto absent = waited <= timeout ? std::nullopt : answers_.absent_from(current_->sequence, rank(), false);
  const bool is_late = !absent && waited > timeout + kSurveyWithin;
  if (is_late) absent = answers_.absent_from(current_->sequence, rank(), true);
  const bool may_know = answers_.has_entered(peer, current_->sequence);
  const bool local = job_->host_of(members_.job_rank_of(peer)) == job_->host_of(job_->rank());
  const bool is_beyond = answers_.is_beyond(peer, current_->sequence);
  if (stall_.sends_no_more_for(has_left || is_beyond, local ? kGraceAfterLeaving : kGraceOverANetwork)) {
    if (is_beyond) return accuse(mismatch_of_long_ago(peer));
    accuse({ErrorCode::peer_left, peer,
            members_.name_of(peer) + " has left without entering " + members_.name_of(current_->call())});
  } else if (absent && !absent->empty()) {
    accuse({ErrorCode::timeout, absent->front(),
            answers_.absence_of(*absent, current_->call()) + " after " + seconds(waited) + name_of_timeout()});
  } else if (absent && waited > timeout + (is_late ? kSurveyWithin : kLeastGrace) +
                                    (may_know ? std::min(timeout / 4, kGraceForWhoKnows) : 0ms)) {
    accuse({ErrorCode::timeout, peer,
            answers_.standing_of(peer, current_->call(), takes) + " after " + seconds(waited) + name_of_timeout()});
  } else if (stall_.is_time_to_warn(settings.warn_after)) {
    job_->log().warn("still waiting: " + answers_.standing_of(peer, current_->call(), takes) + " after " +
                     seconds(waited));
  }
}

// For those that ask: `tutti status`.
void Group::record_wait(int peer, bool takes, BackoffPolicy::Clock::time_point now) {
  const auto since = std::chrono::duration_cast<std::chrono::nanoseconds>((now - stall_.waited()).time_since_epoch());
  ledger_.history()->waits({current_->sequence, peer, current_->operation.step(), takes ? 1u : 0u, since.count()});
}

// The job's thread looks after one group as whoever waits does, and whoever drives a call looks after all driven ones.
// But not after those that wait for a device: another group's call may keep the device busy, and be given up just now.
void Group::watch_driven(BackoffPolicy::Clock::time_point now) {
  if (driven_ > 0 && current_ != nullptr && !current_->waits_device) watch(now);
}

void Group::watch_device() {
  const Settings& settings = job_->settings();
  const std::string what = "the GPU of " + members_.own_name() + " has not come to " +
                           members_.name_of(current_->call()) + ": what it was given before is not done";
  if (current_->staged != nullptr && stall_.waited() >= DeviceHealth::kBetweenQuestions) {
    for (const Staging::Streams* one : current_->staged->streams())
      if (const Error* const error = device_health_.failure_of(*current_->staged, one->device))
        return accuse({error->code, rank(), error->what()});
  }
  if (stall_.waited() > current_timeout()) {
    accuse({ErrorCode::timeout, rank(), what + " after " + seconds(stall_.waited()) + name_of_timeout()});
  } else if (stall_.is_time_to_warn(settings.warn_after)) {
    job_->log().warn("still waiting: " + what + " after " + seconds(stall_.waited()));
  }
}

}  // namespace tutti::internal
