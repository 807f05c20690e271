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

}  // namespace

void tell_of_untold(const Log& log, const std::string& what) noexcept {
  log.warn(what);
  tell_launcher(log.rank(), what);
}

void Partings::expect(std::uint64_t communicator, const Members& members, const CallAccount& account, bool is_awaited) {
  const std::lock_guard lock(mutex_);
  partings_.insert_or_assign(communicator, Parting{members, account, is_awaited});
}

void Partings::heard(const Notice& verdict) {
  const std::lock_guard lock(mutex_);
  const auto found = partings_.find(verdict.communicator);
  if (found == partings_.end()) return;
  Parting& parting = found->second;
  std::string what;
  if (verdict.kind == Notice::Kind::differed) {
    const Members& members = parting.members;
    const int peer = members.rank_of(verdict.peer);
    const bool of_lane = Call::unpack(verdict.last).collective == Collective::transfer && !members.is_lane();
    what = difference(of_lane && peer >= 0 ? lane_from(parting, peer) : parting, verdict);
    parting.error = Error(ErrorCode::mismatch, members.own_name() + ": " + what, members.number_of(members.rank()),
                          members.number_of(peer));
  }
  if (parting.is_awaited) {
    parting.is_over = true;
    news_.notify_all();
    return;
  }
  if (parting.error) tell_of_untold(log_, what);
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
  std::optional<Error> error = std::move(found->second.error);
  partings_.erase(found);
  return error;
}

// What `peer` sends to this rank, who has made no such call.
Partings::Parting Partings::lane_from(const Parting& parting, int peer) {
  return {Members(parting.members, peer, parting.members.rank()), {}, false};
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
