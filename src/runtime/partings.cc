#include "runtime/partings.h"

#include <algorithm>

#include "control/launcher.h"
#include "types/call.h"

namespace tutti::runtime {
namespace {

// "5 calls, the last of them broadcast #5 (int32 x 1, root 0)"
std::string in_words(std::uint32_t calls, const Tag& last) {
  if (calls == 0) return "no call";
  return std::to_string(calls) + (calls == 1 ? " call, " : " calls, the last of them ") + describe(Call::unpack(last));
}

}  // namespace

std::string rank_name(const std::vector<int>& members, int rank) {
  const std::string name = "rank " + std::to_string(rank);
  const int of_job = members[static_cast<std::size_t>(rank)];
  return of_job == rank ? name : name + " (of the job: " + std::to_string(of_job) + ")";
}

void tell_of_untold(const Log& log, const std::string& what) noexcept {
  log.warn(what);
  tell_launcher(log.rank(), what);
}

void Partings::expect(std::uint64_t communicator, std::vector<int> members, int rank, const CallAccount& account,
                      bool is_awaited) {
  const std::lock_guard lock(mutex_);
  partings_.insert_or_assign(communicator, Parting{std::move(members), rank, account, is_awaited});
}

void Partings::heard(const Notice& verdict) {
  const std::lock_guard lock(mutex_);
  const auto found = partings_.find(verdict.communicator);
  if (found == partings_.end()) return;
  Parting& parting = found->second;
  if (verdict.kind == Notice::Kind::differed) {
    const std::string me = rank_name(parting.members, parting.rank);
    parting.error =
        Error(ErrorCode::mismatch, me + ": " + difference(parting, verdict), parting.rank, peer_of(parting, verdict));
  }
  if (parting.is_awaited) {
    parting.is_over = true;
    news_.notify_all();
    return;
  }
  if (parting.error) tell_of_untold(log_, difference(parting, verdict));
  partings_.erase(found);
}

std::optional<Error> Partings::wait(std::uint64_t communicator, std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  const auto found = partings_.find(communicator);
  if (found == partings_.end()) return std::nullopt;
  if (!news_.wait_for(lock, limit, [&] { return found->second.is_over; })) {
    found->second.is_awaited = false;  // what comes later is said as after a destructor
    return std::nullopt;
  }
  const std::optional<Error> error = found->second.error;
  partings_.erase(found);
  return error;
}

// A member of the communicator by its rank in the job; -1 for none.
int Partings::peer_of(const Parting& parting, const Notice& verdict) {
  const auto at = std::find(parting.members.begin(), parting.members.end(), verdict.peer);
  return at == parting.members.end() ? -1 : static_cast<int>(at - parting.members.begin());
}

std::string Partings::difference(const Parting& parting, const Notice& verdict) {
  const int peer = peer_of(parting, verdict);
  const std::string other = peer < 0 ? "another rank" : rank_name(parting.members, peer);
  const bool ended_alike = verdict.sequence == parting.account.calls && verdict.last == parting.account.last;
  return "the ranks made different calls: until it left, " + rank_name(parting.members, parting.rank) + " made " +
         in_words(parting.account.calls, parting.account.last) + "; " + other + " made " +
         in_words(verdict.sequence, verdict.last) + (ended_alike ? "; they differ before that" : "");
}

}  // namespace tutti::runtime
