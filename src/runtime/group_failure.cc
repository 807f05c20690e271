// How a group's calls fail, and what is said of that.
#include "runtime/group.h"

namespace tutti::internal {
namespace {

constexpr int kDecidedWithin = 3;                        // times the heartbeat timeout
constexpr std::chrono::milliseconds kAbortWithin{1000};  // for callers that cannot wait longer

}  // namespace

void Group::fail(Failure failure) {
  failure.peer = members_.number_of(failure.peer);
  if (failure_->fail(std::move(failure))) has_just_failed();
}

void Group::has_just_failed() {
  job_->recorder().failed(told_as_, failure_->failure()->message);
  job_->engine().ring();
  job_->notices().decisions().look_again();
}

void Group::lose(const Notice& loss) {
  const int rank = members_.rank_of(loss.peer);
  if (rank >= 0)
    failure_->lose({loss.code, members_.number_of(rank), members_.name_of(rank) + " was lost: " + loss.message});
}

void Group::fail_by_loss() {
  if (failure_->fail_by_loss()) has_just_failed();
}

// No call begins any more.
void Group::refuse() {
  if (!has_failed()) fail_by_loss();
  // The engine's lock is held: so not for long.
  if (!has_failed() && !failure_->wait_for_verdict(kAbortWithin) && failure_->fail_by_accusation()) has_just_failed();
  tell(error_for(nullptr));
}

void Group::tell(const Error& error) {
  if (has_failed()) {
    failure_->claim_telling();
    job_->recorder().failed(told_as_, failure_->failure()->message);  // the control thread may be about to say so
    job_->recorder().wait_for_dump();
  }
  throw Error(error);
}

void Group::accuse(Failure failure) {
  if (failure_->fail_by_loss()) return has_just_failed();
  const int about = failure.peer < 0 ? -1 : members_.job_rank_of(failure.peer);
  Failure known = failure;
  known.peer = members_.number_of(failure.peer);
  if (failure_->accuse(std::move(known))) job_->control().poison(told_as_, failure.code, about, failure.message);
}

void Group::abort(Failure failure) {
  accuse(std::move(failure));
  if (!failure_->wait_for_verdict(kAbortWithin) && failure_->fail_by_accusation()) has_just_failed();
}

// The hub, or the next one, answers within moments, unless no rank can be reached that decides.
void Group::await_verdict() {
  const auto since = failure_->accused_at();
  if (!since || BackoffPolicy::Clock::now() - *since < kDecidedWithin * job_->settings().heartbeat_timeout) return;
  const Failure found = *failure_->reason();
  if (failure_->fail({ErrorCode::partitioned, found.peer,
                      found.message + "; the other ranks cannot be asked for their verdict on that"}))
    has_just_failed();
}

// A message left over from an earlier call is held against what this rank called then, where it still knows.
Failure Group::mismatch_with(int peer, Tag mine, const Tag& theirs) const {
  const Call their_call = Call::unpack(theirs);
  ledger_.history()->at(their_call.sequence, mine);
  const Call my_call = Call::unpack(mine);
  const bool other_number = my_call.sequence != their_call.sequence;
  return {ErrorCode::mismatch, peer,
          "the ranks made different calls: " +
              (other_number ? members_.name_of(peer) + " called " + members_.name_of(their_call) + ", which " +
                                  members_.own_name() + " did not; it is at " + members_.name_of(my_call) + " now"
                            : members_.own_name() + " " + members_.name_of(my_call) + ", " + members_.name_of(peer) +
                                  " " + members_.name_of(their_call))};
}

// The peer has said that it made a call of this number, and that it remembers no more which. So it has sent all that it
// sends there, and this rank still waits for it.
Failure Group::mismatch_of_long_ago(int peer) const {
  return {ErrorCode::mismatch, peer,
          "the ranks made different calls: " + members_.own_name() + " " + members_.name_of(current_->call()) + ", " +
              members_.name_of(peer) + " another call #" + std::to_string(current_->sequence) +
              ", too long ago to say which"};
}

Failure Group::own_failure(const std::string& why) const {
  return {ErrorCode::system, rank(), members_.own_name() + " cannot go on: " + why};
}

// Of which nobody knows a better cause.
Failure Group::failure_of(const ChannelClosed& closed) const {
  if (const std::string lack = job_->transports().lack_for(closed.peer); lack == closed.why && !lack.empty())
    return own_failure(lack);
  const int peer = members_.rank_of(closed.peer);
  return {ErrorCode::peer_lost, peer,
          members_.own_name() + " lost its connection to " + members_.name_of(peer) + ": " + closed.why};
}

void Group::on_notice(const Notice& notice) {
  if (notice.kind == Notice::Kind::poisoned) {
    fail({notice.code, members_.rank_of(notice.about), words_of_verdict(notice, members_)});
    return;
  }
  if (notice.kind == Notice::Kind::expelled) {
    fail({notice.code, rank(), "the other ranks have given " + members_.own_name() + " up: " + notice.message});
    return;
  }
  const int peer = members_.rank_of(notice.peer);
  if (peer < 0) return;
  Tag mine;
  const bool known = notice.entered && notice.call != Tag{};  // else it is too long ago for the peer to say
  if (known && ledger_.history()->at(notice.sequence, mine) && mine != notice.call) {
    accuse(mismatch_with(peer, mine, notice.call));
    return;
  }
  if (notice.has_left && !notice.entered) {
    const Call here = ledger_.history()->at(notice.sequence, mine) ? Call::unpack(mine) : Call{};
    if (members_.is_lane())
      accuse({ErrorCode::peer_left, peer,
              members_.name_of(peer) + " has left the communicator without entering " + members_.name_of(here)});
    else
      accuse({ErrorCode::mismatch, peer,
              "the ranks made different calls: " + members_.own_name() + " " + members_.name_of(here) + ", " +
                  members_.name_of(peer) + " " + words_of_no_call(notice.sequence)});
    return;
  }
  answers_.heard(peer, notice);
}

// As error_for(nullptr) says it; also a loss that no call has come by yet.
std::optional<Error> Group::failure() const {
  const auto why = failure_->reason();
  if (!why) return std::nullopt;
  return Error(why->code, members_.own_name() + ": " + why->message, rank(), why->peer);
}

Error Group::error_for(const Request* request) const {
  const Failure failure = *failure_->failure();
  const std::string operation = request == nullptr ? "" : members_.name_of(request->call());
  std::string text = members_.own_name() + ": " + failure.message;
  if (!operation.empty() && text.find(operation) == std::string::npos) text += ", during " + operation;
  return {failure.code, text,      members_.number_of(rank()),
          failure.peer, operation, request == nullptr ? -1 : request->operation.step()};
}

}  // namespace tutti::internal
