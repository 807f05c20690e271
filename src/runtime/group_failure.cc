// How a group's calls fail, and what is said of that.
#include "runtime/group.h"

namespace tutti::runtime {

void Group::fail(Failure failure) {
  if (failure_.fail(std::move(failure))) job_->engine().ring();
}

void Group::lose(int job_rank, const std::string& why) {
  const int rank = local_rank_of(job_rank);
  if (rank >= 0) failure_.lose({ErrorCode::peer_lost, rank, name_of(rank) + " was lost: " + why});
}

void Group::fail_by_loss() {
  if (failure_.fail_by_loss()) job_->engine().ring();
}

// No call begins any more.
void Group::refuse() {
  if (!has_failed()) fail_by_loss();
  tell(error_for(nullptr));
}

void Group::tell(const Error& error) {
  failure_.note_thrown();
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
  ledger_.history()->at(their_call.sequence, mine);
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
  if (known && ledger_.history()->at(notice.sequence, mine) && mine != notice.call) {
    abort_mismatch(peer, mine, notice.call);
    return;
  }
  if (notice.has_left && !notice.entered) {
    const Call here = ledger_.history()->at(notice.sequence, mine) ? Call::unpack(mine) : Call{};
    abort(
        {ErrorCode::peer_left, peer, name_of(peer) + " has left the communicator without entering " + describe(here)});
    return;
  }
  const std::lock_guard lock(answers_mutex_);
  answers_[peer] = notice;
}

Error Group::error_for(const Request* request) const {
  const Failure failure = *failure_.failure();
  const std::string operation = request == nullptr ? "" : describe(request->call());
  std::string text = name_of(rank_) + ": " + failure.message;
  if (!operation.empty() && text.find(operation) == std::string::npos) text += ", during " + operation;
  return {failure.code, text, rank_, failure.peer, operation, request == nullptr ? -1 : request->operation.step()};
}

// --- in words
// ---------------------------------------------------------------------------------------------------------------

// "rank 2 has not entered all_reduce #412 (float32 x 1048576, sum); it last completed broadcast #411"
std::string Group::standing_of(int peer) const {
  const std::lock_guard lock(answers_mutex_);
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

}  // namespace tutti::runtime
