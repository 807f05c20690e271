// How a group's calls are waited for, and how they fail.
#include <emmintrin.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <map>

#include "runtime/group.h"

namespace tutti::runtime {
namespace {

using namespace std::chrono_literals;

constexpr auto kWorthALook = 1ms;  // of waiting
// The peer is asked how it stands after this long for each rank of the job, again after twice as long, and so on: all
// questions go through rank 0.
constexpr auto kAskAfterForEach = 5ms;
constexpr std::chrono::milliseconds kLongestBetweenAsking{1000};
constexpr Patience::Clock::duration kBetweenAskingDevices = 100ms;
// What a peer sent before it left may still be on its way: over a network the closed connection says that all has come,
// and this is for where none was made.
constexpr std::chrono::milliseconds kGraceAfterLeaving{200}, kGraceOverANetwork{5000};
// Likewise of a rank that is lost. All are to hear of it within a second.
constexpr std::chrono::milliseconds kGraceAfterLoss{200};

std::string seconds(Patience::Clock::duration time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", std::chrono::duration<double>(time).count());
  return text;
}

}  // namespace

// --- waiting
// --------------------------------------------------------------------------------------------------------------

void Group::drive(Request& request, Job::Lock& lock) {
  const FloatEnvironment environment;
  advance();
  if (request.over) return;
  // Two threads of this rank may be at a driven one.
  const auto gives_way = [&] { return job_->crowding().is_crowded() || request.driven; };
  Patience patience(gives_way(), job_->crowding().no_yield_before());
  std::uint64_t seen = moves();
  while (true) {
    advance();
    if (request.over || moves() != seen) {
      if (patience.look_back()) job_->watch_processor(patience.look());
      if (request.over) return;
      seen = moves();
      patience.reset();
      continue;
    }
    bool looked;
    const Pause pause = patience.next(looked);
    if (looked) {
      watch(patience.now());
      job_->watch_driven(patience.now());
      job_->advance_all();
      job_->watch_processor(patience.look());
      patience.set_crowded(gives_way(), job_->crowding().no_yield_before());
      lock.breathe();
      if (request.over || moves() != seen) continue;
    }
    switch (pause) {
      case Pause::spin: _mm_pause(); break;
      case Pause::yield: job_->yield(); break;
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
  if (!is_well()) {
    if (!vigil_.lost) vigil_.lost = waited;
    if (waited > *vigil_.lost + kGraceAfterLoss) return fail_by_loss();
  }
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

// Nobody waits for them but the job's thread, which drives one after the other: whoever drives watches all. But not
// those that a device has yet to come to: it may be another's that keeps it, and is given up just now.
void Group::watch_driven(Patience::Clock::time_point now) {
  if (driven_ > 0 && current_ != nullptr && !current_->waits_device) watch(now);
}

void Group::watch_device() {
  const Settings& settings = job_->settings();
  const std::string what = "the GPU of " + name_of(rank_) + " has not come to " + describe(current_->call()) +
                           ": what it was given before is not done";
  if (current_->passage != nullptr && vigil_.waited >= kBetweenAskingDevices) {
    for (const Staging::Lane* lane : current_->passage->lanes())
      if (const Error* const error = failure_of_device(*current_->passage, lane->device))
        return abort({error->code, rank_, error->what()});
  }
  if (vigil_.waited > settings.timeout) {
    abort({ErrorCode::timeout, rank_, what + " after " + seconds(vigil_.waited) + " (TUTTI_TIMEOUT)"});
  } else if (vigil_.waited > settings.warn_after && !vigil_.warned) {
    vigil_.warned = true;
    std::fprintf(stderr, "tutti: rank %d: still waiting: %s after %s\n", rank_, what.c_str(),
                 seconds(vigil_.waited).c_str());
  }
}

// What that device, one of the call's, has failed with, if it has: then nothing more comes of it. Asked now and then,
// by another thread: CUDA may hold that up.
const Error* Group::failure_of_device(const Passage& passage, int device) {
  if (inquiry_.valid() && inquiry_.wait_for(0s) == std::future_status::ready) failed_devices_.merge(inquiry_.get());
  if (const auto found = failed_devices_.find(device); found != failed_devices_.end()) return &found->second;
  const auto now = Patience::Clock::now();
  if (inquiry_.valid() || now < inquired_ + kBetweenAskingDevices) return nullptr;
  inquired_ = now;
  try {
    inquiry_ = std::async(std::launch::async, [lanes = passage.lanes()] {
      std::map<int, Error> failed;
      for (const Staging::Lane* lane : lanes)
        if (const std::optional<Error> error = lane->out.failure()) failed.try_emplace(lane->device, *error);
      return failed;
    });
  } catch (const std::exception&) {  // no thread for it now
  }
  return nullptr;
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

std::string Group::name_of(int rank) const { return rank_name(members_, rank); }

// --- failing
// --------------------------------------------------------------------------------------------------------------

void Group::fail(Failure failure) {
  {
    const std::lock_guard lock(failure_mutex_);
    if (failure_) return;
    failure_ = std::move(failure);
    state_.store(State::failed, std::memory_order_release);
  }
  job_->ring();
}

void Group::lose(int job_rank, const std::string& why) {
  const int rank = local_rank_of(job_rank);
  if (rank < 0) return;
  const std::lock_guard lock(failure_mutex_);
  if (failure_ || loss_) return;
  loss_ = Failure{ErrorCode::peer_lost, rank, name_of(rank) + " was lost: " + why};
  state_.store(State::bereaved, std::memory_order_release);
}

void Group::fail_by_loss() {
  std::unique_lock lock(failure_mutex_);
  const std::optional<Failure> loss = loss_;
  lock.unlock();
  if (loss) fail(*loss);
}

// No call begins any more.
void Group::refuse() {
  if (!has_failed()) fail_by_loss();
  tell(error_for(nullptr));
}

void Group::tell(const Error& error) {
  told_ = true;
  throw Error(error);
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
  const Call my_call = Call::unpack(mine);
  const bool other_number = my_call.sequence != their_call.sequence;
  abort({ErrorCode::mismatch, peer,
         "the ranks made different calls: " +
             (other_number
                  ? name_of(peer) + " called " + describe(their_call) + ", which " + name_of(rank_) +
                        " did not; it is at " + describe(my_call) + " now"
                  : name_of(rank_) + " " + describe(my_call) + ", " + name_of(peer) + " " + describe(their_call))});
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
  if (notice.has_left && !notice.entered) {
    const Call here = history_->at(notice.sequence, mine) ? Call::unpack(mine) : Call{};
    abort(
        {ErrorCode::peer_left, peer, name_of(peer) + " has left the communicator without entering " + describe(here)});
    return;
  }
  const std::lock_guard lock(failure_mutex_);
  answers_[peer] = notice;
}

Error Group::error_for(const Request* request) const {
  const std::lock_guard lock(failure_mutex_);
  const std::string operation = request == nullptr ? "" : describe(request->call());
  std::string text = name_of(rank_) + ": " + failure_->message;
  if (!operation.empty() && text.find(operation) == std::string::npos) text += ", during " + operation;
  return {failure_->code, text, rank_, failure_->peer, operation, request == nullptr ? -1 : request->operation.step()};
}

}  // namespace tutti::runtime
