// How a group's calls are advanced, waited for, and given up.
#include <emmintrin.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

#include "runtime/group.h"

namespace tutti::runtime {
namespace {

using namespace std::chrono_literals;

constexpr auto kWorthALook = 1ms;  // of waiting
// The peer is asked how it stands after this long for each rank of the job, again after twice as long, and so on: all
// questions go through rank 0.
constexpr auto kAskAfterForEach = 5ms;
constexpr std::chrono::milliseconds kLongestBetweenAsking{1000};
constexpr auto kWithdrawnWithin = 10s;  // a peer's turn ends by itself, unless its process is stopped
constexpr auto kVerdictWithin = 1s;     // the control plane's word on a connection that closed
// What a peer sent before it left may still be on its way: over a network the closed connection says that all has come,
// and this is for where none was made.
constexpr std::chrono::milliseconds kGraceAfterLeaving{200}, kGraceOverANetwork{5000};

std::string seconds(Patience::Clock::duration time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", std::chrono::duration<double>(time).count());
  return text;
}

}  // namespace

// --- advancing
// ------------------------------------------------------------------------------------------------------------

void Group::make_ready(const Plan& plan) {
  for (const Plan* const part : std::initializer_list<const Plan*>{&plan, plan.last.get()}) {
    if (part == nullptr) continue;
    workspace_.fit(*part);
    if (part->scratch_bytes == 0 || (scratch_ != nullptr && scratch_->bytes() >= part->scratch_bytes)) continue;
    scratch_.reset();
    scratch_ = job_->allocate(part->scratch_bytes);
    workspace_.scratch = scratch_->data();
  }
  for (const int peer : plan.peers)
    if (links_[peer].channel == nullptr) links_[peer].channel = job_->open(id_, members_[peer]);
  ready_plan_ = &plan;
}

inline void Group::enter(Request& request) {
  if (request.plan != ready_plan_) make_ready(*request.plan);
  history_->entered(request.sequence, request.tag());
  request.entered = true;
  if (place_ != nullptr && request.plan->canonical && request.plan->input_bytes > 0) attend(request);
}

// Who has no device memory says so, and goes on.
void Group::attend(Request& request) try {
  const Tag tag = request.tag();
  request.attendance = place_->attend(id_, request.sequence, size(), rank_,
                                      request.passage == nullptr ? Guest{.tag = tag} : request.passage->guest(tag));
} catch (TagMismatch& mismatch) {
  mismatch.peer = members_[mismatch.peer];
  throw;
}

// False as long as it is not known how the call is done, or it is under way on the device.
bool Group::has_met(Request& request) {
  using State = MeetingPlace::State;
  const State state = request.attendance->state();
  const cuda::Stream stream = request.passage == nullptr ? nullptr : request.passage->stream();
  const bool here =
      state == State::apart || (state == State::together && (stream != nullptr || request.attendance->is_done()));
  if (!on_device(request, here)) return false;
  if (state == State::together && stream != nullptr) request.attendance->hold(stream);
  if (state == State::together) request.part = request.plan->parts;
  request.attendance.reset();
  return true;
}

// False while its input is not there.
inline bool Group::begin_part(Request& request) {
  const std::size_t part = request.part, offset = part * request.plan->row_bytes;
  const std::byte* input = request.input + offset;
  std::byte* output = request.output + offset;
  if (request.passage != nullptr) {
    if (!on_device(request, request.passage->fetch(part))) return false;
    input = request.passage->input(part);
    output = request.passage->output(part);
  }
  request.operation.start(request.plan->part(part), request.tag(), links_, workspace_, input, output);
  request.begun = true;
  return true;
}

// Whether what the device was to do is done; keeps account of who waits for that.
bool Group::on_device(Request& request, bool done) {
  if (request.waits_device == done) {
    request.waits_device = !done;
    job_->watch_devices(done ? -1 : 1);
    ++moves_;
  }
  return done;
}

void Group::complete_current() {
  history_->completed(current_->sequence);
  moves_ += current_->operation.moves() + 1;
  finish(*current_);
  current_ = nullptr;
}

void Group::finish(Request& request) {
  on_device(request, true);
  request.attendance.reset();
  request.over = true;
  if (request.passage != nullptr) request.passage->let_go();
  if (request.sleeps) job_->wake();
}

void Group::advance() {
  try {
    while (!has_failed() && !(cut_off_ && is_cut_off())) {
      if (current_ == nullptr) {
        if (queue_.empty()) return;
        current_ = queue_.front();
        queue_.pop_front();
      }
      if (!current_->entered) enter(*current_);
      if (!take_turn()) return;
      complete_current();
    }
  } catch (const TagMismatch& mismatch) {
    abort_mismatch(local_rank_of(mismatch.peer), mismatch.mine, mismatch.theirs);
  } catch (const LengthMismatch& mismatch) {
    const int peer = local_rank_of(mismatch.peer);
    abort({ErrorCode::mismatch, peer,
           name_of(peer) + " sent a message of " + std::to_string(mismatch.theirs_bytes) + " bytes where " +
               name_of(rank_) + " expects " + std::to_string(mismatch.mine_bytes) +
               "; do all ranks run the same version?"});
  } catch (const ChannelClosed& closed) {
    cut_off_ = {closed, Patience::Clock::now() + kVerdictWithin};
    is_cut_off();
  } catch (const Error& error) {
    abort({error.code, error.peer, error.what()});
  } catch (const std::bad_alloc&) {
    abort({ErrorCode::system, -1, name_of(rank_) + " has no memory left"});
  }
  if (has_failed()) give_up();
}

bool Group::take_turn() {
  Request& request = *current_;
  if (request.attendance != nullptr && !has_met(request)) return false;
  for (; request.part < request.plan->parts; ++request.part) {
    if (!request.begun && !begin_part(request)) return false;
    {
      const Job::Turn turn(*job_);
      if (!request.operation.advance()) return false;
    }
    request.begun = false;
    if (request.passage != nullptr) request.passage->deliver(request.part);
  }
  return request.passage == nullptr || on_device(request, request.passage->is_delivered());
}

// Whether no device touches the request's memory any more.
bool Group::is_quiet(Request& request) {
  const bool met = request.attendance == nullptr || request.attendance->withdraw();
  return met && (request.passage == nullptr || request.passage->is_quiet());
}

// The callers get their buffers back, so nobody may touch them any more: a peer whose turn is on may, until it ends.
void Group::give_up() {
  if (!given_up_at_) given_up_at_ = Patience::Clock::now();
  bool ours = true;
  for (Link& link : links_)
    if (link.channel != nullptr && !link.channel->withdraw()) ours = false;
  const bool quiet = current_ == nullptr || is_quiet(*current_);
  if (!(ours && quiet) && Patience::Clock::now() < *given_up_at_ + kWithdrawnWithin) return;
  if (!ours) job_->keep_memory();
  if (!quiet) static_cast<void>(staging_.release());  // a device that does not come to its work may do so yet
  if (current_ != nullptr) queue_.push_front(current_);
  current_ = nullptr;
  for (Request* request : queue_) {
    request->error = error_for(request);
    finish(*request);
  }
  queue_.clear();
}

// An exception that nobody foresaw is on its way to this request's caller.
void Group::forget(const Request& request) {
  if (current_ == &request) current_ = nullptr;
  std::erase(queue_, &request);
  abort({ErrorCode::system, -1, name_of(rank_) + " was left in an unknown state by an unexpected exception"});
}

// A data connection that closes is a symptom: the control plane says of what, within moments.
bool Group::is_cut_off() {
  if (!cut_off_) return false;
  const auto& [closed, until] = *cut_off_;
  const int peer = local_rank_of(closed.peer);
  if (job_->has_left(closed.peer)) {
    abort({ErrorCode::peer_left, peer, name_of(peer) + " has left while " + name_of(rank_) + " still waits for it"});
  } else if (Patience::Clock::now() > until) {
    abort(
        {ErrorCode::peer_lost, peer, name_of(rank_) + " lost its connection to " + name_of(peer) + ": " + closed.why});
  }
  return true;
}

// --- waiting
// --------------------------------------------------------------------------------------------------------------

void Group::drive(Request& request, Job::Lock& lock) {
  const FloatEnvironment environment;
  advance();
  if (request.over) return;
  Patience patience(job_->is_crowded());
  std::uint64_t seen = moves();
  while (true) {
    advance();
    if (request.over) return;
    if (moves() != seen) {
      seen = moves();
      patience.reset();
      continue;
    }
    bool looked;
    const Pause pause = patience.next(looked);
    if (looked) {
      watch(patience.now());
      job_->advance_all();
      lock.breathe();
      if (request.over || moves() != seen) continue;
    }
    switch (pause) {
      case Pause::spin: _mm_pause(); break;
      case Pause::yield: ::sched_yield(); break;
      case Pause::sleep:
        request.sleeps = true;
        job_->sleep(lock, request);
        request.sleeps = false;
        break;
    }
  }
}

// Waits for the calls that have been started, which happens seldom.
void Group::finish_all(Job::Lock& lock) {
  const FloatEnvironment environment;
  while (current_ != nullptr || !queue_.empty()) {
    job_->advance_all();
    watch(Patience::Clock::now());
    lock.breathe();
    ::sched_yield();
  }
}

// Called now and then while somebody waits, be it by asking again and again. Between two looks at most a quarter of the
// timeout counts: who did not look cannot say that nothing moved.
void Group::watch(Patience::Clock::time_point now) {
  const Settings& settings = job_->settings();
  if (vigil_.moves != moves() || vigil_.looked == Patience::Clock::time_point{}) {
    vigil_ = {.moves = moves(), .looked = now};
    return;
  }
  vigil_.waited += std::min<Patience::Clock::duration>(now - vigil_.looked, settings.timeout / 4);
  vigil_.looked = now;
  const auto waited = vigil_.waited;
  if (waited < kWorthALook || current_ == nullptr || cut_off_ || has_failed()) return;
  const int missing = current_->attendance == nullptr ? -1 : current_->attendance->missing();
  if (current_->waits_device && missing < 0) return watch_device();
  const int peer = missing >= 0 ? missing : current_->operation.waiting_for();
  if (peer < 0) return;
  const std::chrono::milliseconds first =
      std::min({kAskAfterForEach * settings.size, kLongestBetweenAsking, settings.timeout / 4});
  if (waited >= std::max<Patience::Clock::duration>(first, vigil_.next_probe)) {
    job_->control().probe(members_[peer], id_, current_->sequence);
    if (job_->shm() != nullptr) job_->shm()->look_at_peers();
    vigil_.next_probe = waited + std::min<Patience::Clock::duration>(waited, kLongestBetweenAsking);
  }
  if (!job_->has_left(members_[peer])) {
    vigil_.left.reset();
  } else if (!vigil_.left) {
    vigil_.left = waited;
  }
  const bool local = job_->host_of(members_[peer]) == job_->host_of(job_->rank());
  if (vigil_.left && waited > *vigil_.left + (local ? kGraceAfterLeaving : kGraceOverANetwork)) {
    abort({ErrorCode::peer_left, peer, name_of(peer) + " has left without entering " + describe(current_->call())});
  } else if (waited > settings.timeout) {
    abort({ErrorCode::timeout, peer, standing_of(peer) + " after " + seconds(waited) + " (TUTTI_TIMEOUT)"});
  } else if (waited > settings.warn_after && !vigil_.warned) {
    vigil_.warned = true;
    std::fprintf(stderr, "tutti: rank %d: still waiting: %s after %s\n", rank_, standing_of(peer).c_str(),
                 seconds(waited).c_str());
  }
}

void Group::watch_device() {
  const Settings& settings = job_->settings();
  const std::string what = "the GPU of " + name_of(rank_) + " has not come to " + describe(current_->call()) +
                           ": what it was given before is not done";
  if (vigil_.waited > settings.timeout) {
    abort({ErrorCode::timeout, rank_, what + " after " + seconds(vigil_.waited) + " (TUTTI_TIMEOUT)"});
  } else if (vigil_.waited > settings.warn_after && !vigil_.warned) {
    vigil_.warned = true;
    std::fprintf(stderr, "tutti: rank %d: still waiting: %s after %s\n", rank_, what.c_str(),
                 seconds(vigil_.waited).c_str());
  }
}

// "rank 2 has not entered all_reduce #412 (float32 x 1048576, sum); it last completed broadcast #411"
std::string Group::standing_of(int peer) const {
  const std::lock_guard lock(failure_mutex_);
  const auto answer = answers_.find(peer);
  const std::string call = describe(current_->call());
  if (answer == answers_.end() || answer->second.sequence != current_->sequence)
    return name_of(peer) + " does not answer in " + call;
  if (answer->second.entered) return name_of(peer) + " is in " + call + " too, but what it should send has not come";
  const bool some = answer->second.last != Tag{};
  return name_of(peer) + " has not entered " + call + "; it " +
         (some ? "last completed " + describe(Call::unpack(answer->second.last)) : "has completed no call yet") + ";";
}

std::string Group::name_of(int rank) const {
  const std::string name = "rank " + std::to_string(rank);
  return members_[rank] == rank ? name : name + " (of the job: " + std::to_string(members_[rank]) + ")";
}

// --- failing
// --------------------------------------------------------------------------------------------------------------

void Group::fail(Failure failure) {
  {
    const std::lock_guard lock(failure_mutex_);
    if (failure_) return;
    failure_ = std::move(failure);
    failed_.store(true, std::memory_order_release);
  }
  job_->ring();
}

void Group::abort(Failure failure) {
  if (has_failed()) return;
  // Told first: once fail() is seen this rank may leave, and its goodbye must not overtake the reason.
  job_->control().poison(id_, failure.code, failure.message);
  fail(std::move(failure));
}

// A message left over from an earlier call is held against what this rank called then, where it still knows.
void Group::abort_mismatch(int peer, Tag mine, const Tag& theirs) {
  const Call their_call = Call::unpack(theirs);
  history_->at(their_call.sequence, mine);
  abort({ErrorCode::mismatch, peer,
         "the ranks made different calls: " + name_of(rank_) + " " + describe(Call::unpack(mine)) + ", " +
             name_of(peer) + " " + describe(their_call)});
}

void Group::on_notice(const Notice& notice) {
  if (notice.kind == Notice::Kind::poisoned) {
    fail({notice.code, local_rank_of(notice.peer), notice.message});
    return;
  }
  const int peer = local_rank_of(notice.peer);
  if (peer < 0) return;
  Tag mine;
  const bool known = notice.entered && notice.call != Tag{};  // else it is too long ago for the peer to say
  if (known && history_->at(notice.sequence, mine) && mine != notice.call) {
    abort_mismatch(peer, mine, notice.call);
    return;
  }
  const std::lock_guard lock(failure_mutex_);
  answers_[peer] = notice;
}

Error Group::error_for(const Request* request) const {
  const std::lock_guard lock(failure_mutex_);
  const std::string operation = request == nullptr ? "" : describe(request->call());
  std::string text = "rank " + std::to_string(rank_) + ": " + failure_->message;
  if (!operation.empty() && text.find(operation) == std::string::npos) text += ", during " + operation;
  return {failure_->code, text, rank_, failure_->peer, operation, request == nullptr ? -1 : request->operation.step()};
}

void Group::throw_failure(const Request* request) const { throw error_for(request); }

}  // namespace tutti::runtime
