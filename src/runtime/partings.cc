#include "runtime/partings.h"

#include <utility>

#include "control/launcher.h"
#include "types/call.h"

namespace tutti::internal {
namespace {

// "5 calls, the last of them broadcast #5 (int32 x 1, root 0)"
std::string in_words(const Members& members, std::uint32_t calls, const Tag& last) {
  if (calls == 0) return "no call";
  return std::to_string(calls) + (calls == 1 ? " call, " : " calls, the last of them ") +
         members.name_of(Call::unpack(last));
}

std::uint32_t number_of(const Tag& call) { return Call::unpack(call).sequence; }

}  // namespace

std::string words_of_no_call(std::uint32_t number) { return "no call #" + std::to_string(number) + " before it left"; }

std::string words_of_verdict(const Notice& verdict, const Members& members) {
  if (!verdict.message.empty() || (verdict.call == Tag{} && verdict.last == Tag{})) return verdict.message;
  const std::string one = members.name_of(members.rank_of(verdict.peer));
  const std::string other = members.name_of(members.rank_of(verdict.about));
  const std::uint32_t ones = number_of(verdict.call), others = number_of(verdict.last);
  const std::string begin = "the ranks made different calls: ";
  if (verdict.call == verdict.last || (ones != others && ones != 0 && others != 0))
    return begin + "until they left, " + one + " made " + in_words(members, ones, verdict.call) + "; " + other +
           " made " + in_words(members, others, verdict.last) + "; they differ before that";
  const auto called = [&](const Tag& call) {
    return call == Tag{} ? words_of_no_call(std::max(ones, others)) : members.name_of(Call::unpack(call));
  };
  return begin + one + " " + called(verdict.call) + ", " + other + " " + called(verdict.last);
}

void tell_of_untold(const Log& log, const std::string& what) noexcept {
  log.warn(what);
  tell_launcher(log.rank(), what);
}

void Partings::expect(std::uint64_t communicator, const Members& members, const CallAccount& account,
                      std::shared_ptr<FailureState> state, bool is_awaited) {
  const std::lock_guard lock(mutex_);
  partings_.insert_or_assign(communicator, Parting{members, account, std::move(state), is_awaited});
}

void Partings::forget(std::uint64_t communicator) {
  const std::lock_guard lock(mutex_);
  partings_.erase(communicator);
}

// A destructor tells of a mismatch only: of what else went wrong behind its back nobody has asked.
void Partings::failed(const Notice& verdict) {
  const std::lock_guard lock(mutex_);
  const auto found = partings_.find(verdict.communicator);
  if (found == partings_.end()) return;
  auto& [members, account, state, is_awaited, is_over, failure] = found->second;
  if (is_over || failure || (!is_awaited && verdict.code != ErrorCode::mismatch)) return;
  failure = {verdict.code, members.number_of(members.rank_of(verdict.about)), words_of_verdict(verdict, members)};
}

void Partings::heard(const Notice& verdict) {
  const std::lock_guard lock(mutex_);
  const auto found = partings_.find(verdict.communicator);
  if (found == partings_.end()) return;
  Parting& parting = found->second;
  if (verdict.kind == Notice::Kind::differed && !parting.failure) {
    const Members& members = parting.members;
    const int peer = members.rank_of(verdict.peer);
    const bool of_lane = Call::unpack(verdict.last).collective == Collective::transfer && !members.is_lane();
    parting.failure = {ErrorCode::mismatch, members.number_of(peer),
                       difference(of_lane && peer >= 0 ? lane_from(parting, peer) : parting, verdict)};
  }
  if (parting.is_awaited) {
    parting.is_over = true;
    news_.notify_all();
    return;
  }
  if (parting.failure && parting.state->claim_telling()) tell_of_untold(log_, parting.failure->message);
  partings_.erase(found);
}

void Partings::end() {
  const std::lock_guard lock(mutex_);
  has_ended_ = true;
  news_.notify_all();
}

std::optional<Error> Partings::wait(std::uint64_t communicator, std::chrono::steady_clock::time_point until) {
  std::unique_lock lock(mutex_);
  const auto found = partings_.find(communicator);
  if (found == partings_.end()) return std::nullopt;
  news_.wait_until(lock, until, [&] { return found->second.is_over || has_ended_; });
  if (!found->second.is_over) {
    found->second.is_awaited = false;  // what comes later is said as after a destructor
    return std::nullopt;
  }
  std::optional<Error> error;
  if (const auto& failure = found->second.failure) {
    const Members& members = found->second.members;
    error.emplace(failure->code, members.own_name() + ": " + failure->message, members.number_of(members.rank()),
                  failure->peer);
  }
  partings_.erase(found);
  return error;
}

// What `peer` sends to this rank, who has made no such call.
Partings::Parting Partings::lane_from(const Parting& parting, int peer) {
  return {Members(parting.members, peer, parting.members.rank()), {}, parting.state, false};
}

std::string Partings::difference(const Parting& parting, const Notice& verdict) {
  const int peer = parting.members.rank_of(verdict.peer);
  const std::string other = peer < 0 ? "another rank" : parting.members.name_of(peer);
  const bool ended_alike = verdict.sequence == parting.account.calls && verdict.last == parting.account.last;
  return "the ranks made different calls: until it left, " + parting.members.own_name() + " made " +
         in_words(parting.members, parting.account.calls, parting.account.last) + "; " + other + " made " +
         in_words(parting.members, verdict.sequence, verdict.last) + (ended_alike ? "; they differ before that" : "");
}

}  // namespace tutti::internal
