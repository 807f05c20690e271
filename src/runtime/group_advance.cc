// How a group's calls are advanced: the parts of one after the other, by messages or on a device, and given up.
#include <algorithm>
#include <initializer_list>
#include <new>

#include "reduce/scale.h"
#include "runtime/group.h"

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;

constexpr auto kWithdrawnWithin = 10s;  // a peer's turn ends by itself, unless its process is stopped
constexpr auto kVerdictWithin = 1s;     // the control plane's word on a connection that closed
constexpr auto kAskAgainAfter = 50ms;   // a question is lost while there is no hub

// A buffer that the rank does not hold may be null.
template <class Byte>
Byte* behind(Byte* begin, std::size_t bytes) {
  return reinterpret_cast<Byte*>(reinterpret_cast<std::uintptr_t>(begin) + bytes);
}

}  // namespace

void Group::make_ready(const Request& request) {
  const Plan& plan = *request.plan;
  ledger_.begin_kind(request.sequence, Call::labelled(plan.tag, request.label),
                     request.fused == nullptr ? 0 : request.fused->digest());
  for (const Plan* const part : std::initializer_list<const Plan*>{&plan, plan.last.get()}) {
    if (part == nullptr) continue;
    workspace_.fit(*part, [this](std::size_t bytes) { return job_->transports().allocate(bytes); });
  }
  for (const int peer : plan.peers)
    if (links_[peer].channel == nullptr) links_[peer].channel = job_->open(id_, members_.job_rank_of(peer));
  ready_plan_ = &plan;
  ready_label_ = request.label;
  remember_at_once(plan, request.label);
}

inline void Group::enter(Request& request) {
  if (request.plan != ready_plan_ || request.label != ready_label_) make_ready(request);
  ledger_.begin();
  ledger_.enter(request.sequence);
  request.stage = Request::Stage::entered;
  if (rendezvous_ != nullptr && request.plan->meets_on_device &&
      request.plan->call.op != Op::premul_sum)  // which no kernel does
    enter_rendezvous(request);
}

// A rank without device memory says so, and goes on.
void Group::enter_rendezvous(Request& request) try {
  const Tag tag = request.tag();
  request.participation =
      rendezvous_->enter(id_, request.sequence, size(), rank(),
                         request.staged == nullptr ? Participant{.tag = tag} : request.staged->participant(tag));
  if (request.participation->refused()) throw Error(*request.participation->refused());
} catch (TagMismatch& mismatch) {
  mismatch.peer = members_.job_rank_of(mismatch.peer);
  throw;
}

// False as long as it is not known how the call is done, or it is under way on the device.
bool Group::has_met(Request& request) {
  using State = DeviceRendezvous::State;
  const State state = request.participation->state();
  const cuda::Stream stream = request.staged == nullptr ? nullptr : request.staged->stream();
  const bool here =
      state == State::apart || (state == State::together && (stream != nullptr || request.participation->is_done()));
  if (!on_device(request, here)) return false;
  if (state == State::together) request.part = request.plan->parts;
  if (state != State::together || stream == nullptr) request.participation.reset();
  return true;
}

// The input of a part, times this rank's scalar: in the slot of staged memory; else where the output will be, if it is
// as long as the input; else in memory of the request.
const std::byte* Group::scaled(Request& request, const std::byte* input) {
  const Plan& plan = *request.plan;
  const auto multiply = [&](const std::byte* from, std::byte* to, std::size_t bytes) {
    scale(plan.call.dtype, *request.input.scalar, from, to, bytes / size_of(plan.call.dtype));
  };
  if (request.staged != nullptr && request.staged->is_staged()) {
    std::size_t bytes = 0;
    for (const RowCopy& rows : plan.part(request.part).fetches) bytes += rows.rows * rows.row_bytes;
    auto* const slot = const_cast<std::byte*>(input);
    multiply(slot, slot, bytes);
    return slot;
  }
  const bool fits_output = plan.in_place == 0 && plan.output_bytes == plan.input_bytes;
  if (request.part == 0) {
    if (!fits_output) request.input.products = std::make_unique_for_overwrite<std::byte[]>(plan.input_bytes);
    multiply(input, fits_output ? request.output : request.input.products.get(), plan.input_bytes);
  }
  return (fits_output ? request.output : request.input.products.get()) + request.part * plan.row_bytes;
}

// False while its input is not there.
inline bool Group::begin_part(Request& request) {
  const std::size_t part = request.part, offset = part * request.plan->row_bytes;
  const std::byte* input = behind(request.input.data, offset);
  std::byte* output = behind(request.output, offset);
  if (request.staged != nullptr) {
    if (!on_device(request, request.staged->fetch(part))) return false;
    input = request.staged->input(part);
    output = request.staged->output(part);
  }
  if (request.input.scalar) input = scaled(request, input);
  request.operation.start(request.plan->part(part), request.tag(), links_, workspace_, input, output, request.is_sent);
  request.stage = Request::Stage::running;
  return true;
}

// Returns `done`: whether the device has done its work. Counts the calls that wait for devices.
bool Group::on_device(Request& request, bool done) {
  if (request.waits_device == done) {
    request.waits_device = !done;
    job_->engine().watch_devices(done ? -1 : 1);
    ++moves_;
  }
  return done;
}

inline void Group::complete_current() {
  Request& request = *current_;
  moves_ += request.operation.moves() + 1;
  ledger_.complete(request.sequence);
  finish(request);
  current_ = nullptr;
}

void Group::finish(Request& request) {
  on_device(request, true);
  if (request.error) request.participation.reset();
  request.stage = Request::Stage::over;
  const bool driven = std::exchange(request.driven, false);
  if (driven) --driven_;
  if (driven && request.error) failure_->note_unheard();
  if (request.staged != nullptr) request.staged->release();
  if (request.sleeps || driven) job_->engine().wake();
  if (request.fused != nullptr) {
    const auto kept = request.fused->deliver(!request.error, [&](Request& part) {
      part.error = request.error;
      finish(part);
    });
    request.fused.reset();
  }
}

void Group::advance() {
  try {
    while (failure_->goes_on() && !(cut_off_ && is_cut_off())) {
      if (current_ == nullptr) {
        if (queue_.empty()) return;
        current_ = queue_.front();
        queue_.pop_front();
      }
      if (current_->stage == Request::Stage::waiting) enter(*current_);
      if (!run_current()) return;
      complete_current();
    }
  } catch (const TagMismatch& mismatch) {
    met(mismatch);
  } catch (const LengthMismatch& mismatch) {
    const int peer = members_.rank_of(mismatch.peer);
    accuse({ErrorCode::mismatch, peer,
            members_.name_of(peer) + " has a message of " + std::to_string(mismatch.theirs_bytes) + " bytes where " +
                members_.own_name() + " has one of " + std::to_string(mismatch.mine_bytes) + "; do " +
                (current_->plan->call.flags == kUnequalRows ? "both say the same of the length of the row?"
                                                            : "all ranks run the same version?")});
  } catch (const ChannelClosed& closed) {
    // What this rank lacks itself it knows best. Else a peer that is turned away may be the first to speak.
    if (const Failure found = failure_of(closed); found.code == ErrorCode::system) {
      accuse(found);
    } else {
      cut_off_ = CutOff{closed, BackoffPolicy::Clock::now() + kVerdictWithin};
      is_cut_off();
    }
  } catch (const Error& error) {
    accuse(error.code == ErrorCode::system ? own_failure(error.what()) : Failure{error.code, error.peer, error.what()});
  } catch (const std::bad_alloc&) {
    accuse({ErrorCode::system, rank(), members_.own_name() + " has no memory left"});
  }
  if (!failure_->goes_on()) await_verdict();
  if (has_failed()) give_up();
}

bool Group::run_current() {
  Request& request = *current_;
  if (request.participation != nullptr && !has_met(request)) return false;
  for (; request.part < request.plan->parts; ++request.part) {
    if (request.stage != Request::Stage::running && !begin_part(request)) return false;
    {
      const Engine::Turn turn(job_->engine());
      if (!request.operation.advance()) return false;
    }
    request.stage = Request::Stage::entered;
    if (request.staged != nullptr) request.staged->deliver(request.part);
  }
  return request.staged == nullptr || on_device(request, request.staged->is_delivered());
}

// Whether no device touches the request's memory any more.
bool Group::is_quiet(Request& request) try {
  if (request.participation != nullptr && !request.participation->withdraw()) return false;
  if (request.staged == nullptr) return true;
  const StagedCall& staged = *request.staged;
  if (!staged.is_enqueued()) return false;
  const auto [in, out] = staged.streams();
  return (staged.has_fetched() || device_health_.failure_of(staged, in->device) != nullptr) &&
         (staged.has_delivered() || device_health_.failure_of(staged, out->device) != nullptr);
} catch (const Error&) {
  return true;  // the device has failed: nothing moves any more
}

// The callers get their buffers back, so nobody may touch them any more. A peer that is in a turn may until it ends.
void Group::give_up() {
  const auto now = BackoffPolicy::Clock::now();
  if (!given_up_at_) given_up_at_ = now;
  bool ours = true;
  for (PeerLink& link : links_)
    if (link.channel != nullptr && !link.channel->withdraw()) ours = false;
  if (!ours && now < *given_up_at_ + kWithdrawnWithin) return;
  if (current_ != nullptr) queue_.push_front(std::exchange(current_, nullptr));
  // Not before: a peer may have been reading what the next call's copies go to.
  for (Request* request : queue_) {
    using Stage = Request::Stage;
    if (request->staged == nullptr || std::exchange(request->stage, Stage::revoked) == Stage::revoked) continue;
    request->staged->release();
    released_at_ = now;
  }
  const bool quiet = std::ranges::all_of(queue_, [this](Request* request) { return is_quiet(*request); });
  if (!quiet && now < released_at_ + kWithdrawnWithin) return;
  if (!ours) job_->transports().keep_memory();
  if (!quiet) keep_staging();
  for (Request* request : queue_) {
    request->error = error_for(request);
    finish(*request);
  }
  queue_.clear();
}

// Peers may still read what calls have left.
void Group::leave_copies() noexcept try { workspace_.scratch.hand_to(links_); } catch (const std::bad_alloc&) {
  job_->transports().keep_memory();
}

// Not freed: a device may still come to its work there.
void Group::keep_staging() {
  static_cast<void>(staging_.release());
  device_health_.abandon();
}

void Group::abandon(Request& request) {
  abort({ErrorCode::system, rank(), members_.own_name() + " was left in an unknown state by an unexpected exception"});
  if (current_ == &request) current_ = nullptr;
  std::erase(queue_, &request);
  request.error = error_for(&request);  // for whoever else waits for it
  finish(request);
}

// If the peer is at a later call, it had made another one at this number: then those two are named.
void Group::met(const TagMismatch& mismatch) {
  const int peer = members_.rank_of(mismatch.peer);
  const Failure found = mismatch_with(peer, mismatch.mine, mismatch.theirs);
  const std::uint32_t here = Call::unpack(mismatch.mine).sequence, there = Call::unpack(mismatch.theirs).sequence;
  if (static_cast<std::int32_t>(there - here) <= 0 || current_ == nullptr) return accuse(found);
  const bool has_left = job_->notices().has_left(mismatch.peer);
  const auto now = BackoffPolicy::Clock::now();
  cut_off_ = CutOff{{mismatch.peer, ""}, now + kVerdictWithin, has_left, now, found};
  job_->control().probe(mismatch.peer, id_, told_as_, here);
}

// A data connection that closes is a symptom. The control plane tells the cause, within moments. If the peer has left
// the communicator or the job, it or the control plane knows which calls it had made: perhaps another one than this
// rank.
bool Group::is_cut_off() {
  if (!cut_off_) return false;
  auto& [closed, until, asked, asked_at, met] = *cut_off_;
  const int peer = members_.rank_of(closed.peer);
  const bool has_left = job_->notices().has_left(closed.peer);
  const auto now = BackoffPolicy::Clock::now();
  if (!failure_->is_well()) {
    fail_by_loss();
    return true;
  }
  if (asked != has_left && current_ != nullptr) until = now + kVerdictWithin;
  if (now > until || (met && current_ != nullptr && answers_.has_entered(peer, current_->sequence))) {
    const std::string name = members_.name_of(peer), own = members_.own_name();
    if (met)
      accuse(*met);
    else if (current_ != nullptr && answers_.is_beyond(peer, current_->sequence))
      accuse(mismatch_of_long_ago(peer));
    else if (has_left)
      accuse({ErrorCode::peer_left, peer, name + " has left while " + own + " still waits for it"});
    else
      accuse(failure_of(closed));
  } else if (current_ != nullptr && (asked != has_left || now > asked_at + kAskAgainAfter)) {
    asked = has_left;
    asked_at = now;
    job_->control().probe(closed.peer, id_, told_as_, current_->sequence);
  }
  return true;
}

}  // namespace tutti::internal
